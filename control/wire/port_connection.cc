#include "control/wire/port_connection.h"

#include <algorithm>
#include <array>
#include <utility>

#include <asio/post.hpp>
#include <fmt/format.h>

#include "base/units.h"
#include "control/wire/port_state.h"

namespace vpfs::control {
namespace {

// So much is written before the peer's progress is looked at again.
constexpr std::size_t kPiece = std::size_t{256} * 1024;
// A buffer above this size is not kept.
constexpr std::size_t kMostKeptToWrite = std::size_t{256} * 1024;

std::span<const std::byte> bytes_of(const std::string& text, std::size_t from = 0) {
  return std::as_bytes(std::span(text)).subspan(from);
}

void empty(std::string& buffer) {
  buffer.clear();
  if (buffer.capacity() > kMostKeptToWrite) std::string().swap(buffer);
}

}  // namespace

PortConnection::PortConnection(PortState& port, std::uint64_t number, std::string peer,
                               Identity identity, std::unique_ptr<net::Channel> channel)
    : port_(port),
      number_(number),
      peer_(std::move(peer)),
      identity_(std::move(identity)),
      is_any_user_(control::is_any_user(identity_, port.access())),
      channel_(std::move(channel)),
      changed_(port.context().get_executor()),
      watch_timer_(port.context()),
      made_at_(port.now()),
      heard_at_(made_at_),
      read_at_(made_at_),
      progress_at_(made_at_) {
  ++port_.counters().connections;
}

PortConnection::PortConnection(PortState& port, std::uint64_t number, Caller coordinator,
                               std::shared_ptr<net::Channel> channel, std::function<void()> greeted)
    : port_(port),
      number_(number),
      identity_{.uid = {}, .gids = {}, .certificate = {}, .from = coordinator.from},
      coordinator_(std::move(coordinator)),
      channel_(std::move(channel)),
      changed_(port.context().get_executor()),
      watch_timer_(port.context()),
      made_at_(port.now()),
      heard_at_(made_at_),
      read_at_(made_at_),
      progress_at_(made_at_),
      tell_greeted_(std::move(greeted)) {
  ++port_.counters().connections;
}

PortConnection::~PortConnection() {
  (void)port_.count_answers(accounted_, 0);
  --port_.counters().connections;
}

net::Task<> PortConnection::serve(std::shared_ptr<PortConnection> self) {
  co_await self->run();
  self->close();
  self->port_.remove(self->number_);
  // The writer shares this connection, and ends by itself.
}

net::Task<> PortConnection::run() {
  const bool begun = co_await begin();
  if (!begun) co_return;
  co_await converse();
  if (conversation_->ended()) co_await part();
}

net::Task<bool> PortConnection::begin() {
  const Result<void> shaken = co_await channel_->handshake();
  if (closed_) co_return false;
  if (is_to_coordinator()) {
    if (!shaken) why_ended_ = shaken.error().message;
    if (!shaken) co_return false;
    conversation_.emplace(*this, *coordinator_, port_.versions(), port_.limits(), port_.counters());
    conversation_->greet_coordinator();
    co_return true;
  }
  if (!shaken) {
    ++port_.counters().handshakes;
    port_.complain(PortState::Complaint::handshake,
                   fmt::format("TLS with {} failed: {}", identity_.from, shaken.error().message));
    co_return false;
  }
  identity_.certificate = channel_->peer_names();
  if (identity_.uid) user_ = co_await port_.name_of(*identity_.uid);
  if (closed_) co_return false;
  conversation_.emplace(*this, make_caller(), port_.versions(), port_.limits(), port_.counters());
  if (!may_connect(identity_, port_.access())) {
    ++port_.counters().refused;
    Error why = make_error(Error::NOT_PERMITTED, "control.readers",
                           fmt::format("{} from {} is in neither control.readers nor "
                                       "control.writers of the configuration",
                                       conversation_->caller().name, identity_.from));
    port_.complain(PortState::Complaint::refused, why.text());
    conversation_->end(0, std::move(why));
  }
  co_return true;
}

net::Task<> PortConnection::converse() {
  bool at_end = false;  // the peer sends nothing more
  while (!closed_) {
    while (conversation_->handle(port_.now())) {
      flush();
      co_await asio::post(port_.context(), asio::use_awaitable);
      if (closed_) co_return;
    }
    if (greeted() && tell_greeted_) std::exchange(tell_greeted_, nullptr)();
    if (at_end) conversation_->end_watches();
    flush();
    set_watch_timer();
    if (closed_ || conversation_->ended()) co_return;
    if (at_end && !conversation_->busy() && !writing_) co_return;
    if (at_end || !conversation_->wants_input()) {
      co_await changed_.wait();
      continue;
    }
    const std::span<std::byte> room = conversation_->room();
    const net::Transfer transfer = co_await channel_->read_some(room);
    if (closed_) co_return;
    heard_at_ = read_at_ = port_.now();
    if (transfer.error) {
      at_end = true;
      if (is_to_coordinator()) {
        why_ended_ = transfer.error == asio::error::eof ? "it closed the connection"
                                                        : channel_->explain(transfer.error);
        co_return;
      }
      // Only a peer that has closed one direction alone still reads.
      if (transfer.error != asio::error::eof) co_return;
    }
    conversation_->received(transfer.size);
  }
}

// Gives the peer time to read why it is refused: closing with unread bytes would take that away.
net::Task<> PortConnection::part() {
  parts_by_ = port_.now() + port_.limits().farewell;
  if (is_to_coordinator()) {
    why_ended_ = conversation_->broken().empty()
                     ? conversation_->why_refused()
                     : "is not a coordinator: " + conversation_->broken();
  } else if (!conversation_->broken().empty()) {
    port_.complain(
        PortState::Complaint::broken,
        fmt::format("closed the connection of {} from {}: {}", conversation_->caller().name,
                    identity_.from, conversation_->broken()));
  }
  // A coordinator that has refused this side reads no answer.
  if (is_to_coordinator() && conversation_->output().empty() && !writing_) co_return;
  flush();
  while (writing_ && !closed_) co_await changed_.wait();
  if (closed_) co_return;
  channel_->end_output();
  std::array<std::byte, 4096> unread = {};
  while (!closed_) {
    const net::Transfer transfer = co_await channel_->read_some(unread);
    if (transfer.error) co_return;
  }
}

void PortConnection::flush() {
  if (closed_ || !conversation_) return;
  std::string& output = conversation_->output();
  if (!writing_ && !output.empty()) {
    const std::size_t sent = channel_->write_now(bytes_of(output));
    if (sent > 0) progress_at_ = port_.now();
    if (sent == output.size()) {
      empty(output);
    } else {
      // The time that a peer may take begins with what it does not take.
      progress_at_ = port_.now();
      sending_.swap(output);
      sent_ = sent;
      writing_ = true;
      asio::co_spawn(port_.context(), write_rest(shared_from_this()), asio::detached);
    }
  }
  account();
  if (conversation_->too_slow()) close_slow();
}

net::Task<> PortConnection::write_rest(std::shared_ptr<PortConnection> self) {
  while (!self->closed_ && self->sent_ < self->sending_.size()) {
    const auto rest = bytes_of(self->sending_, self->sent_);
    const auto piece = rest.first(std::min(rest.size(), kPiece));
    const std::error_code error = co_await self->channel_->write(piece);
    if (error) {
      self->close_because(self->channel_->explain(error));
      break;
    }
    self->sent_ += piece.size();
    self->progress_at_ = self->port_.now();
    if (self->sent_ == self->sending_.size()) {
      empty(self->sending_);
      self->sent_ = 0;
      self->sending_.swap(self->conversation_->output());
    }
    self->account();
  }
  self->writing_ = false;
  self->changed_.notify_all();
  if (self->closes_when_sent_) self->close();
}

void PortConnection::account() {
  conversation_->set_unsent(sending_.size() - sent_);
  if (is_to_coordinator()) return;  // its own bound is enough
  const std::size_t queued = sending_.size() + conversation_->output().size();
  if (!port_.count_answers(accounted_, queued) && queued > accounted_) close_slow();
  accounted_ = queued;
}

void PortConnection::close_slow() {
  if (closed_) return;
  ++port_.counters().slow;
  if (is_to_coordinator()) return close_because("it does not read its answers");
  port_.complain(PortState::Complaint::slow,
                 fmt::format("closed the connection of {} from {}: it does not read its answers",
                             conversation_->caller().name, identity_.from));
  close();
}

void PortConnection::set_watch_timer() {
  const std::optional<TimePoint> next = closed_ ? std::nullopt : conversation_->next_watch();
  if (!next) {
    watch_timer_.cancel();
    return;
  }
  watch_timer_.expires_after(std::max(*next - port_.now(), Duration(0)));
  watch_timer_.async_wait([weak = weak_from_this()](std::error_code stopped) {
    const auto self = weak.lock();
    if (stopped || self == nullptr || self->closed_) return;
    self->conversation_->run_watches(self->port_.now());
    self->flush();
    self->set_watch_timer();
  });
}

void PortConnection::answered(std::uint64_t ticket, Envelope answer) {
  if (closed_) {
    ++port_.counters().dropped_answers;
    return;
  }
  heard_at_ = port_.now();
  conversation_->answered(ticket, std::move(answer));
  flush();
  if (closed_) return;
  set_watch_timer();
  changed_.notify_all();
}

void PortConnection::check(TimePoint now) {
  if (closed_) return;
  const PortLimits& limits = port_.limits();
  if (parts_by_) {
    if (now >= *parts_by_) close();
  } else if (is_to_coordinator()) {
    check_coordinator(now);
  } else if (!greeted() && now - made_at_ >= limits.hello) {
    ++port_.counters().silent;
    close();
  } else if (writing_ && now - progress_at_ >= limits.stall) {
    close_slow();
  } else if (greeted() && !conversation_->busy() && now - heard_at_ >= limits.idle) {
    ++port_.counters().idle;
    close();
  }
}

void PortConnection::check_coordinator(TimePoint now) {
  const PortLimits& limits = port_.limits();
  if (now - read_at_ >= limits.coordinator_silence) {
    ++port_.counters().silent;
    close_because(
        fmt::format("it said nothing for {}", vpfs::to_string(limits.coordinator_silence)));
  } else if (writing_ && now - progress_at_ >= limits.stall) {
    close_slow();
  }
}

void PortConnection::close_because(std::string why) {
  if (why_ended_.empty()) why_ended_ = std::move(why);
  close();
}

void PortConnection::access_changed() {
  is_any_user_ = control::is_any_user(identity_, port_.access());
  if (!conversation_ || is_to_coordinator()) return;
  conversation_->set_caller(make_caller());
  if (may_connect(identity_, port_.access())) return;
  conversation_->end(0, make_error(Error::NOT_PERMITTED, "control.readers",
                                   fmt::format("{} is in neither control.readers nor "
                                               "control.writers any more",
                                               conversation_->caller().name)));
  flush();
  close_when_sent();
}

void PortConnection::close() {
  if (std::exchange(closed_, true)) return;
  channel_->close();
  watch_timer_.cancel();
  changed_.notify_all();
}

void PortConnection::close_when_sent() {
  closes_when_sent_ = true;
  if (!writing_) close();
}

void PortConnection::close_if_coordinator() {
  if (conversation_ && conversation_->has_cycles()) close_when_sent();
}

Caller PortConnection::make_caller() const {
  return {.name = name_of(identity_, user_),
          .from = identity_.from,
          .rights = rights_of(identity_, port_.access()),
          .uid = identity_.uid};
}

Owner& PortConnection::owner() {
  return port_.owner();
}

void PortConnection::ask(std::uint64_t ticket, Envelope request, const Caller& caller) {
  port_.ask(*this, ticket, std::move(request), caller);
}

bool PortConnection::admits_another(TimePoint now) {
  return port_.admits_another(peer_, now);
}

void PortConnection::record(const Envelope& request, const Caller& caller, std::string_view result,
                            bool refused) {
  port_.record(request, caller, result, refused);
}

}  // namespace vpfs::control
