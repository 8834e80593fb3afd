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
  [[nodiscard]] Result<void> set_share(AppId app, const Share& share, TimePoint now) override;
  void remove(AppId app, TimePoint now) override;
  [[nodiscard]] HoldClock& holds() override { return tbf_.holds(); }

  [[nodiscard]] std::size_t queued() const override { return tbf_.queued(); }
  [[nodiscard]] IoRequest* any_queued() const override { return tbf_.any_queued(); }
  [[nodiscard]] FlowState flow(AppId app) const override { return tbf_.flow(app); }
  [[nodiscard]] WaitReason why_waiting(AppId app, TimePoint now) const override;
  [[nodiscard]] StatusFields report(AppId app, TimePoint now) const override;
  [[nodiscard]] StatusFields server(TimePoint now) const override;

 private:
  struct Job {
    std::uint64_t nodes = 1;
    std::uint64_t level = 0;  // the nodes of its level in levels_; zero: none
    Cost queued = 0;
    Cost asked = 0;       // in this period: queued when it began, and what came since
    bool active = false;  // in the list of this period's jobs
    bool has_bucket = false;
    bool ended = false;  // removed; what it has queued counts as a job's of one node
    std::int64_t record = 0;
    std::uint64_t lent = 0;
    std::uint64_t borrowed = 0;
  };

  Job& job_of(const IoRequest& request) { return jobs_[static_cast<std::size_t>(request.app)]; }
  void ask(std::uint32_t index, Cost cost);
  // Moves a job from its level to the level of `nodes`; zero: to none.
  void set_level(std::uint32_t index, std::uint64_t nodes, TimePoint now);
  // Puts the job at the place that its level has in the hierarchy now.
  void set_place(std::uint32_t index, TimePoint now);
  // Ends the periods that are over by now.
  void advance(TimePoint now);
  void end_period(TimePoint now);
  void end_account(std::uint32_t index);
  [[nodiscard]] std::uint64_t budget() const;
  void allot(std::uint64_t budget, TimePoint now);
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
  std::vector<std::uint32_t> had_bucket_;   // only used in end_period(), like the next one
  std::vector<AdapTbfAllocator::Demand> demands_;
  TimePoint period_start_ = {};
  TimePoint observed_since_ = {};  // not before period_start_
  CapacityEstimate::Period observed_;
  bool started_ = false;
  bool without_tokens_ = false;  // the last answer of head()
};

}  // namespace vpfs
