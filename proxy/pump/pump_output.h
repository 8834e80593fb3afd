#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "net/splice_pipe.h"
#include "proxy/pump/pump_thread.h"

namespace vpfs::proxy {

// The output half of a pump: the ordered bytes for one socket. It sends bytes from where they are
// and keeps only what the socket does not take. Injected messages go between the messages of the
// stream, never into one.
//
// It makes no callbacks and starts no waits; that is up to the pump.
class PumpOutput {
 public:
  enum class Outcome : std::uint8_t {
    all,      // the socket has taken everything
    blocked,  // it took less: the rest is kept
    failed,   // see error()
  };
  using Parts = std::span<const std::span<const std::byte>>;

  // The socket is open while the output is used.
  PumpOutput(int sink, PumpThread& thread) : sink_(sink), thread_(thread) {}

  // Whether the stream's last message is incomplete.
  void set_in_mid_message(bool in_mid_message) { in_mid_message_ = in_mid_message; }

  // Appends a message behind the current one. Nothing is written before write().
  void inject(std::span<const std::byte> message);
  // Like inject(), but the bytes must stay in place until send_injected() or
  // send_behind_injected().
  void inject_borrowed(std::span<const std::byte> message) { borrowed_.push_back(message); }
  // Sends the borrowed messages at once if nothing is queued before them; otherwise copies them.
  // `may_send`: no wait for the socket is in flight.
  [[nodiscard]] Outcome send_injected(bool may_send);
  // Sends the borrowed messages followed by `runs`. REQUIRES: empty(). `more_follows`: the kernel
  // may delay the last bytes and send them together with the next ones.
  [[nodiscard]] Outcome send_behind_injected(Parts runs, bool more_follows);

  // Sends received bytes of the stream. While messages wait for the end of the current message, the
  // first run is the rest of that message and nothing more.
  [[nodiscard]] Outcome forward(Parts runs);
  // Moves at most `size` bytes of the current message from `source` into a pipe by splice(2).
  // Returns what read() would, or nothing if the process is out of descriptors. REQUIRES: empty().
  [[nodiscard]] std::optional<ssize_t> splice_from(int source, std::uint64_t size);
  // Writes what is queued.
  [[nodiscard]] Outcome write();

  // Whether nothing is queued that the socket could take now. A message that waits for the end of
  // another one does not count.
  [[nodiscard]] bool empty() const {
    return done_ == kept_.size() && !(pipe_ && pipe_->size() > 0) &&
           (in_mid_message_ || waiting_.empty());
  }
  [[nodiscard]] bool has_waiting() const { return !waiting_.empty(); }
  // Since when an injected message has been waiting for the end of the stream's message.
  [[nodiscard]] std::optional<TimePoint> waiting_since() const {
    return waiting_.empty() ? std::nullopt : std::optional(waiting_since_);
  }
  // Whether all that is queued is in the process's memory, and nothing in a pipe.
  [[nodiscard]] bool in_memory() const { return !pipe_ || pipe_->size() == 0; }
  // A copy of what is queued. REQUIRES: in_memory().
  [[nodiscard]] std::vector<std::byte> queued() const;
  // Bytes in the process's memory.
  [[nodiscard]] std::size_t unsent() const { return kept_.size() - done_ + waiting_.size(); }
  [[nodiscard]] std::uint64_t bytes_sent() const { return bytes_sent_; }

  // The pump begins to wait for the socket.
  void set_blocked() {
    if (!blocked_since_) blocked_since_ = thread_.now();
  }
  // Since when the socket has taken nothing although something is queued.
  [[nodiscard]] std::optional<TimePoint> blocked_since() const { return blocked_since_; }
  // Whether the socket has taken bytes again since the last call.
  [[nodiscard]] bool take_unblocked() { return std::exchange(unblocked_, false); }

  [[nodiscard]] std::error_code error() const { return {error_, std::system_category()}; }

 private:
  [[nodiscard]] Outcome send(Parts parts, int flags);
  void keep(std::span<const std::byte> bytes);
  void keep_waiting();
  void note_sent(std::size_t size);
  [[nodiscard]] Outcome fail();

  const int sink_;
  PumpThread& thread_;
  // The bytes go out in this order: kept_ from done_ on, the pipe, waiting_.
  std::vector<std::byte> kept_;
  std::size_t done_ = 0;
  std::unique_ptr<net::SplicePipe> pipe_;             // held only while it has bytes
  std::vector<std::byte> waiting_;                    // injected in mid-message
  TimePoint waiting_since_ = {};                      // of its first message
  std::vector<std::span<const std::byte>> borrowed_;  // injected in this event
  bool in_mid_message_ = false;
  bool unblocked_ = false;
  int error_ = 0;
  std::optional<TimePoint> blocked_since_;
  std::uint64_t bytes_sent_ = 0;
};

}  // namespace vpfs::proxy
