// What a session does about requests that wait at the data server behind those of slow clients
// (slow_handles.h).

#include <algorithm>
#include <utility>
#include <vector>

#include <spdlog/spdlog.h>

#include "net/endpoint.h"
#include "proxy/session.h"

namespace vpfs::proxy {
namespace {

// A request that has waited for this part of `client_stall` behind a slow transfer is stuck. Most
// servers answer sooner, and an application's budget is a third.
constexpr int kStuckAfter = 4;

}  // namespace

// A transfer without a slot waits for its client. That alone shows a slow client only where the
// transfer lost its slot for it.
void Session::slows_handle(PendingIo& io, TimePoint now) {
  if (io.handle == 0 || io.slows_handle || conversation_->is_queued(io.key)) return;
  const bool lost_its_slot = io.gave_slot_up && !io.on_probation;
  if (!lost_its_slot && now - io.sent < stall_limits().client_stall) return;
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

// Whether the request has to wait for a slow client of its handle. The server would only queue it.
bool Session::waits_for_handle(const PendingIo& io) const {
  return shared_.slow_handles.is_blocked(io.handle) && !needs_no_slot(io);
}

// Slots are for requests that the data server can work on. One that waits there for a client of
// another request of its handle loses its slot to others, as that other request did. The time that
// they waited is charged to its application as if its own client were slow: two connections
// together must not cost more than one.
void Session::check_handles(TimePoint now) {
  if (stuck_ > 0 || shared_.slow_handles.any()) find_stuck(now);
  if (behind_handles_.empty()) return;
  const std::uint64_t freed = shared_.slow_handles.freed();
  if (std::exchange(freed_, freed) == freed && !worker_.dispatcher().bypassed()) return;
  for (const IoKey key : std::exchange(behind_handles_, {})) {
    if (PendingIo* const io = parked_io(key)) submit(*io);  // parks it again if it may not go
  }
}

void Session::find_stuck(TimePoint now) {
  const Duration patience = stall_limits().client_stall / kStuckAfter;
  std::vector<PendingIo*> found;
  ios_.for_each([&](IoKey key, PendingIo* io) {
    if (io->held || io->handle == 0) return;
    const bool queued = conversation_->is_queued(key);
    if (!queued) return no_longer_stuck(*io);
    if (io->stuck || io->unscheduled || io->behind_message || now - io->sent < patience) return;
    if (shared_.slow_handles.is_slow(io->handle)) found.push_back(io);
  });
  if (found.empty() || !worker_.dispatcher().others_wait(found, true, now)) return;
  const bool is_charged = worker_.dispatcher().others_wait(found, false, now);
  std::vector<PendingIo*> with_slots;
  for (PendingIo* io : found) {
    io->stuck = true;
    ++stuck_;
    shared_.slow_handles.stuck(io->handle);
    if (io->gave_slot_up) continue;
    with_slots.push_back(io);
    if (is_charged) {
      (void)shared_.stalls.take(io->virtual_pfs(), identity_.endpoint().address(), io->sent, now,
                                stall_limits().client_stall);
    }
  }
  give_slots_up(with_slots);
  spdlog::log(client_stall_.is_news(now) ? spdlog::level::warn : spdlog::level::debug,
              "client {}: {} of its requests wait at the data server for a slow client of the same "
              "file, and give up their slots",
              net::to_string(identity_.endpoint()), with_slots.size());
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
