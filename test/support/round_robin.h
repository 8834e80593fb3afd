#pragma once

#include <cstdint>
#include <vector>

#include "schedulers/flow_table.h"
#include "schedulers/flow_tournament.h"
#include "schedulers/policies/registry.h"
#include "schedulers/policy.h"
#include "schedulers/policy_kind.h"

namespace vpfs {

struct RoundRobinSettings {
  std::uint64_t visit = 1;  // requests that a flow may send in its turn, unless its share says it
  Duration rest = Duration::zero();  // is only shown

  bool operator==(const RoundRobinSettings&) const = default;
};

// A policy that is not one of vpfs: one that a user might add, with settings, a word of a share and
// status fields of its own. Flows take turns; in its turn a flow sends as many requests as its
// `visit`.
class RoundRobin final : public Policy {
 public:
  static const PolicyKind kKind;

  explicit RoundRobin(const RoundRobinSettings& settings) : settings_(settings) {}

  void enqueue(IoRequest& request, TimePoint now) override;
  [[nodiscard]] Head head(TimePoint now) override;
  void dispatch(IoRequest& request, TimePoint now) override;
  void complete(const IoRequest& request, Cost cost, TimePoint now) override;
  void withdraw(IoRequest& request, TimePoint now) override;
  [[nodiscard]] Result<void> set_share(AppId app, const Share& share, TimePoint now) override;
  [[nodiscard]] HoldClock& holds() override { return flows_.holds(); }

  [[nodiscard]] std::size_t queued() const override { return flows_.queued(); }
  [[nodiscard]] IoRequest* any_queued() const override { return flows_.some_head({&turns_}); }
  [[nodiscard]] FlowState flow(AppId app) const override { return flows_.state(app); }
  [[nodiscard]] WaitReason why_waiting(AppId app, TimePoint now) const override;
  [[nodiscard]] StatusFields report(AppId app, TimePoint now) const override;
  [[nodiscard]] StatusFields server(TimePoint now) const override;

 private:
  struct Flow : FlowQueue {
    std::uint64_t visit = 1;
    std::uint64_t left = 0;  // of the turn
    std::int64_t turns = 0;
    Duration longest_wait = {};
  };

  void begin_turn(std::uint32_t index);

  RoundRobinSettings settings_;
  FlowTable<Flow> flows_;
  FlowTournament turns_;  // the flows with something queued, by when their turn was asked for
  std::uint64_t asked_ = 0;
};

// The policies of vpfs and this one.
[[nodiscard]] std::vector<const PolicyKind*> policies_with_round_robin();

}  // namespace vpfs
