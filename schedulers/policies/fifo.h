#pragma once

#include <vector>

#include "schedulers/policy.h"
#include "schedulers/policy_kind.h"
#include "schedulers/request_list.h"

namespace vpfs {

// Sends requests in the order of their arrival and ignores flows and shares. A data server without
// vpfs does the same, except for the depth.
//
// This policy cannot tell in O(1) whether a withdrawn request was its flow's head. So the flow's
// next request continues the wait of a withdrawn head.
class Fifo final : public Policy {
 public:
  static const PolicyKind kKind;

  void enqueue(IoRequest& request, TimePoint now) override;
  [[nodiscard]] Head head(TimePoint now) override;
  void dispatch(IoRequest& request, TimePoint now) override;
  void complete(const IoRequest& request, Cost cost, TimePoint now) override;
  void withdraw(IoRequest& request, TimePoint now) override;
  [[nodiscard]] Result<void> set_share(AppId app, const Share& share, TimePoint now) override;

  [[nodiscard]] HoldClock& holds() override { return holds_; }

  [[nodiscard]] std::size_t queued() const override { return queued_; }
  [[nodiscard]] IoRequest* any_queued() const override { return queue_.front(); }
  [[nodiscard]] FlowState flow(AppId app) const override;
  [[nodiscard]] WaitReason why_waiting(AppId app, TimePoint now) const override;

 private:
  FlowAccount& account_of(const IoRequest& request);
  [[nodiscard]] const IoRequest* oldest_of(AppId app) const;

  RequestList queue_;
  std::vector<FlowAccount> accounts_;
  HoldClock holds_;
  std::size_t queued_ = 0;
  std::uint64_t arrivals_ = 0;
};

}  // namespace vpfs
