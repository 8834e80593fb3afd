#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedulers/depth_controller.h"
#include "schedulers/depth_gate.h"
#include "schedulers/policy.h"
#include "schedulers/rate_limits.h"
#include "schedulers/start_tag.h"
#include "schedulers/total_service.h"

namespace vpfs {

// How traffic classes share a data server. Every request says which one it belongs to.
struct TrafficClasses {
  enum class Mode : std::uint8_t {
    none,       // one queue set: the classes mean nothing
    apportion,  // SFQ between the classes, by their shares
    strict,     // a class is served when those before it have nothing that may go
  };
  struct Class {
    std::string name;
    std::uint32_t share = 1;  // for apportion; 1 ... Share::kMaxWeight

    bool operator==(const Class&) const = default;
  };

  static constexpr std::size_t kMost = 16;

  Mode mode = Mode::none;
  std::vector<Class> classes = {};  // at most kMost; for strict the first one is the highest
  // For strict: a class whose head has waited this long sends one request.
  std::optional<Duration> max_starvation = {};

  bool operator==(const TrafficClasses&) const = default;
};

// Decides which queued request goes to the data server next: a policy for each traffic class says
// in which order, the classes say whose turn it is, and the depth says how much may be outstanding.
//
// A Scheduler is a data structure: it owns no thread, takes no lock and reads no clock. The
// dispatcher calls it under its own lock and passes the time of the current loop turn, which never
// goes back. Requests are borrowed: every request given to enqueue() leaves exactly once,
// through next(), withdraw() or let_pass(); one that left through next() is outstanding until
// complete().
// Nothing here allocates once a flow has been seen.
class Scheduler {
 public:
  // The answer of next(). Without a request nothing may be sent now: ask again after enqueue() or
  // complete(), or at `until`.
  struct Decision {
    IoRequest* request = nullptr;
    TimePoint until = kNever;
  };
  // Makes the policy of one class, for the part of the server that the class has at least.
  struct Part {
    std::uint32_t share = 1;
    std::uint32_t of = 1;
    RateLimits::User user = 0;  // of the limits
    // What the traffic class is served by all schedulers of the data server; nullptr: there are
    // no others.
    TotalService* total = nullptr;

    // This part's share of a property of the whole data server. Only zero gives zero.
    [[nodiscard]] std::uint64_t of_whole(std::uint64_t whole) const;
  };
  using MakePolicy = std::function<std::unique_ptr<Policy>(RateLimits& limits, Part part)>;

  // One for each traffic class.
  using TotalServices = std::array<TotalService, TrafficClasses::kMost>;

  // `shared`, if given, holds the limits of the flows for all schedulers on it. It outlives the
  // scheduler. A scheduler that ends before the others has nothing queued. Every scheduler is given
  // every share. `totals`, if given, outlives the scheduler too. With a policy that counts service
  // elsewhere, its schedulers share by what each flow gets from all of them.
  Scheduler(const MakePolicy& make_policy, Depth depth, std::optional<AutoDepth> auto_depth,
            TrafficClasses classes, RateLimits* shared = nullptr, TotalServices* totals = nullptr);
  ~Scheduler() { limits_.leave(user_); }
  Scheduler(const Scheduler&) = delete;  // policies refer to its limits
  Scheduler& operator=(const Scheduler&) = delete;

  // REQUIRES: the request is not queued here; its app has been given to set_share().
  void enqueue(IoRequest& request, TimePoint now);
  [[nodiscard]] Decision next(TimePoint now);
  // The data server is done with a request that next() gave out. `cost` is what it really did, at
  // most request.cost (a read at the end of a file does less).
  void complete(const IoRequest& request, Cost cost, TimePoint now);
  // A request that next() gave out did more than it was charged: an estimate was too low. It may
  // have been completed.
  struct Excess {
    Cost cost = 0;
    Bytes size = {};
  };
  void charge_more(const IoRequest& request, Excess more, TimePoint now);
  // Takes a queued request back (deadline passed, client gone). It is not charged.
  void withdraw(IoRequest& request, TimePoint now);
  // Takes out a queued request that goes although nothing allows it yet. Its flow owes what it
  // would have been charged. It takes no slot, and does not come back.
  void let_pass(IoRequest& request, TimePoint now);

  // As Policy has them, for the flow in all classes.
  [[nodiscard]] Result<void> set_share(AppId app, const Share& share, TimePoint now);
  void remove(AppId app, TimePoint now);
  // As Policy has it. No request waits for these limits for more than half of set_hold().
  [[nodiscard]] bool set_limits(AppId app, const Limits& limits, TimePoint now);
  // As Policy has them.
  void prefetch_rows(AppId app) const {
    for (const Class& each : classes_) each.policy->prefetch_rows(app);
  }
  void prefetch_head(AppId app) const {
    for (const Class& each : classes_) each.policy->prefetch_head(app);
  }
  // How long a request may be held before its owner fails it; RateLimits::kHold until then.
  void set_hold(Duration hold, TimePoint now);
  // The flow got this service elsewhere since the last call. It counts as if it had been given
  // here, but holds no head of the flow for longer than `delay`, nor for more than half of
  // set_hold(). The classes in which the flow is queued divide it; without any, it counts for the
  // class that the flow used last. A caller with several schedulers divides it by
  // flow(app).queued.
  void served_elsewhere(AppId app, Cost cost, Duration delay, TimePoint now);
  // As Policy has it.
  void forget_elsewhere(TimePoint now) {
    for (const Class& each : classes_) each.policy->forget_elsewhere(now);
  }

  // For a successor in another process, as Policy has them. Its own limits are saved with the
  // flows; limits that schedulers share are up to their owner, as is the load.
  void save_all(TimePoint now, SavedState& to);
  void save(AppId app, TimePoint now, SavedState& to);
  void restore_all(const SavedState& from, TimePoint now);
  void restore(AppId app, const SavedState& from, TimePoint now);
  void restored(TimePoint now) {
    for (const Class& each : classes_) each.policy->restored(now);
  }

  // For replacing a scheduler by another: any queued request (nullptr: none), and the load that is
  // outstanding. The load given to occupy() counts against the depth until vacate().
  [[nodiscard]] IoRequest* any_queued() const;
  [[nodiscard]] DepthGate::Load load() const { return gate_.load(); }
  void occupy(DepthGate::Load load) { gate_.occupy(load); }
  void vacate(Cost cost) { gate_.vacate(cost); }
  // The same of several requests, or of all that are left.
  void vacate(DepthGate::Load load) { gate_.vacate(load); }

  // For status; not on the hot path.
  [[nodiscard]] FlowState flow(AppId app) const;
  // Why the flow's oldest request waits; an empty reason when it has none.
  [[nodiscard]] WaitReason why_waiting(AppId app, TimePoint now);
  [[nodiscard]] StatusFields report(AppId app, TimePoint now) const;
  [[nodiscard]] StatusFields server(TimePoint now) const;
  [[nodiscard]] const Depth& depth() const { return gate_.depth(); }
  // Whether the depth kept a request back at the last next(), or would keep back any.
  [[nodiscard]] bool depth_reached() const { return !gate_.has_room() || kept_by_cost_; }
  [[nodiscard]] std::size_t outstanding() const { return gate_.requests(); }
  [[nodiscard]] std::size_t queued() const;
  // For how long the heads of the flow's queues were held, over all classes, up to now. The times
  // only grow until remove(); a later set_share() begins at zero. A caller that moves requests to
  // another scheduler adds up the times of both.
  [[nodiscard]] HoldTimes held(AppId app, TimePoint now) const;
  // The flow's, over all classes.
  [[nodiscard]] Loans loans(AppId app) const;
  // The flow's Crowding in one traffic class since the scheduler began. Nothing: the policy does
  // not share by weight.
  [[nodiscard]] std::optional<Crowding> crowding(AppId app, std::uint8_t traffic_class,
                                                 TimePoint now) const;

 private:
  struct Class {
    std::unique_ptr<Policy> policy;
    HoldClock* holds = nullptr;    // the policy's
    CrowdClock* crowds = nullptr;  // likewise, if it has one
    StartTag start;                // with the class's share for a weight
    TimePoint served = {};         // the last time, or when the class last had nothing queued
  };
  struct Choice {
    Policy::Head head = {};
    Class* from = nullptr;  // the class of head.request, if there is one
  };

  [[nodiscard]] bool has_classes() const { return last_index_ > 0; }
  [[nodiscard]] Class& class_of(const IoRequest& request) {
    return has_classes() ? classes_[request.traffic_class] : classes_.front();
  }
  // Where there is one class, a request seldom needs these, so its path does without their code.
  [[gnu::noinline]] void enqueue_in_class(IoRequest& request, TimePoint now);
  [[gnu::noinline]] void send_and_tell(Class& from, IoRequest& request, TimePoint now);
  [[gnu::noinline]] void complete_and_tell(const IoRequest& request, Cost cost, TimePoint now);
  [[gnu::noinline]] void note_kept_back(const IoRequest& request, TimePoint now);
  // The policies let no request go before `until`, so the data server may run dry.
  [[gnu::noinline]] Decision none_may_go(TimePoint until, TimePoint now);
  // Whatever the reason is, nothing is sent before `until`.
  [[gnu::noinline]] Decision send_nothing(TimePoint until, TimePoint now);
  [[nodiscard]] Choice choose(TimePoint now);
  [[nodiscard, gnu::noinline]] Choice choose_among_classes(TimePoint now);
  [[nodiscard]] bool goes_before(const Class& one, const Class& earlier, TimePoint now) const;
  [[nodiscard]] bool starves(const Class& one, TimePoint now) const;
  void charge(Class& one, Cost cost, TimePoint now);
  void charge_beside(Class& one, Cost cost);
  void add_class(std::unique_ptr<Policy> policy, std::uint32_t share);

  DepthGate gate_;
  bool kept_by_cost_ = false;  // at the last next(): there was a slot, but the cost was too much
  // Classes or a controller are told of each request that is sent, and of its end.
  bool tells_more_ = false;
  std::unique_ptr<RateLimits> own_limits_;  // nothing: shared
  RateLimits& limits_;
  RateLimits::User user_;
  std::optional<DepthController> controller_;
  TrafficClasses settings_;
  std::vector<Class> classes_;            // at least one
  std::uint8_t last_index_ = 0;           // of classes_
  std::vector<std::uint8_t> last_class_;  // by flow; empty without classes
  StartTag::Tag class_time_ = 0;          // v of the classes
};

}  // namespace vpfs
