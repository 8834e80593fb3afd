// What one request costs in a scheduler: enqueue, next and complete, while all flows are
// backlogged. Beside the policies runs a bare std::priority_queue with start tags: the ratio to it
// is what can be compared from machine to machine.
#include <algorithm>
#include <deque>
#include <exception>
#include <fstream>
#include <iostream>
#include <map>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/system_clock.h"
#include "schedulers/registry.h"

namespace vpfs {
namespace {

constexpr std::uint32_t kDepth = 4;
constexpr std::uint32_t kQueuedPerFlow = 2;
constexpr std::string_view kYardstick = "priority_queue";

struct Settings {
  std::uint64_t requests = 300'000;  // of each measurement
  std::uint32_t rounds = 7;          // the median counts
  std::vector<std::uint32_t> flows = {1, 10, 1000, 100'000};
};

struct Sample {
  double ns_per_request;
  double p99_ns;
};

std::uint32_t weight_of(std::uint32_t flow) {
  return 1 + flow % 100;
}
Cost random_cost(std::mt19937_64& random) {
  return 4 * kKiB + random() % kMiB;
}

// Every flow keeps kQueuedPerFlow requests queued; kDepth are outstanding and come back in order.
class PolicyLoad {
 public:
  PolicyLoad(std::string_view policy, std::uint32_t flows)
      : scheduler_(make_scheduler(policy, {.depth = {.requests = kDepth}}).value()),
        requests_(flows * kQueuedPerFlow + kDepth) {
    std::mt19937_64 random(1);
    for (std::uint32_t flow = 0; flow < flows; ++flow) {
      scheduler_->set_share(AppId{flow}, {.weight = weight_of(flow)});
    }
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      requests_[i].app = AppId{static_cast<std::uint32_t>(i % flows)};
      requests_[i].cost = random_cost(random);
      scheduler_->enqueue(requests_[i], {});
    }
    for (IoRequest*& request : outstanding_) request = scheduler_->next({}).request;
  }

  void one_request() {
    IoRequest*& oldest = outstanding_[turn_++ % kDepth];
    scheduler_->complete(*oldest, oldest->cost, {});
    scheduler_->enqueue(*oldest, {});
    oldest = scheduler_->next({}).request;
  }

 private:
  std::unique_ptr<Scheduler> scheduler_;
  std::vector<IoRequest> requests_;
  IoRequest* outstanding_[kDepth] = {};
  std::size_t turn_ = 0;
};

// The least that any tag-based scheduler does: take the smallest tag, add one behind it.
class YardstickLoad {
 public:
  explicit YardstickLoad(std::uint32_t flows) {
    std::mt19937_64 random(1);
    for (std::uint64_t flow = 0; flow < flows; ++flow) {
      steps_.push_back((random_cost(random) << 20) / weight_of(static_cast<std::uint32_t>(flow)));
      queue_.push({.tag = 0, .order = flow, .flow = flow});
    }
  }

  void one_request() {
    Entry entry = queue_.top();
    queue_.pop();
    entry.tag += steps_[entry.flow];
    entry.order = ++order_;
    queue_.push(entry);
  }

 private:
  struct Entry {
    std::uint64_t tag;
    std::uint64_t order;
    std::uint64_t flow;
    bool operator>(const Entry& other) const {
      return tag != other.tag ? tag > other.tag : order > other.order;
    }
  };
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
  std::vector<std::uint64_t> steps_;
  std::uint64_t order_ = 0;
};

double ns_between(TimePoint from, TimePoint to) {
  return static_cast<double>((to - from).count());
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

// What reading the clock twice shows when nothing is between.
double clock_cost(const Clock& clock) {
  std::vector<double> readings;
  for (int i = 0; i < 10'000; ++i) {
    const TimePoint before = clock.now();
    readings.push_back(ns_between(before, clock.now()));
  }
  return median(std::move(readings));
}

template <typename Load>
Sample measure(Load load, std::uint64_t requests, const Clock& clock) {
  for (std::uint64_t i = 0; i < requests / 4; ++i) load.one_request();
  const TimePoint start = clock.now();
  for (std::uint64_t i = 0; i < requests; ++i) load.one_request();
  const double mean = ns_between(start, clock.now()) / static_cast<double>(requests);

  const double overhead = clock_cost(clock);
  std::vector<double> each(requests / 4);
  for (double& one : each) {
    const TimePoint before = clock.now();
    load.one_request();
    one = std::max(0.0, ns_between(before, clock.now()) - overhead);
  }
  const auto p99 = each.begin() + static_cast<std::ptrdiff_t>(each.size() * 99 / 100);
  std::ranges::nth_element(each, p99);
  return {.ns_per_request = mean, .p99_ns = *p99};
}

// Rounds are interleaved over policies, so that a slow moment of the machine touches all of them.
nlohmann::json run(const Settings& settings) {
  const SystemClock clock;
  nlohmann::json rows = nlohmann::json::array();
  std::vector<std::string_view> policies = scheduler_names();
  policies.push_back(kYardstick);
  fmt::print("{:>16} {:>8} {:>16} {:>8} {:>14}\n", "policy", "flows", "ns per request", "p99",
             "of yardstick");
  for (const std::uint32_t flows : settings.flows) {
    std::map<std::string_view, std::vector<double>> means;
    std::map<std::string_view, std::vector<double>> p99s;
    for (std::uint32_t round = 0; round < settings.rounds; ++round) {
      for (const std::string_view policy : policies) {
        const Sample sample = policy == kYardstick
                                  ? measure(YardstickLoad(flows), settings.requests, clock)
                                  : measure(PolicyLoad(policy, flows), settings.requests, clock);
        means[policy].push_back(sample.ns_per_request);
        p99s[policy].push_back(sample.p99_ns);
      }
    }
    for (const std::string_view policy : policies) {
      const double mean = median(means[policy]);
      const double p99 = median(p99s[policy]);
      fmt::print("{:>16} {:>8} {:>16.1f} {:>8.0f} {:>14.2f}\n", policy, flows, mean, p99,
                 mean / median(means[kYardstick]));
      rows.push_back(
          {{"policy", policy}, {"flows", flows}, {"ns_per_request", mean}, {"p99_ns", p99}});
    }
  }
  return rows;
}

int bench(int argc, char** argv) {
  CLI::App app{"Nanoseconds per request of every scheduling policy."};
  Settings settings;
  std::string json_file;
  bool quick = false;
  app.add_option("--requests", settings.requests, "requests of each measurement")
      ->check(CLI::Range(1000U, 1'000'000'000U));
  app.add_option("--rounds", settings.rounds, "measurements of each row; the median counts")
      ->check(CLI::Range(1, 1000));
  app.add_option("--flows", settings.flows, "numbers of backlogged flows")
      ->check(CLI::Range(1, 10'000'000));
  app.add_option("--json", json_file, "write settings and rows to this file");
  app.add_flag("--quick", quick, "a few rounds of fewer requests");
  CLI11_PARSE(app, argc, argv);
  if (quick) {
    settings.requests = std::min<std::uint64_t>(settings.requests, 100'000);
    settings.rounds = std::min(settings.rounds, 3U);
  }

  const nlohmann::json shown = {{"requests", settings.requests},
                                {"rounds", settings.rounds},
                                {"flows", settings.flows},
                                {"depth", kDepth},
                                {"queued_per_flow", kQueuedPerFlow},
                                {"compiler", __VERSION__},
#ifdef __OPTIMIZE__
                                {"optimized", true}};
#else
                                {"optimized", false}};
#endif
  std::cout << "settings " << shown.dump() << std::endl;
  const nlohmann::json rows = run(settings);
  if (json_file.empty()) return 0;
  std::ofstream out(json_file);
  out << nlohmann::json{{"settings", shown}, {"rows", rows}}.dump(2) << "\n";
  if (!out.flush()) {
    std::cerr << "cannot write " << json_file << "\n";
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace vpfs

int main(int argc, char** argv) {
  try {
    return vpfs::bench(argc, argv);
  } catch (const std::exception& exception) {
    std::cerr << exception.what() << "\n";
    return 1;
  }
}
