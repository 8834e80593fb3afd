#include "bench/data_path/relay/pump.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include <sys/socket.h>

#include "base/units.h"

namespace vpfs::bench {
namespace {

constexpr std::uint64_t kSpliceAbove = 32 * kKiB;
constexpr std::size_t kSmallBuffer = 8 * kKiB;
constexpr std::size_t kSmallWindow = 2048;

// The state of a pump after a failed system call.
Pump::State after_error() {
  return errno == EAGAIN || errno == EINTR ? Pump::State::blocked : Pump::State::ended;
}

class CopyPump final : public Pump {
 public:
  CopyPump(int from, int to, std::size_t buffer) : from_(from), to_(to), buffer_(buffer) {}

  State step() override {
    bool drained = false;
    if (begin_ == end_) {
      const ssize_t got = ::recv(from_, buffer_.data(), buffer_.size(), 0);
      if (got == 0) return State::ended;
      if (got < 0) return after_error();
      begin_ = 0;
      end_ = static_cast<std::size_t>(got);
      drained = end_ < buffer_.size();
      walk_.pass(std::span(buffer_).first(end_));
    }
    const ssize_t sent = ::send(to_, buffer_.data() + begin_, end_ - begin_, MSG_NOSIGNAL);
    if (sent < 0) return after_error();
    begin_ += static_cast<std::size_t>(sent);
    return begin_ == end_ && drained ? State::blocked : State::more;
  }

  // The rest of the current message's payload, which the caller then moves itself. Zero if the
  // message is small or something is buffered.
  [[nodiscard]] std::uint64_t hand_over() {
    if (begin_ != end_ || walk_.remaining() <= kSpliceAbove) return 0;
    const std::uint64_t rest = walk_.remaining();
    walk_.skip(rest);
    return rest;
  }
  // Whether nothing is buffered and the stream is between two messages.
  [[nodiscard]] bool at_boundary() const {
    return begin_ == end_ && walk_.remaining() == 0 && walk_.partial_header() == 0;
  }

 private:
  int from_;
  int to_;
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  MessageWalk walk_;
};

// Moves bytes from one socket to another through a pipe, one turn at a time.
class Splicer {
 public:
  Splicer(int from, int to) : from_(from), to_(to), pipe_(net::SplicePipe::make()) {
    if (!pipe_) throw std::runtime_error("no pipe: out of file descriptors");
  }

  void add(std::uint64_t size) { rest_ += size; }
  [[nodiscard]] bool idle() const { return rest_ == 0 && pipe_->size() == 0; }

  Pump::State step() {
    if (rest_ > 0) {
      const ssize_t got = pipe_->fill_from(from_, rest_);
      if (got == 0) return Pump::State::ended;
      // A full pipe also gives EAGAIN. Draining it shows which socket to wait for.
      if (got < 0 && (pipe_->size() == 0 || errno != EAGAIN)) return after_error();
      if (got > 0) rest_ -= static_cast<std::uint64_t>(got);
    }
    return pipe_->drain_to(to_) < 0 ? after_error() : Pump::State::more;
  }

 private:
  int from_;
  int to_;
  std::uint64_t rest_ = 0;
  std::unique_ptr<net::SplicePipe> pipe_;
};

class RecvSplicePump final : public Pump {
 public:
  RecvSplicePump(int from, int to, std::size_t buffer, bool adaptive)
      : from_(from), to_(to), adaptive_(adaptive), buffer_(buffer), splicer_(from, to) {}

  State step() override {
    if (begin_ == end_ && !splicer_.idle()) return splicer_.step();
    if (begin_ == end_) {
      const std::size_t most = adaptive_ && large_ ? kSmallBuffer : buffer_.size();
      const ssize_t got = ::recv(from_, buffer_.data(), most, 0);
      if (got == 0) return State::ended;
      if (got < 0) return after_error();
      received(static_cast<std::size_t>(got));
    }
    const int more = splicer_.idle() ? 0 : MSG_MORE;
    const ssize_t sent = ::send(to_, buffer_.data() + begin_, end_ - begin_, MSG_NOSIGNAL | more);
    if (sent < 0) return after_error();
    begin_ += static_cast<std::size_t>(sent);
    return State::more;
  }

 private:
  void received(std::size_t size) {
    begin_ = 0;
    end_ = size;
    walk_.pass(std::span(buffer_).first(size));
    large_ = walk_.remaining() > kSpliceAbove;
    if (large_) {
      splicer_.add(walk_.remaining());
      walk_.skip(walk_.remaining());
    }
  }

  int from_;
  int to_;
  bool adaptive_;
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool large_ = false;
  MessageWalk walk_;
  Splicer splicer_;
};

// Peeks at `window` bytes and splices all messages whose headers are complete in them.
class PeekSplicePump : public Pump {
 public:
  PeekSplicePump(int from, int to, std::size_t window)
      : from_(from), splicer_(from, to), window_(window) {}

  State step() override {
    if (!splicer_.idle()) return splicer_.step();
    const ssize_t got = ::recv(from_, window_.data(), window_.size(), MSG_PEEK);
    if (got == 0) return State::ended;
    if (got < 0) return after_error();
    MessageWalk walk;
    const auto size = static_cast<std::size_t>(got);
    walk.pass(std::span(window_).first(size));
    largest_seen_ = walk.largest();
    splicer_.add(size - walk.partial_header() + walk.remaining());
    return splicer_.idle() ? State::blocked : splicer_.step();
  }

 protected:
  [[nodiscard]] std::uint64_t largest_seen() const { return largest_seen_; }
  [[nodiscard]] Splicer& splicer() { return splicer_; }

 private:
  int from_;
  Splicer splicer_;
  std::vector<std::byte> window_;
  std::uint64_t largest_seen_ = 0;
};

// The mechanism of vpfs-proxy: copies until a message is large enough to splice, then peeks and
// splices until it sees only small messages.
class PeekOrCopyPump final : public PeekSplicePump {
 public:
  PeekOrCopyPump(int from, int to, std::size_t window, std::size_t buffer)
      : PeekSplicePump(from, to, window), copy_(from, to, buffer) {}

  State step() override {
    if (!splicer().idle()) return splicer().step();
    if (splicing_ && copy_.at_boundary()) {
      const State state = PeekSplicePump::step();
      splicing_ = largest_seen() > kSpliceAbove;
      return state;
    }
    const State state = copy_.step();
    const std::uint64_t rest = copy_.hand_over();
    if (rest == 0) return state;
    splicing_ = true;
    splicer().add(rest);
    return State::more;
  }

 private:
  CopyPump copy_;
  bool splicing_ = false;
};

}  // namespace

void MessageWalk::pass(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (remaining_ > 0) {
      const std::size_t here = std::min<std::uint64_t>(remaining_, bytes.size());
      remaining_ -= here;
      bytes = bytes.subspan(here);
      continue;
    }
    const std::size_t wanted = std::min(orangefs::kBmiHeaderSize - partial_, bytes.size());
    std::memcpy(header_ + partial_, bytes.data(), wanted);
    partial_ += wanted;
    bytes = bytes.subspan(wanted);
    if (partial_ < orangefs::kBmiHeaderSize) return;
    const auto header = orangefs::decode_bmi_header(header_);
    if (!header) throw std::runtime_error(orangefs::describe(header.error()));
    partial_ = 0;
    remaining_ = header->payload_size;
    largest_ = std::max(largest_, remaining_);
  }
}

std::unique_ptr<Pump> make_pump(Mechanism mechanism, std::size_t buffer, int from, int to) {
  switch (mechanism) {
    case Mechanism::copy:
      return std::make_unique<CopyPump>(from, to, buffer);
    case Mechanism::recv_splice:
      return std::make_unique<RecvSplicePump>(from, to, buffer, false);
    case Mechanism::adaptive:
      return std::make_unique<RecvSplicePump>(from, to, buffer, true);
    case Mechanism::peek_splice:
      return std::make_unique<PeekSplicePump>(from, to, kSmallBuffer);
    case Mechanism::peek_or_copy:
      return std::make_unique<PeekOrCopyPump>(from, to, kSmallWindow, buffer);
  }
  throw std::logic_error("no such mechanism");
}

}  // namespace vpfs::bench
