// What AdapTBF costs at the end of a period: the whole of it in the policy, which counts demands,
// allocates tokens and sets buckets in calls of a bounded number of steps, and the allocator alone.
#include <algorithm>
#include <cstdint>
#include <exception>
#include <fstream>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/command_line.h"
#include "base/system_clock.h"
#include "schedulers/policies/adaptbf.h"
#include "schedulers/policies/adaptbf_allocator.h"

namespace vpfs {
namespace {

constexpr Duration kPeriod = std::chrono::milliseconds(100);
constexpr Cost kToken = 64 * kKiB;
constexpr std::uint64_t kTokensOfAJob = 16;  // of the capacity, in a period
constexpr std::uint32_t kMostNodes = 100;

struct OverheadSettings {
  std::uint32_t periods = 200;  // measured; the result is their median
  std::vector<std::uint32_t> jobs = {10, 100, 1000, 10'000};
};

// Times of the end of one period.
struct PeriodCost {
  double all_us = 0;       // all calls that end it
  double longest_us = 0;   // the longest of them: how long a request may have to wait for it
  double allocate_us = 0;  // the allocator alone, in one call
  std::uint32_t calls = 0;
};

double us_between(TimePoint from, TimePoint to) {
  return std::chrono::duration<double, std::micro>(to - from).count();
}

// Some jobs ask for less than their part, others for more.
std::uint64_t random_tokens(std::mt19937_64& random) {
  return 1 + random() % (3 * kTokensOfAJob);
}

// Jobs that have a request or two queued all the time, and a server that takes what may go.
class BusyJobs {
 public:
  explicit BusyJobs(std::uint32_t jobs)
      : policy_({.period = kPeriod,
                 .token = kToken,
                 .capacity = {.configured = jobs * kTokensOfAJob * kToken * 10},
                 .work_conserving = true}),
        requests_(2 * std::size_t{jobs}),
        idle_(jobs) {
    for (std::uint32_t job = 0; job < jobs; ++job) {
      const Result<void> set =
          policy_.set_share(AppId{job}, {.own = {{"nodes", 1 + job % kMostNodes}}}, now_);
      VPFS_ASSERT(set.has_value());
      idle_[job] = {&requests_[2 * std::size_t{job}], &requests_[2 * std::size_t{job} + 1]};
    }
  }

  // A period: each job sends a request, and each is served when it may go.
  void work() {
    const Duration step = kPeriod / (2 * static_cast<int>(idle_.size()) + 2);
    for (std::uint32_t job = 0; job < idle_.size(); ++job) {
      send(job);
      serve(now_ += step);
      serve(now_ += step);
    }
    end_ += kPeriod;
  }

  // Ends the period, with one call after the other at the same time.
  PeriodCost end_period(const Clock& clock) {
    PeriodCost cost;
    now_ = end_;
    do {
      const TimePoint before = clock.now();
      (void)policy_.head(now_);
      const double us = us_between(before, clock.now());
      cost.all_us += us;
      cost.longest_us = std::max(cost.longest_us, us);
      ++cost.calls;
    } while (policy_.is_ending_period());
    return cost;
  }

 private:
  void send(std::uint32_t job) {
    if (idle_[job].empty()) return;
    IoRequest& request = *idle_[job].back();
    idle_[job].pop_back();
    request.app = AppId{job};
    request.cost = random_tokens(random_) * kToken;
    request.size = {request.cost};
    request.arrival = now_;
    policy_.enqueue(request, now_);
  }
  void serve(TimePoint now) {
    IoRequest* request = policy_.head(now).request;
    if (request == nullptr) return;
    policy_.dispatch(*request, now);
    policy_.complete(*request, request->cost, now);
    idle_[static_cast<std::uint32_t>(request->app)].push_back(request);
  }

  AdapTbf policy_;
  std::vector<IoRequest> requests_;
  std::vector<std::vector<IoRequest*>> idle_;  // of each job
  std::mt19937_64 random_{1};
  TimePoint now_ = TimePoint{} + std::chrono::seconds(1);
  TimePoint end_ = now_;  // of the present period
};

// The same number of jobs, of which the allocator knows the demand.
class Demands {
 public:
  explicit Demands(std::uint32_t jobs) : demands_(jobs) {
    for (std::uint32_t job = 0; job < jobs; ++job) {
      demands_[job] = {.job = job, .nodes = 1 + job % kMostNodes, .tokens = 0};
    }
  }

  double allocate_us(const Clock& clock) {
    for (AdapTbfAllocator::Demand& demand : demands_) demand.tokens = random_tokens(random_);
    const TimePoint before = clock.now();
    const auto given = allocator_.allocate(demands_, demands_.size() * kTokensOfAJob);
    const double us = us_between(before, clock.now());
    VPFS_ASSERT(given.size() == demands_.size());
    return us;
  }

 private:
  AdapTbfAllocator allocator_;
  std::vector<AdapTbfAllocator::Demand> demands_;
  std::mt19937_64 random_{2};
};

double median(const std::vector<PeriodCost>& costs, double PeriodCost::*field) {
  std::vector<double> values;
  for (const PeriodCost& cost : costs) values.push_back(cost.*field);
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

std::vector<PeriodCost> measure(std::uint32_t jobs, std::uint32_t periods, const Clock& clock) {
  constexpr std::uint32_t kWarmUp = 5;
  BusyJobs busy(jobs);
  Demands demands(jobs);
  std::vector<PeriodCost> costs;
  for (std::uint32_t period = 0; period < kWarmUp + periods; ++period) {
    busy.work();
    PeriodCost cost = busy.end_period(clock);
    cost.allocate_us = demands.allocate_us(clock);
    if (period >= kWarmUp) costs.push_back(cost);
  }
  return costs;
}

nlohmann::json row_of(std::uint32_t jobs, const std::vector<PeriodCost>& costs) {
  const double all = median(costs, &PeriodCost::all_us);
  const auto most = std::ranges::max_element(costs, {}, &PeriodCost::calls);
  return {{"jobs", jobs},
          {"calls", most->calls},
          {"ms_per_period", all / 1e3},
          {"us_per_job", all / jobs},
          {"longest_call_us", median(costs, &PeriodCost::longest_us)},
          {"allocator_us_per_job", median(costs, &PeriodCost::allocate_us) / jobs},
          {"percent_of_period", 100 * all / us_between({}, TimePoint{} + kPeriod)}};
}

int bench(int argc, char** argv) {
  OptionParser app{
      "Measures what the end of a period of AdapTBF costs, by the number of jobs that asked for "
      "something in it."};
  OverheadSettings settings;
  std::string json_file;
  app.add_option("--jobs", settings.jobs, "numbers of jobs").between(1, 1'000'000);
  app.add_option("--periods", settings.periods, "periods that are measured").between(1, 100'000);
  app.add_option("--json", json_file, "write settings and rows to this file");
  if (const auto code = app.parse(argc, argv)) return *code;

  const SystemClock clock;
  nlohmann::json rows = nlohmann::json::array();
  for (const std::uint32_t jobs : settings.jobs) {
    rows.push_back(row_of(jobs, measure(jobs, settings.periods, clock)));
    std::cout << rows.back().dump() << std::endl;
  }
  if (json_file.empty()) return 0;
  std::ofstream out(json_file);
  const nlohmann::json shown = {{"periods", settings.periods},
                                {"period_ms", us_between({}, TimePoint{} + kPeriod) / 1e3},
                                {"tokens_per_job", kTokensOfAJob}};
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
