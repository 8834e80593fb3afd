#pragma once

#include <vector>

#include "schedulers/depth_gate.h"
#include "schedulers/request_list.h"
#include "schedulers/scheduler.h"

namespace vpfs {

// Sends requests in the order of their arrival, whoever they belong to; shares mean nothing to it.
// It is what a data server without vpfs does, but for the depth.
class Fifo final : public Scheduler {
 public:
  explicit Fifo(Depth depth) : gate_(depth) {}

  void enqueue(IoRequest& request, TimePoint now) override;
  [[nodiscard]] Decision next(TimePoint now) override;
  void complete(const IoRequest& request, Cost cost, TimePoint now) override;
  void withdraw(IoRequest& request, TimePoint now) override;
  void set_share(AppId app, Share share) override;

  [[nodiscard]] FlowState flow(AppId app) const override;
  [[nodiscard]] WaitReason why_waiting(AppId app, TimePoint now) const override;
  [[nodiscard]] std::size_t outstanding() const override { return gate_.requests(); }
  [[nodiscard]] std::size_t queued() const override { return queued_; }

 private:
  FlowAccount& account_of(const IoRequest& request);
  [[nodiscard]] const IoRequest* oldest_of(AppId app) const;

  DepthGate gate_;
  RequestList queue_;
  std::vector<FlowAccount> accounts_;
  std::size_t queued_ = 0;
  std::uint64_t arrivals_ = 0;
};

}  // namespace vpfs
