#pragma once

#include <cstddef>
#include <cstdint>

#include <vpfs/schedulers/flow_table.h>
#include <vpfs/schedulers/policy.h>
#include <vpfs/schedulers/policy_kind.h>

namespace example {

struct DrrSettings {
  vpfs::Bytes quantum = {64 * vpfs::kKiB};  // of cost, for a weight of 1

  bool operator==(const DrrSettings&) const = default;
};

// Deficit round robin (M. Shreedhar, G. Varghese: Efficient Fair Queuing Using Deficit Round Robin,
// 1996). Flows with requests take turns. At the beginning of its turn a flow gets its quantum times
// its weight; it sends as long as that is enough for its head, and keeps the rest for its next
// turn. A flow without requests has nothing left.
class Drr final : public vpfs::Policy {
 public:
  static const vpfs::PolicyKind kKind;

  explicit Drr(const DrrSettings& settings) : settings_(settings) {}

  void enqueue(vpfs::IoRequest& request, vpfs::TimePoint now) override;
  [[nodiscard]] Head head(vpfs::TimePoint now) override;
  void dispatch(vpfs::IoRequest& request, vpfs::TimePoint now) override;
  void complete(const vpfs::IoRequest& request, vpfs::Cost cost, vpfs::TimePoint now) override;
  void withdraw(vpfs::IoRequest& request, vpfs::TimePoint now) override;
  [[nodiscard]] vpfs::Result<void> set_share(vpfs::AppId app, const vpfs::Share& share,
                                             vpfs::TimePoint now) override;

  void save(vpfs::AppId app, vpfs::TimePoint now, vpfs::SavedState& to) override;
  void restore(vpfs::AppId app, const vpfs::SavedState& from, vpfs::TimePoint now) override;
  void restored(vpfs::TimePoint now) override;

  [[nodiscard]] std::size_t queued() const override { return flows_.queued(); }
  [[nodiscard]] vpfs::IoRequest* any_queued() const override;
  [[nodiscard]] vpfs::HoldClock& holds() override { return flows_.holds(); }
  [[nodiscard]] vpfs::FlowState flow(vpfs::AppId app) const override { return flows_.state(app); }
  [[nodiscard]] vpfs::WaitReason why_waiting(vpfs::AppId app, vpfs::TimePoint now) const override;
  [[nodiscard]] vpfs::StatusFields report(vpfs::AppId app, vpfs::TimePoint now) const override;

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  // The flows with requests are a ring. The one whose turn it is comes first.
  struct Flow : vpfs::FlowQueue {
    std::uint64_t quantum = 0;
    std::uint64_t deficit = 0;
    bool has_quantum = false;  // of the present turn
    std::uint32_t next = kNone;
    std::uint32_t before = kNone;
    std::uint64_t place = 0;  // in the ring of the process before
  };

  void join(std::uint32_t index);
  void leave(std::uint32_t index);
  void pass_rounds();
  [[nodiscard]] std::uint64_t place_of(std::uint32_t index) const;

  DrrSettings settings_;
  vpfs::FlowTable<Flow> flows_;
  std::uint32_t first_ = kNone;
  std::size_t in_ring_ = 0;
};

}  // namespace example
