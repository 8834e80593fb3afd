#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "base/saved/saved_state.h"
#include "schedulers/crowd_clock.h"
#include "schedulers/hold_times.h"
#include "schedulers/limits.h"
#include "schedulers/loans.h"
#include "schedulers/request.h"
#include "schedulers/share.h"
#include "schedulers/status_fields.h"

namespace vpfs {

// A flow's requests in the queue and at the data server.
struct FlowState {
  std::size_t queued = 0;
  std::size_t outstanding = 0;
  // The head of the flow's queue. Nothing if a policy would have to search far back in a common
  // queue.
  const IoRequest* oldest = nullptr;
};

// Why a flow's head request has not been sent. `eligible` is set if it waits for a time.
struct WaitReason {
  std::string_view reason;  // a static text
  std::optional<TimePoint> eligible = std::nullopt;
  std::optional<AppId> kept_for = std::nullopt;  // with kSlotIsKept
};

// The WaitReason of a head request with nothing before it.
inline constexpr std::string_view kIsNext = "is the next to be sent";
// The WaitReason of a head that does not go since another flow is expected.
inline constexpr std::string_view kSlotIsKept = "a slot is kept for";
// The WaitReason of a head that Policy::set_limits() holds.
inline constexpr std::string_view kCoordinatorsLimit = "the coordinator's limit";

// Decides in which order the requests of one traffic class go to the data server, and when each may
// go at the earliest. The Scheduler bounds how much is outstanding; it owns the policies and is
// their only caller.
//
// A Policy is a data structure: it owns no thread, takes no lock and reads no clock; `now` never
// goes back. Requests are borrowed: each one given to enqueue() leaves exactly once, through
// dispatch(), withdraw() or let_pass(), and what was dispatched comes back through complete().
// Nothing here allocates once a flow is known.
class Policy {
 public:
  // The request that goes next; nullptr: none may. Then `until` says when time alone changes that.
  struct Head {
    IoRequest* request = nullptr;
    TimePoint until = kNever;
    // Without a request: the one that would go if no slot were kept for another flow.
    const IoRequest* kept_back = nullptr;
  };

  virtual ~Policy() = default;

  // REQUIRES: the request is not queued; its app has been given to set_share().
  virtual void enqueue(IoRequest& request, TimePoint now) = 0;
  [[nodiscard]] virtual Head head(TimePoint now) = 0;
  // What head() has just kept back could not go in any case: the depth has no room for it.
  virtual void has_no_room(TimePoint /*now*/) {}
  // Takes out what head() has just answered for the same `now`.
  virtual void dispatch(IoRequest& request, TimePoint now) = 0;
  // The data server is done with a dispatched request. `cost` is what it really did, at most
  // request.cost.
  virtual void complete(const IoRequest& request, Cost cost, TimePoint now) = 0;
  // Takes a queued request back. It is not charged.
  virtual void withdraw(IoRequest& request, TimePoint now) = 0;
  // Takes out a queued request that goes although its turn has not come, and does not come back.
  // Its flow owes what dispatch() would have charged it, if the policy charges flows at all.
  virtual void let_pass(IoRequest& request, TimePoint now) { withdraw(request, now); }

  // Adds a flow or changes its share. An error says which promise cannot be kept and which one
  // could be. The flow is added all the same, without the promise.
  [[nodiscard]] virtual Result<void> set_share(AppId app, const Share& share, TimePoint now) = 0;
  // Sets, changes or lifts a coordinator's limits of a flow. Neither this nor set_share() changes
  // anything of the other. False: the policy cannot enforce them (PolicyKind::caps) and did
  // nothing. REQUIRES: the flow has been given to set_share(). Called for every flow with limits as
  // well when the time that requests may be held has changed.
  [[nodiscard]] virtual bool set_limits(AppId /*app*/, const Limits& /*limits*/,
                                        TimePoint /*now*/) {
    return false;
  }
  // Ends a flow's claims and limits; its queued requests leave by the default share. The AppId may
  // become another flow's when nothing of it is queued or outstanding.
  virtual void remove(AppId app, TimePoint now) { (void)set_share(app, {}, now); }
  // The flow got this service elsewhere since the last call. It holds no head of the flow for
  // longer than `delay`.
  virtual void served_elsewhere(AppId /*app*/, Cost /*cost*/, Duration /*delay*/,
                                TimePoint /*now*/) {}
  // Service elsewhere is no longer reported. What was reported holds no head from now on.
  virtual void forget_elsewhere(TimePoint /*now*/) {}
  // A dispatched request did this much more than its cost, and than what previous calls said. It
  // may have been completed.
  virtual void charge_more(const IoRequest& /*request*/, Cost /*cost*/, TimePoint /*now*/) {}

  // For a successor of the same policy in another process: what is known of one flow, and of all
  // together. restore() comes when the successor knows the flow's share and limits, and its queued
  // requests, if they were there, are queued again; restore_all() comes first. None of them changes
  // what is queued.
  virtual void save_all(TimePoint /*now*/, SavedState& /*to*/) {}
  virtual void save(AppId /*app*/, TimePoint /*now*/, SavedState& /*to*/) {}
  virtual void restore_all(const SavedState& /*from*/, TimePoint /*now*/) {}
  virtual void restore(AppId /*app*/, const SavedState& /*from*/, TimePoint /*now*/) {}
  // All flows that the successor has are restored. Some may be missing.
  virtual void restored(TimePoint /*now*/) {}

  [[nodiscard]] virtual std::size_t queued() const = 0;
  // Any queued request, for withdrawing all of them; nullptr: there is none.
  [[nodiscard]] virtual IoRequest* any_queued() const = 0;
  // Fetches what set_limits() of a flow will need into the cache: its rows and, a few flows later,
  // its head.
  virtual void prefetch_rows(AppId /*app*/) const {}
  virtual void prefetch_head(AppId /*app*/) const {}

  [[nodiscard]] virtual Loans loans(AppId /*app*/) const { return {}; }

  // Counts for how long the heads of flows were held. The policy reports why, the Scheduler what is
  // sent.
  [[nodiscard]] virtual HoldClock& holds() = 0;
  // Measures shares that are missed. The policy reports when flows have requests, the Scheduler
  // whether the server is crowded. nullptr: the policy does not share by weight.
  [[nodiscard]] virtual CrowdClock* crowds() { return nullptr; }

  // For status; not on the hot path.
  [[nodiscard]] virtual FlowState flow(AppId app) const = 0;
  // Why the head of a flow's queue waits, apart from the depth. REQUIRES: it has one.
  [[nodiscard]] virtual WaitReason why_waiting(AppId app, TimePoint now) const = 0;
  // What the policy knows about a flow beyond its queue.
  [[nodiscard]] virtual StatusFields report(AppId /*app*/, TimePoint /*now*/) const { return {}; }
  // What it knows about the data server.
  [[nodiscard]] virtual StatusFields server(TimePoint /*now*/) const { return {}; }
};

}  // namespace vpfs
