#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <vector>

#include "base/clock.h"
#include "net/async.h"
#include "net/splice_pipe.h"
#include "proxy/pump_thread.h"

namespace vpfs::proxy {

// The output half of a pump: the bytes that one socket is to take, in their order. It sends bytes
// from where they are, as far as the socket takes them, and keeps the rest. Messages from elsewhere
// are put in between the messages of the stream, never into one.
//
// It calls nobody back and waits for nothing; the pump asks for waits and reports what happened.
class PumpOutput {
 public:
  enum class Outcome : std::uint8_t {
    all,      // the socket has taken all that there was
    blocked,  // it took less: the rest is kept
    failed,   // see error()
  };
  using Parts = std::span<const std::span<const std::byte>>;

  PumpOutput(net::Socket& sink, PumpThread& thread) : sink_(sink), thread_(thread) {}

  // Whether the last message of the stream that was forwarded, spliced or dropped is incomplete.
  void set_in_mid_message(bool in_mid_message) { in_mid_message_ = in_mid_message; }

  // Puts a message behind the current one. Nothing is written before write().
  void inject(std::span<const std::byte> message);
  // As inject(), for a message that stays where it is until send_injected() or
  // send_behind_injected().
  void inject_borrowed(std::span<const std::byte> message) { borrowed_.push_back(message); }
  // Sends the borrowed messages at once if nothing is before them. `may_send`: no wait for the
  // socket is in flight.
  [[nodiscard]] Outcome send_injected(bool may_send);
  // Sends the borrowed messages with `runs` behind them. REQUIRES: nothing is here.
  // `more_follows`: the kernel may wait for what comes next, to send it together with this.
  [[nodiscard]] Outcome send_behind_injected(Parts runs, bool more_follows);

  // Sends received bytes of the stream. The first run is the rest of the message that is half
  // through, if one is, and nothing else while messages wait for its end.
  [[nodiscard]] Outcome forward(Parts runs);
  // Takes at most `size` bytes of the current message from `source` by splice(2); as read().
  // Nothing when the process is out of descriptors. REQUIRES: nothing is here.
  [[nodiscard]] std::optional<ssize_t> splice_from(int source, std::uint64_t size);
  // Writes what is here.
  [[nodiscard]] Outcome write();

  // Whether something is here that the socket could take now. A message that waits for the end of
  // another one is not.
  [[nodiscard]] bool empty() const {
    return done_ == kept_.size() && !(pipe_ && pipe_->size() > 0) &&
           (in_mid_message_ || waiting_.empty());
  }
  [[nodiscard]] bool has_waiting() const { return !waiting_.empty(); }
  // Since when an injected message has been waiting for the end of the stream's message.
  [[nodiscard]] std::optional<TimePoint> waiting_since() const {
    return waiting_.empty() ? std::nullopt : std::optional(waiting_since_);
  }
  // Bytes in the process's memory.
  [[nodiscard]] std::size_t unsent() const { return kept_.size() - done_ + waiting_.size(); }
  [[nodiscard]] std::uint64_t bytes_sent() const { return bytes_sent_; }

  // The pump begins to wait for the socket.
  void set_blocked() {
    if (!blocked_since_) blocked_since_ = thread_.now();
  }
  // Since when the socket has taken nothing although something is here.
  [[nodiscard]] std::optional<TimePoint> blocked_since() const { return blocked_since_; }
  // Whether the socket has begun to take bytes again since the last call.
  [[nodiscard]] bool take_unblocked() { return std::exchange(unblocked_, false); }

  [[nodiscard]] std::error_code error() const { return {error_, std::system_category()}; }

 private:
  [[nodiscard]] Outcome send(Parts parts, int flags);
  void keep(std::span<const std::byte> bytes);
  void keep_waiting();
  void note_sent(std::size_t size);
  [[nodiscard]] Outcome fail();

  net::Socket& sink_;
  PumpThread& thread_;
  // In the order in which they go: kept_ from done_ on, what is in the pipe, waiting_.
  std::vector<std::byte> kept_;
  std::size_t done_ = 0;
  std::unique_ptr<net::SplicePipe> pipe_;             // only while it has bytes
  std::vector<std::byte> waiting_;                    // injected in mid-message
  TimePoint waiting_since_ = {};                      // the first of it
  std::vector<std::span<const std::byte>> borrowed_;  // injected in this event
  bool in_mid_message_ = false;
  bool unblocked_ = false;
  int error_ = 0;
  std::optional<TimePoint> blocked_since_;
  std::uint64_t bytes_sent_ = 0;
};

}  // namespace vpfs::proxy
