// What a session checks a few times a second: peers that are gone, stall or never answer.

#include <algorithm>
#include <utility>

#include <spdlog/spdlog.h>

#include "net/endpoint.h"
#include "net/socket_options.h"
#include "proxy/session.h"

namespace vpfs::proxy {
namespace {

// A request that is silent for so long keeps no others from going to a successor.
constexpr Duration kSilentClient = std::chrono::seconds(2);
constexpr Duration kSilentServer = std::chrono::seconds(10);
// A request that goes on and on is charged after each so many bytes.
constexpr std::uint64_t kChargedAgain = std::uint64_t{256} << 20;

}  // namespace

void Session::check_time(TimePoint now) {
  if (closing_ || packed_) return;
  if (shared_.leaving.load(std::memory_order_relaxed) && worker_.send_off(*this)) return;
  learn_client_timeout();
  check_hang_up(now);
  check_answers(now);
  check_message(now);
  check_handles(now);
  check_client_stall(now);
  check_behind_handles(now);
  check_server_stall(now);
  check_service_time(now);
  if (shared_.draining.load(std::memory_order_relaxed)) check_drain();
  check_rest(now);
  update_byte_counters();
  refused_ = 0;
  if (std::exchange(refusing_, false) && !std::exchange(flush_pending_, true)) {
    worker_.flush_later(*this);
  }
}

void Session::check_hang_up(TimePoint now) {
  const bool is_read = !to_server_.waits() && !to_server_.paused();
  if (!hang_up_.is_due(is_read, now)) return;
  if (net::has_hung_up(client_.native_handle())) close("closed by the client");
}

void Session::check_answers(TimePoint now) {
  const Duration limit = worker_.settings().config.timeouts.service;
  if (!answers_.is_overdue(to_server_.waits(), to_client_.output().bytes_sent(), limit, now))
    return;
  conversation_->forget_answers();
  if (!std::exchange(flush_pending_, true)) worker_.flush_later(*this);
}

// Not for file data, which may pause while nothing waits for the server (check_client_stall()).
void Session::check_message(TimePoint now) {
  if (!conversation_->occupies_server()) return;
  const bool waits = to_server_.in_mid_message() && !conversation_->client_sends_data() &&
                     to_server_.waits_for_source();
  if (!message_.is_overdue(waits, to_server_.output().bytes_sent(), now)) return;
  ++shared_.counters.client_stalls;
  close("the client stopped in the middle of a message");
}

// Slots are for requests that the data server can work on. A request that waits for its client
// loses its slot when the client is slower than the least rate and its application has used up its
// budget, which counts only while others wait. A started transfer goes on without a slot. The
// client's other requests wait until it moves again. During a bypass nothing has a slot, and
// nothing waits.
void Session::check_client_stall(TimePoint now) {
  if (worker_.dispatcher().bypassed()) {
    if (!parked_.empty()) submit_all_parked();
    return;
  }
  const bool takes_nothing = to_client_.output().blocked_since().has_value();
  const Waiting waiting = outstanding_ > 0 ? find_waiting(takes_nothing, now) : Waiting{};
  const ClientStallWatch::State state = {.takes_nothing = takes_nothing,
                                         .owes_data = waiting.for_data || !waiting.late.empty(),
                                         .owes_late_data = waiting.for_late_data,
                                         .sent = data_arrived(),
                                         .taken = to_client_.output().bytes_sent(),
                                         .has_held = held_requests_ > 0,
                                         .others_wait = others_wait(waiting, now),
                                         .waiting = waiting.with_slots,
                                         .late = waiting.late};
  switch (client_stall_.look(state, stall_limits(), now)) {
    case ClientStallWatch::Verdict::moves:
      break;
    case ClientStallWatch::Verdict::begins_to_stall:
      stall(waiting.with_slots, now);
      break;
    case ClientStallWatch::Verdict::stalls:
      lose_slots_for_client(waiting.with_slots);
      break;
  }
  const bool waited_for = !waiting.with_slots.empty() || !waiting.late.empty();
  const bool has_stalled = client_stall_.stalled() || !waiting.late.empty();
  if (waited_for && has_stalled &&
      client_stall_.is_hopeless(state.others_wait, stall_limits().client_stall) &&
      conversation_->occupies_server()) {
    return close("the client kept the data server waiting; it will retry its I/O");
  }
  if (client_stall_.stalled()) {
    // Others of the same client need not wait for one that does not move.
    ios_.for_each([this](IoKey, PendingIo* io) { leave_turns(*io); });
  } else if (!parked_.empty()) {
    submit_all_parked();
  }
}

// File data of the client; the conversation counts a message when it begins.
std::uint64_t Session::data_arrived() const {
  const bool is_in_data = conversation_->client_sends_data();
  return conversation_->data_from_client() - (is_in_data ? to_server_.left_of_message() : 0);
}

// Asks only while the client lags.
bool Session::others_wait(const Waiting& waiting, TimePoint now) {
  if (!client_stall_.lags()) return false;
  // The client's other requests share its slow link, but they must not wait for one that makes no
  // progress.
  const bool stands_still = client_stall_.hardly_moves();
  std::vector<PendingIo*> all = waiting.with_slots;
  all.insert(all.end(), waiting.late.begin(), waiting.late.end());
  return !all.empty() && others_want_slots_of(all, stands_still, now);
}

bool Session::others_want_slots_of(const std::vector<PendingIo*>& ios, bool any_client,
                                   TimePoint now) {
  return shared_.leaving.load(std::memory_order_relaxed) ||
         worker_.dispatcher().others_wait(ios, any_client, now);
}

Session::Waiting Session::find_waiting(bool client_takes_nothing, TimePoint now) {
  Waiting waiting;
  const bool clients_turn = to_server_.waits_for_source();
  const bool some_behind = to_server_.output().waiting_since().has_value();
  ios_.for_each([&](IoKey key, PendingIo* io) {
    if (io->held) return;
    io->behind_message = io->behind_message && some_behind;
    const bool for_data =
        io->behind_message ||
        (clients_turn && conversation_->awaits_client(key, to_server_.in_mid_message()));
    if (io->gave_slot_up || io->unscheduled) {
      waiting.for_late_data |= for_data;
      const bool takes_none = client_takes_nothing && io->kind != IoKind::write;
      note_wait(*io, for_data || takes_none, now);
      const bool keeps_thread = !io->unscheduled && conversation_->occupies_server();
      if (keeps_thread && (for_data || client_takes_nothing)) waiting.late.push_back(io);
    } else if (for_data || client_takes_nothing) {
      waiting.for_data |= for_data;
      waiting.with_slots.push_back(io);
    }
  });
  return waiting;
}

void Session::stall(const std::vector<PendingIo*>& waiting, TimePoint now) {
  ++shared_.counters.client_stalls;
  park_all(now);
  lose_slots_for_client(waiting);
  spdlog::log(client_stall_.is_news(now) ? spdlog::level::warn : spdlog::level::debug,
              "client {} {}: {} of its requests give up their slots until it does",
              net::to_string(identity_.endpoint()),
              to_client_.output().blocked_since() ? "takes no data"
                                                  : "does not send the data of its writes",
              waiting.size());
}

// Takes the held requests back from the scheduler.
void Session::park_all(TimePoint now) {
  std::vector<PendingIo*> submitted;
  std::vector<PendingIo*> parked;
  ios_.for_each([&](IoKey, PendingIo* io) {
    if (io->held) (io->submitted ? submitted : parked).push_back(io);
  });
  // Others are released already.
  const std::vector<PendingIo*> taken = take_back(std::move(submitted), now);
  parked.insert(parked.end(), taken.begin(), taken.end());
  std::ranges::sort(parked, {}, &PendingIo::number);
  parked_.clear();
  behind_handles_.clear();
  for (PendingIo* io : parked) park(*io, stage::SlowClient::its_own);
}

// Returns those that the scheduler still had.
std::vector<PendingIo*> Session::take_back(std::vector<PendingIo*> ios, TimePoint now) {
  std::vector<PendingIo*> taken = worker_.dispatcher().take_back(std::move(ios), now);
  for (PendingIo* io : taken) {
    io->submitted = false;
    if (std::exchange(io->on_probation, false)) --on_their_way_;
    leave_turns(*io);
  }
  return taken;
}

void Session::lose_slots_for_client(const std::vector<PendingIo*>& waiting) {
  for (PendingIo* io : waiting) io->client_is_slow = true;
  give_slots_up(waiting);
}

void Session::give_slots_up(const std::vector<PendingIo*>& waiting) {
  for (PendingIo* io : waiting) {
    io->gave_slot_up = true;
    io->moved_in_time = conversation_->moved(io->key);
    worker_.gave_slot_up(*io);
  }
}

// A released request must not arrive after its client has given up. So the connection is closed
// when it has been blocked for too long.
void Session::check_server_stall(TimePoint now) {
  const Duration most = shared_.server_stall.load(std::memory_order_relaxed);
  const PumpOutput& output = to_server_.output();
  switch (late_forwarding(output.blocked_since(), output.waiting_since(), most, now)) {
    case LateForwarding::none:
      break;
    case LateForwarding::server_blocked:
      ++shared_.counters.server_stalls;
      close("the data server takes no data");
      break;
    case LateForwarding::client_in_message:
      ++shared_.counters.client_stalls;
      close("the client stopped in the middle of a message that a released request waits for");
      break;
  }
}

// How long a request may make no progress. One that has been given up on by its client or by the
// data server never moves again, and would keep the session from a successor, where its held
// requests go on.
Duration Session::silence_limit(IoKey key) {
  const Duration limit = worker_.settings().config.timeouts.service;
  const bool leaving = shared_.leaving.load(std::memory_order_relaxed);
  if (!leaving || held_requests_ == 0) return limit;
  const bool for_client = to_client_.output().blocked_since().has_value() ||
                          conversation_->awaits_client(key, to_server_.in_mid_message());
  return std::min(limit, for_client ? kSilentClient : kSilentServer);
}

void Session::check_service_time(TimePoint now) {
  if (outstanding_ == 0) return;
  std::vector<PendingIo*> silent;
  std::vector<PendingIo*> over;
  std::vector<PendingIo*> overdue;
  Duration least = worker_.settings().config.timeouts.service;
  const bool client_takes = !to_client_.output().blocked_since().has_value();
  const std::uint64_t client_moved = to_client_.output().bytes_sent() + data_arrived();
  if (std::exchange(client_moved_, client_moved) != client_moved) client_moved_at_ = now;
  ios_.for_each([&](IoKey key, PendingIo* io) {
    if (io->held) return;
    const std::uint64_t moved = conversation_->moved(key);
    if (std::exchange(io->moved, moved) != moved) io->last_progress = now;
    if (moved >= io->told_moved + kChargedAgain) {
      io->told_moved = moved;
      worker_.has_moved(*io);
    }
    const Duration limit = silence_limit(key);
    const Silence silence = silence_of(now - io->last_progress, limit);
    if (silence == Silence::overdue) {
      overdue.push_back(io);
      least = std::min(least, limit);
    } else if (silence != Silence::none && client_takes && !conversation_->end_shows(key)) {
      (silence == Silence::pause ? silent : over).push_back(io);
    }
  });
  std::erase_if(silent, [](const PendingIo* io) { return io->gave_slot_up; });
  give_slots_up(silent);
  for (PendingIo* io : over) {
    give_slots_up({io});
    conversation_->ended(io->key);
    finished({.key = io->key, .bytes = io->moved});
  }
  if (overdue.empty()) return;
  if (!shared_.leaving.load(std::memory_order_relaxed)) {
    if (!spare_slow_client(overdue, now)) return;
    spare_queued(overdue, now);
  }
  if (!overdue.empty()) give_up(overdue, least);
}

// What was given up is charged no more and passes as it comes. So a client could stop for as long
// as that takes, and have the rest of a large transfer for nothing. One that stops loses its
// connection; one that is slow keeps its requests, without slots. Takes these out of `overdue`;
// false: the session is closed.
bool Session::spare_slow_client(std::vector<PendingIo*>& overdue, TimePoint now) {
  const bool client_takes = !to_client_.output().blocked_since().has_value();
  const bool clients_turn = to_server_.waits_for_source();
  std::vector<PendingIo*> slow;
  std::erase_if(overdue, [&](PendingIo* io) {
    const bool for_client =
        !client_takes ||
        (clients_turn && conversation_->awaits_client(io->key, to_server_.in_mid_message()));
    if (for_client) slow.push_back(io);
    return for_client;
  });
  if (slow.empty()) return true;
  if (now - client_moved_at_ >= worker_.settings().config.timeouts.service) {
    ++shared_.counters.client_stalls;
    close("the client stopped in the middle of a transfer");
    return false;
  }
  for (PendingIo* io : slow) io->last_progress = now;
  std::erase_if(slow, [](const PendingIo* io) { return io->gave_slot_up; });
  lose_slots_for_client(slow);
  return true;
}

// Gives up requests whose end will never be seen.
void Session::give_up(const std::vector<PendingIo*>& overdue, Duration silence) {
  give_slots_up(overdue);
  for (PendingIo* io : overdue) {
    conversation_->forget(io->key);
    forget(*io);
    worker_.abandoned(*io);
    --outstanding_;
  }
  tell_silence(overdue.size(), silence);
}

void Session::tell_silence(std::size_t requests, Duration silence) const {
  spdlog::warn("client {}: {} of its requests made no progress for {}: their slots are free again",
               net::to_string(identity_.endpoint()), requests, to_string(silence));
}

void Session::check_drain() {
  std::size_t promised = outstanding_;
  ios_.for_each([&](IoKey, PendingIo* io) {
    if (io->held && io->submitted) ++promised;
  });
  const auto is_done = [](const Pump& pump) {
    return pump.output().empty() && !pump.in_mid_message();
  };
  const bool delivered = is_done(to_client_) && is_done(to_server_);
  if (promised == 0 && delivered && conversation_->at_rest()) close("the proxy drains");
}

void Session::update_byte_counters() {
  shared_.counters.bytes_to_server += to_server_.output().bytes_sent() - counted_to_server_;
  shared_.counters.bytes_to_client += to_client_.output().bytes_sent() - counted_to_client_;
  counted_to_server_ = to_server_.output().bytes_sent();
  counted_to_client_ = to_client_.output().bytes_sent();
}

}  // namespace vpfs::proxy
