#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "control/allocation/pair.h"

namespace vpfs::allocation {

// Says of each job whether its total is reached, and if not why. docs/control.md has the formulas.
//
// Only jobs that had requests in flight on a stage for half of a span are judged. Such a job j is
// entitled to E_j = C w_j / W of what they did, with C the sum of their costs and W that of their
// weights. Its total is reached if it did 19/20 of that.
class TotalsWatch {
 public:
  static constexpr Duration kSpan = std::chrono::seconds(10);

  enum class Why : std::uint8_t {
    reached,
    limit,             // its own limit held it for half of the time in flight
    no_queue,          // jobs that had more were served on its stages while it had no queue there
    delay,             // it had a queue, but no debt delays a flow by more than the longest delay
    no_capacity,       // no job that had more was served on its stages
    asks_for_no_more,  // it has its stages for itself and keeps no queue there
  };
  struct Verdict {
    Duration span = {};
    Cost done = 0;
    Cost entitled = 0;
    Why why = Why::reached;
    std::vector<std::string> stages;  // where, for no_queue and delay
  };
  // The name of the stage of a row; "": it is gone.
  using StageName = std::function<std::string_view(std::size_t row)>;

  // A cycle has ended, and these are its pairs and the names of its jobs. Judges once in a span.
  void look(std::span<const Pair> pairs, std::span<const std::string_view> jobs,
            const StageName& stage_name, TimePoint now);
  // In the last span; nullptr: the job was not judged.
  [[nodiscard]] const Verdict* verdict(std::string_view job) const;

 private:
  // What a pair has done since the span began, by row.
  struct Part {
    Cost done = 0;
    QueueTimes times;
    bool is_in_flight = false;
  };
  struct Job {
    std::uint32_t weight = 1;
    bool is_judged = false;
    Cost done = 0;

    // Whether it had clearly more for its weight.
    [[nodiscard]] bool had_more_than(const Job& other) const;
  };
  struct Base {
    Cost done = 0;
    QueueTimes times;
  };

  void judge(std::span<const Pair> pairs, std::span<const std::string_view> jobs,
             const StageName& stage_name, Duration span);
  void subtract(std::span<const Pair> pairs, Duration span);
  void explain(std::span<const Pair> pairs, std::size_t first, std::size_t end,
               const StageName& stage_name, Verdict& verdict) const;
  void remember(std::span<const Pair> pairs);

  std::optional<TimePoint> begin_;
  std::vector<Base> bases_;                           // by the number of a pair
  std::vector<Part> parts_;                           // by row
  std::vector<Job> jobs_;                             // by Pair::job
  std::vector<std::vector<std::uint32_t>> on_stage_;  // rows by Pair::stage
  std::map<std::string, Verdict, std::less<>> verdicts_;
};

// For people: "keeps no queue at ds1, ds2", and which settings help; "": it is reached.
[[nodiscard]] std::string text_of(const TotalsWatch::Verdict& verdict);
[[nodiscard]] std::string_view remedy_of(const TotalsWatch::Verdict& verdict);

}  // namespace vpfs::allocation
