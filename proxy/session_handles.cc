// What a session does about requests that wait at the data server behind those of slow clients
// (slow_handles.h).

#include <algorithm>
#include <utility>
#include <vector>

#include <spdlog/spdlog.h>

#include "base/wide.h"
#include "net/endpoint.h"
#include "proxy/session.h"

namespace vpfs::proxy {
namespace {

// A request that has waited for this part of `client_stall` behind a slow transfer is stuck. Most
// servers answer sooner, and an application's budget is a third.
constexpr int kStuckAfter = 4;
// A look that comes late counts as a timely one.
constexpr Duration kLongestStep = std::chrono::milliseconds(100);
// What moves is counted by messages: one more may be on its way.
constexpr std::uint64_t kLargeMessage = std::uint64_t{256} << 10;
// So often some requests are looked at that may wait for a budget.
constexpr Duration kLookAgain = std::chrono::seconds(1);
constexpr std::size_t kLookedAtAgain = 64;

bool is_slower(std::uint64_t moved, BytesPerSecond least, Duration in) {
  return Wide{moved} * kNanosecondsPerSecond <
         Wide{least.count} * static_cast<std::uint64_t>(in.count());
}

}  // namespace

Duration Session::stuck_after() const {
  return stall_limits().client_stall / kStuckAfter;
}

// Notes whether a transfer without a slot waits for its client now. It slows its handle if it lost
// its slot for that, or once it has waited for so long while its client was slower than the least
// rate.
void Session::note_wait(PendingIo& io, bool waits, TimePoint now) {
  if (io.handle == 0 || io.slows_handle || !waits || conversation_->is_queued(io.key)) return;
  if (!io.client_is_slow) {
    const std::uint64_t moved = conversation_->moved(io.key);
    if (io.waited == Duration::zero()) io.moved_before_wait = moved;
    io.waited += std::min(now - looked_at_, kLongestStep);
    if (io.waited < stuck_after()) return;
    const BytesPerSecond least = stall_limits().least_rate;
    const std::uint64_t since = moved - io.moved_before_wait;
    if (!is_slower(since, least, io.waited)) {
      io.waited = {};
      return;
    }
    if (!is_slower(since + kLargeMessage, least, io.waited)) return;
  }
  io.slows_handle = true;
  shared_.slow_handles.slowed(io.handle);
}

void Session::no_longer_stuck(PendingIo& io) {
  if (!std::exchange(io.stuck, false)) return;
  --stuck_;
  shared_.slow_handles.stuck_ended(io.handle);
}

void Session::leave_handle(PendingIo& io) {
  no_longer_stuck(io);
  if (std::exchange(io.slows_handle, false)) shared_.slow_handles.slow_ended(io.handle);
}

// Whether the request has to wait for a slow client of its handle: the server would only queue it,
// or might, and its application's budget for that is used up.
bool Session::waits_for_handle(const PendingIo& io) {
  const SlowHandles& handles = shared_.slow_handles;
  if (!handles.any() || io.handle == 0 || needs_no_slot(io)) return false;
  return handles.is_blocked(io.handle) || (!may_wait_in_queue(io) && handles.is_slow(io.handle));
}

// Whether its application has some of that budget left.
bool Session::may_wait_in_queue(const PendingIo& io) {
  return shared_.queue_stalls.standing(io.virtual_pfs(), identity_.endpoint().address(),
                                       worker_.now(),
                                       stall_limits().client_stall) == StallBudgets::Standing::good;
}

// Slots are for requests that the data server can work on. One that waits there for a client of
// another request of its handle loses its slot to others, as that other request did. That is
// charged to a budget of its application. Without budgets, an application and one that is slow for
// it would take all slots for a moment with each new handle.
//
// Goes before anything is submitted in this event: the dispatcher does not know of that yet, and
// could not give it back.
void Session::check_handles(TimePoint now) {
  const SlowHandles& handles = shared_.slow_handles;
  (to_client_.waits_for_source() ? read_at_ : unread_at_) = now;
  if (stuck_ > 0 || handles.any()) find_stuck(now);
  const std::uint64_t held_back = handles.held_back();
  if (std::exchange(held_back_, held_back) != held_back) hold_back(now);
}

void Session::find_stuck(TimePoint now) {
  // Answers may have come that are not read, because the client takes nothing. Then a request loses
  // its slot later, and holds nothing back.
  const Duration stall = stall_limits().client_stall;
  const bool all_are_read = now - unread_at_ >= stuck_after();
  const bool none_is_read = now - read_at_ >= stall;
  const Duration patience = all_are_read ? stuck_after() : stall;
  std::vector<PendingIo*> queued;
  ios_.for_each([&](IoKey key, PendingIo* io) {
    if (io->held || io->handle == 0) return;
    if (none_is_read || !conversation_->is_queued(key)) no_longer_stuck(*io);
    if (!conversation_->is_queued(key)) return;
    if (io->stuck || io->unscheduled || io->behind_message) return;
    if (io->gave_slot_up && !all_are_read) return;
    if (shared_.slow_handles.is_slow(io->handle)) queued.push_back(io);
  });
  if (queued.empty() || !others_want_slots_of(queued, true, now)) return;
  std::erase_if(queued, [&](const PendingIo* io) { return now - io->sent < patience; });
  std::size_t with_slots = 0;
  for (PendingIo* io : queued) {
    if (all_are_read) {
      io->stuck = true;
      ++stuck_;
      shared_.slow_handles.stuck(io->handle);
    }
    // Others of its client go on.
    leave_turns(*io);
    if (std::exchange(io->on_probation, false)) --on_their_way_;
    if (io->gave_slot_up) continue;
    ++with_slots;
    charge_for_queue(*io, patience, now);
    give_slots_up({io});
  }
  if (with_slots == 0) return;
  spdlog::log(client_stall_.is_news(now) ? spdlog::level::warn : spdlog::level::debug,
              "client {}: {} of its requests wait at the data server for a slow client of the same "
              "file, and give up their slots",
              net::to_string(identity_.endpoint()), with_slots);
}

// The request is about to lose its slot, which it had for nothing for `patience`. That others
// waited for all of that time is not known.
void Session::charge_for_queue(PendingIo& io, Duration patience, TimePoint now) {
  if (!worker_.dispatcher().others_wait({&io}, false, now)) return;
  const bool could_wait = may_wait_in_queue(io);
  (void)shared_.queue_stalls.take(io.virtual_pfs(), identity_.endpoint().address(),
                                  std::max(io.sent, now - patience), now,
                                  stall_limits().client_stall);
  if (could_wait && !may_wait_in_queue(io)) shared_.slow_handles.hold_back();
}

// Takes the requests back from the scheduler that have to wait for slow clients of their handles.
void Session::hold_back(TimePoint now) {
  std::vector<PendingIo*> waiting;
  ios_.for_each([&](IoKey, PendingIo* io) {
    if (io->held && io->submitted && waits_for_handle(*io)) waiting.push_back(io);
  });
  // Others are released already.
  std::vector<PendingIo*> taken = take_back(std::move(waiting), now);
  std::ranges::sort(taken, {}, &PendingIo::number);
  for (PendingIo* io : taken) park(*io, stage::SlowClient::of_its_handle);
}

void Session::check_behind_handles(TimePoint now) {
  looked_at_ = now;
  if (behind_handles_.empty()) return;
  const std::uint64_t freed = shared_.slow_handles.freed();
  if (std::exchange(freed_, freed) != freed || worker_.dispatcher().bypassed()) {
    submit_behind_handles(behind_handles_.size());
  } else if (now - looked_again_ >= kLookAgain) {
    const std::size_t before = behind_handles_.size();
    submit_behind_handles(kLookedAtAgain);
    const bool all_went = behind_handles_.size() + std::min(before, kLookedAtAgain) == before;
    if (!all_went) looked_again_ = now;
  }
}

void Session::submit_behind_handles(std::size_t most) {
  const auto end =
      behind_handles_.begin() + static_cast<std::ptrdiff_t>(std::min(most, behind_handles_.size()));
  const std::vector<IoKey> first(behind_handles_.begin(), end);
  behind_handles_.erase(behind_handles_.begin(), end);
  for (const IoKey key : first) {
    if (PendingIo* const io = parked_io(key)) submit(*io);  // parks it again if it may not go
  }
}

// A request that is still in its queue will be answered: it only loses its slot. If it were given
// up, its data would pass unscheduled. Takes such requests out of `overdue`.
void Session::spare_queued(std::vector<PendingIo*>& overdue, TimePoint now) {
  std::vector<PendingIo*> queued;
  std::erase_if(overdue, [&](PendingIo* io) {
    const bool spared = conversation_->is_queued(io->key);
    if (spared) queued.push_back(io);
    return spared;
  });
  for (PendingIo* io : queued) io->last_progress = now;
  std::erase_if(queued, [](const PendingIo* io) { return io->gave_slot_up; });
  if (queued.empty()) return;
  give_slots_up(queued);
  tell_silence(queued.size(), worker_.settings().config.timeouts.service);
}

}  // namespace vpfs::proxy
