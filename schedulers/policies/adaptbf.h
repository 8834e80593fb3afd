#pragma once

#include <cstdint>
#include <vector>

#include "schedulers/policies/adaptbf_allocator.h"
#include "schedulers/policies/capacity_estimate.h"
#include "schedulers/policies/tbf.h"
#include "schedulers/policy.h"
#include "schedulers/policy_kind.h"
#include "schedulers/rate_limits.h"

namespace vpfs {

struct AdapTbfSettings {
  Duration period = std::chrono::milliseconds(100);  // at least 1 ms
  Cost token = 64 * kKiB;                            // the cost that one token stands for
  CapacityEstimate::Settings capacity = {};
  // True: capacity that no bucket is due for goes to the job whose tokens come next, and the job
  // keeps them. False: the capacity stays idle, as in [TBF].
  bool work_conserving = false;

  bool operator==(const AdapTbfSettings&) const = default;
};

// Token buckets with new rates every period, made from what the jobs (flows) asked for in the
// period before [ADAPTBF]: AdapTbfAllocator has the equations, Tbf the buckets. A job that asked
// for nothing in a period has no bucket in the next one and is served when no bucket is due.
//
// Buckets keep tokens that the server was too slow for (`realtime`) until the end of the period, so
// that a capacity that is set a little too high changes no proportion.
//
// Jobs form a hierarchy by priority: among jobs whose tokens came in the same slice of time, a
// small part of a period, the one with more nodes goes first. The slice is short because over
// longer times the first jobs would take the tokens of the others whenever the server is slower
// than the sum of the rates. A job whose share has a rank of its own is first in the hierarchy. The
// rank decides before the hierarchy, over any time.
//
// The end of a period takes time for each job that asked for something in it. With many of them it
// is spread over the calls that follow, of which each does a part (kStepsOfACall). Their new rates
// come with the last parts, but demand is counted up to the end of the period.
//
// The equations give tokens to jobs that may be idle by then: a lender gets its tokens back when
// its burst is over. So a good part of the capacity may belong to jobs that do not wait. The
// work-conserving mode gives it to the others, and buckets only decide which job goes first.
class AdapTbf final : public Policy {
 public:
  static const PolicyKind kKind;

  explicit AdapTbf(const AdapTbfSettings& settings);

  void enqueue(IoRequest& request, TimePoint now) override;
  [[nodiscard]] Head head(TimePoint now) override;
  void dispatch(IoRequest& request, TimePoint now) override;
  void complete(const IoRequest& request, Cost cost, TimePoint now) override;
  void withdraw(IoRequest& request, TimePoint now) override;
  void let_pass(IoRequest& request, TimePoint now) override;
  // It is as good as asked for, and comes out of the bucket.
  void charge_more(const IoRequest& request, Cost cost, TimePoint now) override;
  [[nodiscard]] Result<void> set_share(AppId app, const Share& share, TimePoint now) override;
  void remove(AppId app, TimePoint now) override;
  void save_all(TimePoint now, SavedState& to) override;
  void save(AppId app, TimePoint now, SavedState& to) override;
  void restore_all(const SavedState& from, TimePoint now) override;
  void restore(AppId app, const SavedState& from, TimePoint now) override;
  void restored(TimePoint now) override;
  [[nodiscard]] HoldClock& holds() override { return tbf_.holds(); }

  [[nodiscard]] std::size_t queued() const override { return tbf_.queued(); }
  [[nodiscard]] IoRequest* any_queued() const override { return tbf_.any_queued(); }
  [[nodiscard]] FlowState flow(AppId app) const override { return tbf_.flow(app); }
  [[nodiscard]] WaitReason why_waiting(AppId app, TimePoint now) const override;
  [[nodiscard]] StatusFields report(AppId app, TimePoint now) const override;
  [[nodiscard]] StatusFields server(TimePoint now) const override;
  [[nodiscard]] Loans loans(AppId app) const override;

  // Whether the end of a period is still being carried out, by the calls that follow.
  [[nodiscard]] bool is_ending_period() const { return ending_ != Ending::done; }

 private:
  struct Job {
    Cost queued = 0;
    Cost asked = 0;         // in its period: queued when it began, and what came since
    Cost asked_before = 0;  // the same of the period before
    std::int64_t record = 0;
    std::uint64_t lent = 0;
    std::uint64_t borrowed = 0;
    std::uint32_t nodes = 1;
    std::uint32_t level = 0;         // the nodes of its level in levels_; zero: none
    std::uint32_t period = 0;        // the last one in which it was looked at
    std::uint8_t bucket_period = 0;  // the end of its number; in which it was last given a bucket
    bool active = false;             // in active_
    bool has_bucket = false;
    bool ended = false;  // removed; what it has queued counts as a job's of one node
  };
  static_assert(sizeof(Job) == 64);
  // What is done for each job, one after the other, when a period has ended.
  enum class Ending : std::uint8_t {
    count_demands,
    allocate,
    set_buckets,
    lift_buckets,
    settle_ended,
    done,
  };
  // How much of it one call does: a fraction of a millisecond. It is all, and nothing is spread,
  // with some hundred jobs.
  static constexpr std::size_t kStepsOfACall = std::size_t{1} << 14;
  static constexpr std::size_t kStepsOfABucket = 8;  // takes as long as so many of the allocator

  // The job in the present period.
  Job& job_of(std::uint32_t index) {
    if (jobs_[index].period != period_) begin_period_of(index);
    return jobs_[index];
  }
  Job& job_of(const IoRequest& request) { return job_of(static_cast<std::uint32_t>(request.app)); }
  void begin_period_of(std::uint32_t index);
  void ask(std::uint32_t index, Cost cost);
  // Moves a job from its level to the level of `nodes`; zero: to none.
  void set_level(std::uint32_t index, std::uint32_t nodes, TimePoint now);
  // Puts the job at the place that its level has in the hierarchy now.
  void set_place(std::uint32_t index, TimePoint now);
  // Ends the periods that are over by now.
  void advance(TimePoint now);
  void end_period(TimePoint now);
  // If the last period ended long ago, another one in which no job asked for anything.
  void end_idle_period(TimePoint now);
  // Does what is left of the end of a period, in at most so many steps.
  void go_on_ending(std::size_t steps, TimePoint now);
  void finish_ending(TimePoint now) { go_on_ending(SIZE_MAX, now); }
  void enter(Ending stage) {
    ending_ = stage;
    cursor_ = 0;
  }
  void count_demand(std::uint32_t index);
  void allot(const AdapTbfAllocator::Allocation& to, TimePoint now);
  void lift_bucket(std::uint32_t index, TimePoint now);
  void end_account(std::uint32_t index);
  [[nodiscard]] std::uint64_t budget() const;
  void set_bucket(std::uint32_t index, std::uint64_t tokens, TimePoint now);

  AdapTbfSettings settings_;
  RateLimits limits_{RateLimits::Unit::cost};
  Tbf tbf_;
  AdapTbfAllocator allocator_;
  CapacityEstimate capacity_;
  std::vector<Job> jobs_;
  struct Level {
    std::uint64_t nodes;
    std::size_t jobs;  // on this level; at least one
  };
  std::vector<Level> levels_;               // the hierarchy, most nodes first
  std::vector<std::uint32_t> active_;       // jobs that asked for something in this period
  std::vector<std::uint32_t> with_bucket_;  // jobs that asked in the period before
  // Only used while a period ends.
  Ending ending_ = Ending::done;
  bool was_idle_ = false;             // after the period that ends
  std::size_t cursor_ = 0;            // of the stage
  std::vector<std::uint32_t> asked_;  // jobs that did in the period that ends
  std::vector<std::uint32_t> had_bucket_;
  std::vector<AdapTbfAllocator::Demand> demands_;
  std::uint64_t budget_ = 0;
  std::uint32_t period_ = 0;  // the number of the present one
  TimePoint period_start_ = {};
  TimePoint observed_since_ = {};  // not before period_start_
  CapacityEstimate::Period observed_;
  bool started_ = false;
  bool without_tokens_ = false;  // the last answer of head()
};

}  // namespace vpfs
