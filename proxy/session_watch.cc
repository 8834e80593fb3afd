// What a session looks at a few times a second: peers that are gone, that stall, or that never
// answer.

#include <algorithm>
#include <utility>

#include <spdlog/spdlog.h>

#include "net/endpoint.h"
#include "net/socket_options.h"
#include "proxy/session.h"

namespace vpfs::proxy {
namespace {
// How often a client whose stream is not read is asked whether it is still there.
constexpr Duration kHangUpInterval = std::chrono::milliseconds(500);
// A flow whose end does not show gives its slot up when it has been silent for so long, and has
// ended when nothing came for so long.
constexpr Duration kSilence = std::chrono::milliseconds(200);
constexpr Duration kOver = std::chrono::seconds(2);
// How often it is told that a client stalls.
constexpr Duration kTellAgain = std::chrono::minutes(1);
}  // namespace

void Session::check_time(TimePoint now) {
  if (closing_) return;
  learn_client_timeout();
  check_hang_up(now);
  check_answers(now);
  check_client_stall(now);
  check_server_stall(now);
  check_service_time(now);
  if (shared_.draining.load(std::memory_order_relaxed)) check_drain();
  update_byte_counters();
  refused_ = 0;
  if (std::exchange(refusing_, false) && !std::exchange(flush_pending_, true)) {
    worker_.flush_later(*this);
  }
}

// The end of a stream that is not read shows nowhere else: behind a held write stand its data.
void Session::check_hang_up(TimePoint now) {
  if (!to_server_.waits() && !to_server_.paused()) return;
  if (now - hang_up_checked_ < kHangUpInterval) return;
  hang_up_checked_ = now;
  if (net::has_hung_up(client_.native_handle())) close("closed by the client");
}

// A server that never answers what it was asked must not keep the client's stream for ever.
void Session::check_answers(TimePoint now) {
  const std::uint64_t seen = to_client_.output().bytes_sent();
  if (!to_server_.waits() || std::exchange(answers_seen_, seen) != seen) answers_moved_ = now;
  if (now - answers_moved_ < worker_.settings().config.timeouts.service) return;
  answers_moved_ = now;
  conversation_->forget_answers();
  if (!std::exchange(flush_pending_, true)) worker_.flush_later(*this);
}

// A slot is for a request that the data server can work on. One that waits for its client, to take
// data or to send them, gives its slot to others when the client is slower than the least rate and
// its application has used up what it may cost them. What has been started goes on without a slot;
// the rest of the client's requests wait until it moves again.
void Session::check_client_stall(TimePoint now) {
  const bool takes_nothing = to_client_.output().blocked_since().has_value();
  const Waiting waiting = outstanding_ > 0 ? find_waiting(takes_nothing) : Waiting{};
  const BytesPerSecond least = worker_.settings().config.timeouts.client_min_rate;
  const std::uint64_t to_come =
      conversation_->client_sends_data() ? to_server_.left_of_message() : 0;
  const std::uint64_t sent = conversation_->data_from_client() - to_come;
  const Duration lag =
      std::max(sending_.look(now, waiting.for_data, sent, least),
               taking_.look(now, takes_nothing, to_client_.output().bytes_sent(), least));
  if (client_stalled_) {
    give_slots_up(waiting.with_slots, now);
    const bool nothing_awaited = !waiting.for_data && !waiting.for_late_data;
    if (!takes_nothing && (sending_.moving() || nothing_awaited)) client_stalled_ = false;
  } else if (lag > StallBudgets::grace(client_stall())) {
    if (!has_time_left(waiting.with_slots, lag, now)) stall(waiting.with_slots, now);
  } else {
    lag_charged_ = Duration::zero();
  }
  if (on_probation_ && standing(stalled_) == StallBudgets::Standing::good) {
    on_probation_ = false;
  }
  if (!client_stalled_ && !parked_.empty()) submit_all_parked();
}

Session::Waiting Session::find_waiting(bool client_takes_nothing) {
  Waiting waiting;
  const bool clients_turn = to_server_.waits_for_source();
  const bool some_behind = to_server_.output().waiting_since().has_value();
  ios_.for_each([&](IoKey key, PendingIo* io) {
    if (io->held) return;
    io->behind_message = io->behind_message && some_behind;
    const bool for_data =
        io->behind_message ||
        (clients_turn && conversation_->awaits_client(key, to_server_.in_mid_message()));
    if (io->gave_slot_up) {
      waiting.for_late_data |= for_data;
    } else if (for_data || client_takes_nothing) {
      waiting.for_data |= for_data;
      waiting.with_slots.push_back(io);
    }
  });
  return waiting;
}

// Takes what the lag has grown by from what the applications of `waiting` may cost others.
bool Session::has_time_left(const std::vector<PendingIo*>& waiting, Duration lag, TimePoint now) {
  if (waiting.empty()) return held_requests_ == 0 || lag < client_stall();
  const TimePoint begin = now - (lag - std::min(lag, std::exchange(lag_charged_, lag)));
  std::vector<stage::VirtualPfsId> whose;
  for (const PendingIo* io : waiting) whose.push_back(io->virtual_pfs());
  std::ranges::sort(whose);
  whose.erase(std::ranges::unique(whose).begin(), whose.end());
  bool left = true;
  for (const stage::VirtualPfsId each : whose) {
    left &= shared_.stalls.take(each, client_endpoint_.address(), begin, now, client_stall());
  }
  return left;
}

void Session::stall(const std::vector<PendingIo*>& waiting, TimePoint now) {
  client_stalled_ = true;
  on_probation_ = true;
  lag_charged_ = Duration::zero();
  if (!waiting.empty()) stalled_ = waiting.front()->virtual_pfs();
  ++shared_.counters.client_stalls;
  park_all(now);
  give_slots_up(waiting, now);
  const bool is_news = now - stall_told_ >= kTellAgain;
  if (is_news) stall_told_ = now;
  spdlog::log(is_news ? spdlog::level::warn : spdlog::level::debug,
              "client {} {}: {} of its requests give up their slots until it does",
              net::to_string(client_endpoint_),
              to_client_.output().blocked_since() ? "takes no data"
                                                  : "does not send the data of its writes",
              waiting.size());
  const BytesPerSecond least = worker_.settings().config.timeouts.client_min_rate;
  const bool hardly_moves = sending_.hardly_moves(least) || taking_.hardly_moves(least);
  if (!waiting.empty() && hardly_moves && conversation_->occupies_server()) {
    close("the client kept the data server waiting: it will repeat what was under way");
  }
}

// Takes what is held out of the scheduler.
void Session::park_all(TimePoint now) {
  std::vector<const PendingIo*> parked;
  ios_.for_each([&](IoKey, PendingIo* io) {
    if (!io->held) return;
    if (io->submitted) {
      if (!worker_.dispatcher().take_back(*io, now)) return;  // it has been let go
      io->submitted = false;
      if (std::exchange(io->on_probation, false)) --on_their_way_;
    }
    parked.push_back(io);
  });
  std::ranges::sort(parked, {},
                    [](const PendingIo* io) { return std::pair(io->arrival, io->key); });
  parked_.clear();
  for (const PendingIo* io : parked) parked_.push_back(io->key);
}

void Session::give_slots_up(const std::vector<PendingIo*>& waiting, TimePoint now) {
  if (waiting.empty()) return;
  for (PendingIo* io : waiting) {
    io->gave_slot_up = true;
    io->moved_in_time = conversation_->moved(io->key);
    if (worker_.dispatcher().give_up_slot(*io, now)) ++shared_.counters.slots_given_up;
  }
  worker_.slots_changed();
}

// A request that was let go could arrive at the server after its client gave up: when the upstream
// connection is blocked, or when the client leaves the message before it half sent.
void Session::check_server_stall(TimePoint now) {
  const Duration most = shared_.server_stall.load(std::memory_order_relaxed);
  const auto too_long = [&](std::optional<TimePoint> since) {
    return since && now - *since >= most;
  };
  if (too_long(to_server_.output().blocked_since())) {
    ++shared_.counters.server_stalls;
    close("the data server takes no data");
  } else if (too_long(to_server_.output().waiting_since())) {
    ++shared_.counters.client_stalls;
    close("the client stopped in mid-message with a request of its own behind it");
  }
}

void Session::check_service_time(TimePoint now) {
  if (outstanding_ == 0) return;
  std::vector<PendingIo*> silent;
  std::vector<PendingIo*> over;
  std::vector<PendingIo*> overdue;
  const bool client_takes = !to_client_.output().blocked_since().has_value();
  ios_.for_each([&](IoKey key, PendingIo* io) {
    if (io->held) return;
    const std::uint64_t moved = conversation_->moved(key);
    if (std::exchange(io->moved, moved) != moved) io->last_progress = now;
    const Duration silence = now - io->last_progress;
    if (silence >= worker_.settings().config.timeouts.service) {
      overdue.push_back(io);
    } else if (silence >= kSilence && client_takes && !conversation_->end_shows(key)) {
      (silence < kOver ? silent : over).push_back(io);
    }
  });
  std::erase_if(silent, [](const PendingIo* io) { return io->gave_slot_up; });
  give_slots_up(silent, now);
  for (PendingIo* io : over) {
    give_slots_up({io}, now);
    conversation_->forget(io->key);
    finished({.key = io->key, .bytes = io->moved});
  }
  if (!overdue.empty()) give_up(overdue, now);
}

// Requests whose end will not be seen any more.
void Session::give_up(const std::vector<PendingIo*>& overdue, TimePoint now) {
  give_slots_up(overdue, now);
  for (PendingIo* io : overdue) {
    conversation_->forget(io->key);
    forget(*io);
    worker_.dispatcher().abandon(*io, now);
    worker_.recycle(*io);
    --outstanding_;
  }
  spdlog::warn("client {}: {} of its requests made no progress for {}: their slots are free again",
               net::to_string(client_endpoint_), overdue.size(),
               to_string(worker_.settings().config.timeouts.service));
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
