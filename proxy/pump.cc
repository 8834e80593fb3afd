#include "proxy/pump.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/socket.h>
#include <sys/uio.h>

#include "base/check.h"
#include "net/socket_options.h"
#include "proxy/session.h"
#include "proxy/worker.h"

namespace vpfs::proxy {
namespace {

// From this size on a message is spliced: below, a copy is cheaper than more calls (bench/relay).
constexpr std::uint64_t kSpliceSize = std::uint64_t{48} * 1024;
// Enough to see a window of requests, or a response and the header of the data message behind it.
constexpr std::size_t kPeekSize = 2048;
// What a quiet stream asks for first; doubled whenever a receive fills it. Also the piece in which
// a stream is relayed that has the thread to itself.
constexpr std::size_t kFirstReceive = std::size_t{16} * 1024;
// Looks without a large message before a stream of large ones counts as one of small ones: between
// the data of writes stand their requests.
constexpr int kPatience = 8;
// What a stream that does not wait keeps for the next time that it does.
constexpr std::size_t kSmallCarry = std::size_t{8} * 1024;
// Of what is dropped at once, so that others get their turn.
constexpr std::uint64_t kDiscardSize = std::uint64_t{1024} * 1024;
// What one stream does before others get their turn: so many reads, or so many messages.
constexpr int kMostTurns = 16;
constexpr std::size_t kMostMessages = 32;

}  // namespace

Pump::Pump(Session& session, Worker& worker, Sender from, net::Socket& source, net::Socket& sink)
    : session_(session),
      worker_(worker),
      from_(from),
      source_(source),
      sink_(sink),
      receive_size_(kFirstReceive) {}

std::size_t Pump::unsent() const {
  return output_.size() - output_done_ + waiting_.size();
}

bool Pump::has_output() const {
  return output_done_ < output_.size() || (pipe_ && pipe_->size() > 0) ||
         (at_boundary() && !waiting_.empty());
}

void Pump::inject(std::span<const std::byte> message) {
  if (at_boundary() && !(pipe_ && pipe_->size() > 0)) {
    append_output(message);
  } else {
    if (waiting_.empty()) waiting_since_ = worker_.now();
    waiting_.insert(waiting_.end(), message.begin(), message.end());
  }
}

void Pump::flush() {
  if (waits_ && !paused_ && !writing_ && !running_ && !has_output()) {
    take_carry();
    if (session_.closing() || paused_) return;
    // The other side has just been answered: what it says next is not here yet.
    const bool nothing_here = !waits_ && at_boundary() && carry_.empty() && !has_output();
    nothing_here ? wait_readable() : run();
    return;
  }
  send_borrowed();
  if (!writing_ && !running_ && has_output() && !write_output()) wait_writable();
}

// What has been received goes on, if it is its turn now: behind the message that it waited for and
// together with it.
void Pump::take_carry() {
  waits_ = false;
  carried_.swap(carry_);
  carry_.clear();
  std::size_t consumed = 0;
  worker_.runs().clear();
  if (!parse(carried_, consumed)) return;  // closing
  if (carried_.empty()) (void)begin_unseen();
  Worker::Parts& parts = worker_.parts();
  parts.assign(borrowed_.begin(), borrowed_.end());
  borrowed_.clear();
  const std::span<const std::byte> bytes = carried_;
  for (const Worker::Run& run : worker_.runs())
    parts.push_back(bytes.subspan(run.offset, run.size));
  // The rest follows at once: it goes with that.
  const bool more = forward_left_ > 0 && !discarding_;
  (void)send_parts(parts, more ? MSG_MORE : 0);
  const std::span<const std::byte> rest = bytes.subspan(consumed);
  carry_.assign(rest.begin(), rest.end());
  if (carried_.capacity() > kSmallCarry) carried_ = {};
}

// At a boundary with nothing received: file data need no look to go on, and what waits for its turn
// or for the other side need not be looked for. False: there is nothing to do for now.
bool Pump::begin_unseen() {
  const Step step = session_.next(from_, {});
  if (step.action == Step::Action::wait) {
    begin_wait();
    return false;
  }
  if (step.action == Step::Action::forward || step.action == Step::Action::discard) {
    begin(step);
    forward_left_ = step.size;
    finished_at_end_ = step.finished;
  }
  return !step.silent;
}

void Pump::begin_wait() {
  waits_ = true;
  expected_ = held_size_;
}

void Pump::begin(const Step& step) {
  discarding_ = step.action == Step::Action::discard;
  if (step.size >= kSpliceSize) large_messages_ = kPatience;
}

void Pump::send_borrowed() {
  if (borrowed_.empty()) return;
  if (at_boundary() && !writing_ && !running_ && !has_output()) {
    (void)send_parts(borrowed_);
  } else {
    for (const std::span<const std::byte> message : borrowed_) inject(message);
  }
  borrowed_.clear();
}

void Pump::resume() {
  if (!std::exchange(paused_, false) || writing_ || running_) return;
  // A wait in flight tells what comes, but not what is here and may go on now.
  if (!reading_ || waits_ || has_output()) run();
}

void Pump::run() {
  running_ = true;
  messages_ = 0;
  Outcome outcome = Outcome::progress;
  for (int turn = 0; turn < kMostTurns && outcome == Outcome::progress; ++turn) {
    if (session_.closing() || messages_ >= kMostMessages) break;
    if (has_output() && !write_output()) {
      if (!session_.closing()) wait_writable();
      break;
    }
    if (waits_ && !paused_) {
      take_carry();
      if (has_output()) continue;
    }
    if (session_.closing() || source_ended_ || stands_still()) break;
    outcome = read_source();
  }
  running_ = false;
  if (session_.closing() || writing_) return;
  if (outcome == Outcome::ended) {
    source_ended_ = true;
    session_.source_ended(from_, {});
  } else if (outcome == Outcome::failed) {
    source_ended_ = true;
    session_.source_ended(from_, {source_error_, std::system_category()});
  } else if (has_output() && !write_output()) {
    if (!session_.closing()) wait_writable();
  } else if (!source_ended_ && !stands_still()) {
    // A stream that used up its turns waits as well: it is readable, and so comes round again.
    wait_readable();
  }
}

void Pump::wait_readable() {
  if (std::exchange(reading_, true)) return;
  worker_.watch_later(*this);
}

void Pump::watch() {
  if (session_.closing()) return;
  source_.async_wait(net::Socket::wait_read,
                     [this, keep = session_.shared_from_this()](std::error_code error) {
                       reading_ = false;
                       if (error || session_.closing()) return;
                       readable_ = true;
                       worker_.event_of(session_);
                       // What waits for the sink goes first; its wait comes round by itself.
                       if (!writing_) run();
                       worker_.end_of_event();
                     });
}

void Pump::wait_writable() {
  if (writing_) return;
  writing_ = true;
  if (!blocked_since_) blocked_since_ = worker_.now();
  sink_.async_wait(net::Socket::wait_write,
                   [this, keep = session_.shared_from_this()](std::error_code error) {
                     writing_ = false;
                     if (error || session_.closing()) return;
                     run();
                     worker_.end_of_event();
                   });
}

void Pump::note_progress(std::size_t size) {
  bytes_moved_ += size;
  if (blocked_since_) {
    blocked_since_.reset();
    session_.sink_moved(from_);
  }
}

// Writes what is there for the sink: output_, then the pipe, then what waited for a boundary. False
// when the sink took less, or failed (then the session is closing).
bool Pump::write_output() {
  for (;;) {
    ssize_t sent = 0;
    if (output_done_ < output_.size()) {
      sent = ::send(sink_.native_handle(), output_.data() + output_done_,
                    output_.size() - output_done_, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent > 0) output_done_ += static_cast<std::size_t>(sent);
    } else if (pipe_ && pipe_->size() > 0) {
      sent = pipe_->drain_to(sink_.native_handle());
    } else {
      output_.clear();
      output_done_ = 0;
      if (output_.capacity() > kSpliceSize) output_.shrink_to_fit();
      if (pipe_) worker_.pipes().give_back(std::move(pipe_));
      if (!at_boundary() || waiting_.empty()) return true;
      append_waiting();
      continue;
    }
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN) session_.sink_failed(from_, {errno, std::system_category()});
      return false;
    }
    note_progress(static_cast<std::size_t>(sent));
  }
}

Pump::Outcome Pump::outcome_of_error() {
  if (errno == EINTR) return Outcome::progress;
  if (errno == EAGAIN) return Outcome::drained;
  source_error_ = errno;
  return Outcome::failed;
}

Pump::Outcome Pump::read_source() {
  const bool told = std::exchange(readable_, false);
  if (at_boundary() && carry_.empty()) {
    const bool more = begin_unseen();
    // What told may have been the end: no wait is left to tell it again.
    if (waits_ && told && net::has_hung_up(source_.native_handle())) return Outcome::ended;
    if (waits_ || (!more && !told)) return Outcome::drained;
  }
  if (discarding_ && !at_boundary()) return discard();
  if (forward_left_ >= kSpliceSize) return splice();
  if (!at_boundary() || large_messages_ == 0 || !carry_.empty()) return receive();
  if (expected_ == 0) return peek();
  --large_messages_;
  return receive(std::exchange(expected_, 0));
}

Pump::Outcome Pump::splice() {
  if (!pipe_) pipe_ = worker_.pipes().take();
  if (!pipe_) return receive();  // out of descriptors: copying still works
  const ssize_t moved =
      pipe_->fill_from(source_.native_handle(), static_cast<std::size_t>(forward_left_));
  if (moved == 0) return Outcome::ended;
  if (moved < 0) {
    const Outcome outcome = outcome_of_error();
    worker_.pipes().give_back(std::move(pipe_));  // empty: nothing is read before it is drained
    return outcome;
  }
  take_forwarded(static_cast<std::uint64_t>(moved));
  return Outcome::progress;
}

Pump::Outcome Pump::discard() {
  const auto size = static_cast<std::size_t>(std::min(forward_left_, kDiscardSize));
  const ssize_t dropped = ::recv(source_.native_handle(), nullptr, size, MSG_TRUNC | MSG_DONTWAIT);
  if (dropped == 0) return Outcome::ended;
  if (dropped < 0) return outcome_of_error();
  take_forwarded(static_cast<std::uint64_t>(dropped));
  return Outcome::progress;
}

Pump::Outcome Pump::peek() {
  const std::span<std::byte> scratch = worker_.scratch();
  const ssize_t seen =
      ::recv(source_.native_handle(), scratch.data(), kPeekSize, MSG_PEEK | MSG_DONTWAIT);
  if (seen == 0) return Outcome::ended;
  if (seen < 0) return outcome_of_error();
  const std::span<const std::byte> bytes = scratch.first(static_cast<std::size_t>(seen));
  std::size_t consumed = 0;
  worker_.runs().clear();
  if (!parse(bytes, consumed)) return Outcome::progress;  // closing
  auto& runs = worker_.runs();
  if (forward_left_ < kSpliceSize) {
    --large_messages_;
  } else if (runs.size() == 1 && runs.front().offset + runs.front().size == consumed) {
    // What was seen of a large message goes the way of the bytes behind it.
    consumed = runs.front().offset;
    forward_left_ += runs.front().size;
    runs.clear();
  }
  if (consumed > 0) {
    drop(consumed);
    send_runs(bytes);
  }
  if (waits_) return Outcome::drained;
  if (forward_left_ >= kSpliceSize && runs.empty() && !discarding_) return splice();
  if (consumed == 0) return receive();  // the head of a request is not complete yet
  return Outcome::progress;
}

// Takes from the socket what was peeked at and dealt with; it is there, so this takes all of it.
void Pump::drop(std::size_t size) {
  const ssize_t dropped = ::recv(source_.native_handle(), nullptr, size, MSG_TRUNC | MSG_DONTWAIT);
  VPFS_ASSERT(dropped == static_cast<ssize_t>(size));
}

Pump::Outcome Pump::receive() {
  // All at once, a window of small requests and its answers would go round in lock step, and all
  // parties but one would idle. With other sessions at work, the fewest system calls win.
  const bool alone = worker_.alone();
  const Outcome outcome = receive(alone ? std::min(receive_size_, kFirstReceive) : receive_size_);
  if (outcome != Outcome::progress) return outcome;
  // A piece goes on its way, with the requests in it, before the next is read.
  if (alone) return Outcome::drained;
  receive_size_ = messages_ < kMostMessages ? std::min(2 * receive_size_, worker_.scratch().size())
                                            : kFirstReceive;
  return Outcome::progress;
}

// Progress when all that was wanted was there.
Pump::Outcome Pump::receive(std::size_t wanted) {
  const std::span<std::byte> scratch = worker_.scratch();
  const std::size_t carried = carry_.size();
  if (carried > 0) std::memcpy(scratch.data(), carry_.data(), carried);
  // While paused only the message that is half through is read to its end.
  if (paused_) wanted = static_cast<std::size_t>(std::min<std::uint64_t>(wanted, forward_left_));
  const std::size_t most = std::min(wanted, scratch.size() - carried);
  const ssize_t received =
      ::recv(source_.native_handle(), scratch.data() + carried, most, MSG_DONTWAIT);
  if (received == 0) return Outcome::ended;
  if (received < 0) return outcome_of_error();
  const auto size = static_cast<std::size_t>(received);
  const std::span<const std::byte> bytes = scratch.first(carried + size);
  carry_.clear();
  std::size_t consumed = 0;
  worker_.runs().clear();
  if (!parse(bytes, consumed)) return Outcome::progress;  // closing
  send_runs(bytes);
  const std::span<const std::byte> rest = bytes.subspan(consumed);
  carry_.assign(rest.begin(), rest.end());
  if (waits_) {
    receive_size_ = kFirstReceive;  // what waits is to stay in the socket
    return Outcome::drained;
  }
  return size < most ? Outcome::drained : Outcome::progress;
}

void Pump::add_run(std::size_t offset, std::size_t size) {
  auto& runs = worker_.runs();
  const bool adjacent = !runs.empty() && runs.back().offset + runs.back().size == offset;
  // What waits for a boundary goes behind the first run, which is the rest of a message then.
  const bool keep_apart = runs.size() == 1 && !waiting_.empty();
  if (adjacent && !keep_apart) {
    runs.back().size += size;
  } else {
    runs.push_back({.offset = offset, .size = size});
  }
}

void Pump::take_forwarded(std::uint64_t size) {
  forward_left_ -= size;
  if (forward_left_ > 0) return;
  const auto finished = std::exchange(finished_at_end_, std::nullopt);
  if (finished) session_.finished(*finished);
}

// Decides about `bytes`, which follow on what was decided before. What is to be forwarded is noted
// as runs. False when the session is closing because the stream makes no sense.
bool Pump::parse(std::span<const std::byte> bytes, std::size_t& consumed) {
  std::size_t at = 0;
  if (forward_left_ > 0) {
    at = static_cast<std::size_t>(std::min<std::uint64_t>(forward_left_, bytes.size()));
    if (!discarding_) add_run(0, at);
    take_forwarded(at);
  }
  while (at < bytes.size()) {
    ++messages_;
    const Step step = session_.next(from_, bytes.subspan(at));
    const std::size_t here = bytes.size() - at;
    if (step.action == Step::Action::need_more) {
      VPFS_ASSERT(step.size > here && step.size <= Conversation::kMostNeeded);
      receive_size_ = std::max(receive_size_, static_cast<std::size_t>(step.size));
      break;
    }
    if (step.action == Step::Action::lost_framing) {
      session_.lost_framing(from_);
      return false;
    }
    if (step.action == Step::Action::hold) {
      VPFS_ASSERT(step.size <= here);
      session_.hold(bytes.subspan(at, static_cast<std::size_t>(step.size)));
      if (session_.closing()) return false;
      held_size_ = static_cast<std::size_t>(step.size);
      at += held_size_;
      continue;
    }
    if (step.action == Step::Action::wait) {
      begin_wait();
      break;
    }
    held_size_ = 0;
    begin(step);
    const auto taken = static_cast<std::size_t>(std::min<std::uint64_t>(step.size, here));
    if (!discarding_) add_run(at, taken);
    at += taken;
    forward_left_ = step.size - taken;
    if (forward_left_ > 0) {
      finished_at_end_ = step.finished;
    } else if (step.finished) {
      session_.finished(*step.finished);
    }
  }
  consumed = at;
  session_.stepped(from_);
  return true;
}

void Pump::send_runs(std::span<const std::byte> bytes) {
  const auto& runs = worker_.runs();
  if (!has_output() && waiting_.empty()) {
    Worker::Parts& parts = worker_.parts();
    parts.clear();
    for (const Worker::Run& run : runs) parts.push_back(bytes.subspan(run.offset, run.size));
    if (!send_parts(parts)) receive_size_ = kFirstReceive;  // a slow sink: keep little for it
    return;
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    append_output(bytes.subspan(runs[i].offset, runs[i].size));
    if (i == 0 && (runs.size() > 1 || at_boundary())) append_waiting();
  }
}

// Sends from where the parts are; what the sink does not take goes to output_. False when it did
// not take all.
bool Pump::send_parts(std::span<const std::span<const std::byte>> parts, int flags) {
  while (!parts.empty()) {
    std::array<iovec, 64> vector = {};
    const std::size_t count = std::min(parts.size(), vector.size());
    std::size_t total = 0;
    for (std::size_t i = 0; i < count; ++i) {
      vector[i] = {.iov_base = const_cast<std::byte*>(parts[i].data()), .iov_len = parts[i].size()};
      total += parts[i].size();
    }
    msghdr header = {};
    header.msg_iov = vector.data();
    header.msg_iovlen = count;
    const ssize_t sent =
        ::sendmsg(sink_.native_handle(), &header, MSG_NOSIGNAL | MSG_DONTWAIT | flags);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) {
      session_.sink_failed(from_, {errno, std::system_category()});
      return false;
    }
    std::size_t done = sent < 0 ? 0 : static_cast<std::size_t>(sent);
    if (done > 0) note_progress(done);
    if (done == total) {
      parts = parts.subspan(count);
      continue;
    }
    for (const std::span<const std::byte> part : parts) {
      const std::size_t size = std::min(done, part.size());
      done -= size;
      append_output(part.subspan(size));
    }
    return false;
  }
  return true;
}

void Pump::append_output(std::span<const std::byte> bytes) {
  output_.insert(output_.end(), bytes.begin(), bytes.end());
}

void Pump::append_waiting() {
  append_output(waiting_);
  waiting_.clear();
}

}  // namespace vpfs::proxy
