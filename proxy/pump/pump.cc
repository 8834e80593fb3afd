#include "proxy/pump/pump.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/socket.h>

#include "base/check.h"

namespace vpfs::proxy {
namespace {

// Larger messages are spliced. Below this size a copy is cheaper (script/bench relay).
constexpr std::uint64_t kSpliceSize = std::uint64_t{48} * 1024;
// Shows a window of requests, or a response and the header of the data message behind it.
constexpr std::size_t kPeekSize = 2048;
// The first receive of a quiet stream. It doubles whenever a receive fills it. A stream that has
// the thread to itself is relayed in pieces of this size.
constexpr std::size_t kFirstReceive = std::size_t{16} * 1024;
// After this many peeks without a large message the stream counts as one of small messages. The
// requests of writes come between their data.
constexpr int kPatience = 8;
// The buffer that a stream keeps for its next wait.
constexpr std::size_t kSmallCarry = std::size_t{8} * 1024;
// The largest one that a stream that reads on keeps.
constexpr std::size_t kLargeCarry = std::size_t{32} * 1024;
// The most that is dropped at once, so that others get their turn.
constexpr std::uint64_t kDiscardSize = std::uint64_t{1024} * 1024;
// The reads and messages of one stream before others get their turn.
constexpr int kMostTurns = 16;
constexpr std::size_t kMostMessages = 32;

}  // namespace

Pump::Pump(PumpOwner& owner, PumpThread& thread, Sender from, PumpSocket& source, PumpSocket& sink)
    : owner_(owner),
      thread_(thread),
      from_(from),
      source_(source),
      sink_(sink),
      output_(sink.native_handle(), thread),
      receive_size_(kFirstReceive) {
  source.set_reader(*this);
  sink.set_writer(*this);
}

void Pump::stop() {
  stopped_ = true;
  leave_turns();
}

void Pump::leave_turns() {
  if (std::exchange(goes_on_, false)) thread_.forget(*this);
}

void Pump::begin_with(Rest rest) {
  VPFS_ASSERT(carry_.empty() && output_.empty());
  carry_ = std::move(rest.unparsed);
  if (!rest.unsent.empty()) output_.inject(rest.unsent);
  waits_ = true;
}

void Pump::put_back(std::span<const std::byte> bytes) {
  VPFS_ASSERT(waits_);
  carry_.insert(carry_.begin(), bytes.begin(), bytes.end());
}

void Pump::flush() {
  if (stopped_) return;
  const bool may_write = !writing_ && !running_;
  if (waits_ && !paused_ && may_write && output_.empty()) {
    take_carry();
    if (!stopped_) run();
    return;
  }
  (void)settle(output_.send_injected(may_write));
  if (may_write && !output_.empty() && !stopped_) run();
}

void Pump::resume() {
  if (std::exchange(paused_, false) && !writing_ && !running_) run();
}

void Pump::run() {
  running_ = true;
  messages_ = 0;
  Outcome outcome = Outcome::progress;
  for (int turn = 0; turn < kMostTurns && outcome == Outcome::progress; ++turn) {
    if (stopped_ || messages_ >= kMostMessages) break;
    if (!output_.empty() && !write_output()) {
      wait_writable();
      break;
    }
    if (waits_ && !paused_) {
      take_carry();
      if (!output_.empty()) continue;
    }
    if (stopped_ || source_ended_ || stands_still()) break;
    outcome = read_source();
  }
  running_ = false;
  if (stopped_ || writing_) return;
  if (outcome == Outcome::ended) {
    end_of_source({});
  } else if (outcome == Outcome::failed) {
    end_of_source({source_error_, std::system_category()});
  } else if (!output_.empty() && !write_output()) {
    wait_writable();
  } else if (!source_ended_ && !stands_still() && source_.may_have_more() &&
             !std::exchange(goes_on_, true)) {
    thread_.go_on_later(*this);
  }
}

void Pump::end_of_source(std::error_code error) {
  source_ended_ = true;
  owner_.source_ended(from_, error);
}

void Pump::source_is_ready() {
  if (stopped_) return;
  thread_.is_event_of(owner_);
  // Output goes first: room in the sink continues the pump.
  if (!writing_ && !stands_still()) run();
}

void Pump::sink_is_ready() {
  writing_ = false;
  if (!stopped_) run();
}

void Pump::go_on() {
  goes_on_ = false;
  if (stopped_) return;
  const PumpThread::Event event(thread_);
  source_is_ready();
}

void Pump::wait_writable() {
  if (stopped_ || std::exchange(writing_, true)) return;
  output_.set_blocked();
  sink_.want_room();
}

// Reports to the owner. False if the sink did not take everything, or failed.
bool Pump::settle(PumpOutput::Outcome outcome) {
  if (output_.take_unblocked()) owner_.sink_moved(from_);
  if (outcome == PumpOutput::Outcome::failed) owner_.sink_failed(from_, output_.error());
  return outcome == PumpOutput::Outcome::all;
}

bool Pump::write_output() {
  return settle(output_.write());
}

Pump::Outcome Pump::read_source() {
  if (!source_.may_have_more()) return Outcome::drained;
  if (!in_mid_message() && carry_.empty()) {
    begin_unseen();
    // A stream that waits is not read, so its end would not show.
    if (waits_) return source_.peer_has_ended() ? Outcome::ended : Outcome::drained;
  }
  if (discarding_ && in_mid_message()) return discard();
  if (left_ >= kSpliceSize) return splice();
  if (in_mid_message() || large_messages_ == 0 || !carry_.empty()) return receive();
  if (expected_ == 0) return peek();
  --large_messages_;
  return receive(expected_);
}

Pump::Outcome Pump::splice() {
  const std::optional<ssize_t> moved = output_.splice_from(source_.native_handle(), left_);
  if (!moved) return receive();  // out of descriptors: copying still works
  source_.note_spliced(*moved);
  if (*moved == 0) return Outcome::ended;
  if (*moved < 0) return outcome_of_error();
  take_forwarded(static_cast<std::uint64_t>(*moved));
  return Outcome::progress;
}

Pump::Outcome Pump::discard() {
  const auto size = static_cast<std::size_t>(std::min(left_, kDiscardSize));
  const ssize_t dropped = source_.drop(size);
  if (dropped == 0) return Outcome::ended;
  if (dropped < 0) return outcome_of_error();
  take_forwarded(static_cast<std::uint64_t>(dropped));
  return Outcome::progress;
}

Pump::Outcome Pump::peek() {
  const std::span<std::byte> scratch = thread_.scratch();
  const ssize_t seen = source_.peek(scratch.first(kPeekSize));
  if (seen == 0) return Outcome::ended;
  if (seen < 0) return outcome_of_error();
  const std::span<const std::byte> bytes = scratch.first(static_cast<std::size_t>(seen));
  std::size_t consumed = 0;
  if (!parse(bytes, consumed)) return Outcome::progress;  // stopped
  PumpThread::Parts& runs = thread_.runs();
  if (left_ < kSpliceSize) {
    --large_messages_;
  } else if (runs.size() == 1 &&
             runs.front().data() + runs.front().size() == bytes.data() + consumed) {
    // The visible part of a large message is spliced together with the rest.
    consumed -= runs.front().size();
    set_left(left_ + runs.front().size());
    runs.clear();
  }
  if (consumed > 0) {
    if (!drop(consumed)) return Outcome::failed;
    forward_runs();
  }
  if (waits_) return Outcome::drained;
  if (left_ >= kSpliceSize && runs.empty() && !discarding_) return splice();
  if (consumed == 0) return receive();  // the head of a request is not complete yet
  return Outcome::progress;
}

// Removes peeked bytes from the socket. All of them are there.
bool Pump::drop(std::size_t size) {
  ssize_t dropped = -1;
  do {
    dropped = source_.drop(size);
  } while (dropped < 0 && errno == EINTR);
  if (dropped == static_cast<ssize_t>(size)) return true;
  source_error_ = dropped < 0 ? errno : EIO;
  return false;
}

Pump::Outcome Pump::receive() {
  // Received at once, a window of small requests and its answers would go round in lock step, and
  // all parties but one would idle. With other sessions at work, fewer system calls win.
  const bool alone = thread_.alone();
  const Outcome outcome = receive(alone ? std::min(receive_size_, kFirstReceive) : receive_size_);
  if (outcome != Outcome::progress) return outcome;
  // Each piece, requests included, is sent before the next one is read.
  if (alone) return Outcome::drained;
  if (source_.may_have_more()) {
    receive_size_ = messages_ < kMostMessages
                        ? std::min(2 * receive_size_, thread_.scratch().size())
                        : kFirstReceive;
  }
  return Outcome::progress;
}

Pump::Outcome Pump::receive(std::size_t wanted) {
  const std::span<std::byte> scratch = thread_.scratch();
  const std::size_t carried = carry_.size();
  if (carried > 0) std::memcpy(scratch.data(), carry_.data(), carried);
  // A paused pump reads only to the end of the current message.
  if (paused_) wanted = static_cast<std::size_t>(std::min<std::uint64_t>(wanted, left_));
  const std::size_t most = std::min(wanted, scratch.size() - carried);
  const ssize_t received = source_.receive(scratch.subspan(carried, most));
  if (received == 0) return Outcome::ended;
  if (received < 0) return outcome_of_error();
  const auto size = static_cast<std::size_t>(received);
  const std::span<const std::byte> bytes = scratch.first(carried + size);
  carry_.clear();
  std::size_t consumed = 0;
  if (!parse(bytes, consumed)) return Outcome::progress;  // stopped
  forward_runs();
  const std::span<const std::byte> rest = bytes.subspan(consumed);
  carry_.assign(rest.begin(), rest.end());
  if (rest.empty() && carry_.capacity() > kLargeCarry) carry_.shrink_to_fit();
  if (waits_) {
    receive_size_ = kFirstReceive;  // what waits stays in the socket
    return Outcome::drained;
  }
  return Outcome::progress;
}

Pump::Outcome Pump::outcome_of_error() {
  if (errno == EINTR) return Outcome::progress;
  if (errno == EAGAIN) return Outcome::drained;
  source_error_ = errno;
  return Outcome::failed;
}

// Appends bytes to forward. The first run stays apart while messages wait: it is the rest of the
// current message, and they go behind it.
void Pump::add_run(std::span<const std::byte> bytes) {
  PumpThread::Parts& runs = thread_.runs();
  const bool keep_apart = runs.size() == 1 && output_.has_waiting();
  if (!runs.empty() && !keep_apart && runs.back().data() + runs.back().size() == bytes.data()) {
    runs.back() = {runs.back().data(), runs.back().size() + bytes.size()};
  } else {
    runs.push_back(bytes);
  }
}

void Pump::forward_runs() {
  // Keep little for a slow sink.
  if (!settle(output_.forward(thread_.runs()))) receive_size_ = kFirstReceive;
}

void Pump::set_left(std::uint64_t left) {
  left_ = left;
  output_.set_in_mid_message(left > 0);
}

void Pump::take_forwarded(std::uint64_t size) {
  set_left(left_ - size);
  if (!in_mid_message()) end_message();
}

// Only requests that a peek would show whole are guessed, so that a wrong guess copies little.
void Pump::end_message() {
  if (std::exchange(is_large_, false)) {
    behind_large_ = true;
    if (follower_repeats_ && follower_ > 0 && follower_ <= kPeekSize) expected_ = follower_;
  }
  const auto finished = std::exchange(finished_at_end_, std::nullopt);
  if (finished) owner_.finished(*finished);
}

// Parses `bytes`, which continue the stream, and notes what is to be forwarded as runs. False if
// the owner has stopped the pump.
bool Pump::parse(std::span<const std::byte> bytes, std::size_t& consumed) {
  thread_.runs().clear();
  std::size_t at = 0;
  if (in_mid_message()) {
    at = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
    if (!discarding_) add_run(bytes.first(at));
    take_forwarded(at);
  }
  while (at < bytes.size()) {
    ++messages_;
    const Step step = owner_.next(from_, bytes.subspan(at));
    const std::size_t here = bytes.size() - at;
    if (step.action == Step::Action::need_more) {
      VPFS_ASSERT(step.size > here && step.size <= Conversation::kMostNeeded);
      receive_size_ = std::max(receive_size_, static_cast<std::size_t>(step.size));
      break;
    }
    if (step.action == Step::Action::lost_framing) {
      owner_.lost_framing(from_);
      return false;
    }
    if (step.action == Step::Action::hold) {
      VPFS_ASSERT(step.size <= here);
      owner_.hold(bytes.subspan(at, static_cast<std::size_t>(step.size)));
      if (stopped_) return false;
      held_size_ = static_cast<std::size_t>(step.size);
      expected_ = 0;
      note_follower(held_size_);
      at += held_size_;
      continue;
    }
    if (step.action == Step::Action::wait) {
      begin_wait();
      break;
    }
    held_size_ = 0;
    expected_ = 0;
    begin(step);
    const auto taken = static_cast<std::size_t>(std::min<std::uint64_t>(step.size, here));
    if (!discarding_) add_run(bytes.subspan(at, taken));
    at += taken;
    finished_at_end_ = step.finished;
    set_left(step.size - taken);
    if (!in_mid_message()) end_message();
  }
  consumed = at;
  owner_.stepped(from_);
  return true;
}

// Parses the bytes that waited, and sends them together with the message that they waited for.
void Pump::take_carry() {
  waits_ = false;
  carried_.swap(carry_);
  carry_.clear();
  std::size_t consumed = 0;
  if (!parse(carried_, consumed)) return;  // stopped
  if (carried_.empty()) begin_unseen();
  // The rest of the message follows at once.
  const bool more_follows = in_mid_message() && !discarding_;
  (void)settle(output_.send_behind_injected(thread_.runs(), more_follows));
  carry_.assign(carried_.begin() + static_cast<std::ptrdiff_t>(consumed), carried_.end());
  if (carried_.capacity() > kSmallCarry) carried_ = {};
}

// Asks for the next step at a boundary with nothing received: file data needs no look, and a stream
// that waits need not be read.
void Pump::begin_unseen() {
  const Step step = owner_.next(from_, {});
  if (step.action == Step::Action::wait) {
    begin_wait();
  } else if (step.action == Step::Action::forward || step.action == Step::Action::discard) {
    begin(step);
    set_left(step.size);
    finished_at_end_ = step.finished;
  }
}

void Pump::begin_wait() {
  waits_ = true;
  expected_ = held_size_;
}

void Pump::begin(const Step& step) {
  note_follower(0);
  discarding_ = step.action == Step::Action::discard;
  is_large_ = step.size >= kSpliceSize;
  if (is_large_) large_messages_ = kPatience;
}

void Pump::note_follower(std::size_t held) {
  if (!std::exchange(behind_large_, false)) return;
  follower_repeats_ = held == follower_;
  follower_ = held;
}

}  // namespace vpfs::proxy
