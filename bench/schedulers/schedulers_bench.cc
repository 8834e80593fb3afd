// The cost of one request in a scheduler: enqueue, next and complete, with all flows backlogged and
// time advancing at every request. A bare std::priority_queue with start tags is the yardstick. The
// ratio to it can be compared between machines.
#include <algorithm>
#include <array>
#include <exception>
#include <fstream>
#include <iostream>
#include <map>
#include <queue>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/command_line.h"
#include "base/system_clock.h"
#include "bench/schedulers/policy_load.h"

namespace vpfs {
namespace {

constexpr std::string_view kYardstick = "priority_queue";

struct Quantile {
  const char* name;
  const char* field;
  std::size_t permille;
};
constexpr std::array kQuantiles = {
    Quantile{.name = "p50", .field = "p50_ns", .permille = 500},
    Quantile{.name = "p90", .field = "p90_ns", .permille = 900},
    Quantile{.name = "p99", .field = "p99_ns", .permille = 990},
    Quantile{.name = "p99.9", .field = "p999_ns", .permille = 999},
    Quantile{.name = "max", .field = "max_ns", .permille = 1000},
};

struct Sample {
  double ns_per_request;
  std::array<double, kQuantiles.size()> quantiles;
};

struct SchedulerBenchSettings {
  std::uint64_t requests = 300'000;  // per measurement
  std::uint32_t rounds = 7;          // the result is their median
  std::uint64_t turns = 0;           // turns of every flow before the measurement
  std::vector<std::uint32_t> flows = {1, 10, 1000, 100'000};
  std::vector<std::string> only = {};  // the names of variants; empty: all

  [[nodiscard]] bool has(const Variant& variant) const {
    return only.empty() || std::ranges::find(only, variant.name) != only.end();
  }
};

// The minimum of any tag-based scheduler: take the smallest tag and insert a larger one.
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

// The difference of two clock readings with nothing in between.
double clock_cost(const Clock& clock) {
  std::vector<double> readings;
  for (int i = 0; i < 10'000; ++i) {
    const TimePoint before = clock.now();
    readings.push_back(ns_between(before, clock.now()));
  }
  return median(std::move(readings));
}

template <typename Load>
Sample measure(Load load, const SchedulerBenchSettings& settings, std::uint32_t flows,
               const Clock& clock) {
  const std::uint64_t requests = settings.requests;
  const std::uint64_t warm_up = requests / 4 + settings.turns * flows;
  for (std::uint64_t i = 0; i < warm_up; ++i) load.one_request();
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
  std::ranges::sort(each);
  Sample sample = {.ns_per_request = mean, .quantiles = {}};
  for (std::size_t i = 0; i < kQuantiles.size(); ++i) {
    const std::size_t index = each.size() * kQuantiles[i].permille / 1000;
    sample.quantiles[i] = each[std::min(index, each.size() - 1)];
  }
  return sample;
}

// The median of each figure.
Sample median(const std::vector<Sample>& samples) {
  const auto of = [&](auto number) {
    std::vector<double> values;
    for (const Sample& sample : samples) values.push_back(number(sample));
    return median(std::move(values));
  };
  Sample middle = {.ns_per_request = of([](const Sample& one) { return one.ns_per_request; }),
                   .quantiles = {}};
  for (std::size_t i = 0; i < kQuantiles.size(); ++i) {
    middle.quantiles[i] = of([i](const Sample& one) { return one.quantiles[i]; });
  }
  return middle;
}

void print_header() {
  fmt::print("{:>16} {:>8} {:>16}", "policy", "flows", "ns per request");
  for (const Quantile& quantile : kQuantiles) fmt::print(" {:>8}", quantile.name);
  fmt::print(" {:>14}\n", "of yardstick");
}

nlohmann::json row_of(std::string_view name, std::uint32_t flows, const Sample& sample,
                      double yardstick) {
  nlohmann::json row = {
      {"policy", name}, {"flows", flows}, {"ns_per_request", sample.ns_per_request}};
  fmt::print("{:>16} {:>8} {:>16.1f}", name, flows, sample.ns_per_request);
  for (std::size_t i = 0; i < kQuantiles.size(); ++i) {
    row[kQuantiles[i].field] = sample.quantiles[i];
    fmt::print(" {:>8.0f}", sample.quantiles[i]);
  }
  fmt::print(" {:>14.2f}\n", sample.ns_per_request / yardstick);
  return row;
}

// A round measures all policies in turn, so that a slow moment of the machine affects all of them.
nlohmann::json run(const SchedulerBenchSettings& settings) {
  const SystemClock clock;
  nlohmann::json rows = nlohmann::json::array();
  print_header();
  for (const std::uint32_t flows : settings.flows) {
    std::map<std::string_view, std::vector<Sample>> samples;
    for (std::uint32_t round = 0; round < settings.rounds; ++round) {
      for (const Variant& variant : measured_variants()) {
        if (!settings.has(variant)) continue;
        samples[variant.name].push_back(
            measure(PolicyLoad(variant, flows), settings, flows, clock));
      }
      samples[kYardstick].push_back(measure(YardstickLoad(flows), settings, flows, clock));
    }
    const double yardstick = median(samples[kYardstick]).ns_per_request;
    for (const Variant& variant : measured_variants()) {
      if (!settings.has(variant)) continue;
      rows.push_back(row_of(variant.name, flows, median(samples[variant.name]), yardstick));
    }
    rows.push_back(row_of(kYardstick, flows, median(samples[kYardstick]), yardstick));
  }
  return rows;
}

nlohmann::json shown_settings(const SchedulerBenchSettings& settings) {
  return {{"requests", settings.requests},
          {"rounds", settings.rounds},
          {"flows", settings.flows},
          {"depth", kDepth},
          {"queued_per_flow", kQueuedPerFlow},
          {"warm_up", "a quarter of the requests, plus the turns of every flow"},
          {"turns", settings.turns},
          {"weights", "1 to 100"},
          {"cost", "4 KiB to 1 MiB and 4 KiB, at random"},
          {"time_per_request_ns", kStep.count()},
          {"throughput_bytes_per_s", kThroughput},
          {"burst_bytes", kBurst.count},
          {"rates_percent_of_throughput", kRatesPercent},
          {"minimums_percent_of_throughput", kMinimumsPercent},
          {"promised_percent_of_throughput", kPromisedPercent},
          {"most_promised_flows", kMostPromised},
          {"adaptbf_capacity_percent_of_throughput", kAdapTbfCapacityPercent},
          {"compiler", __VERSION__},
#ifdef __OPTIMIZE__
          {"optimized", true}};
#else
          {"optimized", false}};
#endif
}

int bench(int argc, char** argv) {
  OptionParser app{"Measures the nanoseconds per request of every scheduling policy."};
  SchedulerBenchSettings settings;
  std::string json_file;
  bool quick = false;
  app.add_option("--requests", settings.requests, "requests per measurement")
      .between(1000U, 1'000'000'000U);
  app.add_option("--rounds", settings.rounds, "measurements per row; the result is their median")
      .between(1, 1000);
  app.add_option("--turns", settings.turns,
                 "turns of every flow before the measurement; without them, many flows are still "
                 "in their initial order")
      .between(0, 1000);
  app.add_option("--flows", settings.flows, "numbers of backlogged flows").between(1, 10'000'000);
  app.add_option("--only", settings.only, "rows of these names only, such as \"sfq+think, 1\"");
  app.add_option("--json", json_file, "write settings and rows to this file");
  app.add_flag("--quick", quick, "fewer rounds and fewer requests");
  if (const auto code = app.parse(argc, argv)) return *code;
  if (quick) {
    settings.requests = std::min<std::uint64_t>(settings.requests, 100'000);
    settings.rounds = std::min(settings.rounds, 3U);
  }

  const nlohmann::json shown = shown_settings(settings);
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
