#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "protocols/protocol.h"
#include "test/fuzz/memory_watch.h"

namespace vpfs::test {

// Does to a conversation what a session of the proxy does, and ends the program when a step breaks
// what protocols/protocol.h promises.
//
// Each look is at a copy of just the bytes that it may see, so that AddressSanitizer sees a read
// past them. A stream that waits is asked again after every step of the other one.
class ConversationDriver {
 public:
  explicit ConversationDriver(std::unique_ptr<Conversation> conversation)
      : conversation_(std::move(conversation)) {}

  // More bytes of a stream, which come in pieces of at most that size.
  void arrive(Sender from, std::span<const std::byte> bytes, std::size_t piece);

  // What happens to I/O, by its place among those that are held or outstanding.
  void release(std::size_t place);
  void refuse(std::size_t place);
  void forget(std::size_t place);
  // The I/O, if there is one, whose last bytes have been looked at and are not all here.
  void forget_ending();
  void forget_answers();
  void hold_metadata(bool hold);

  [[nodiscard]] const std::vector<IoKey>& held() const { return held_; }
  [[nodiscard]] const std::vector<IoKey>& outstanding() const { return outstanding_; }
  [[nodiscard]] bool is_outstanding(IoKey key) const;
  // The last of those that were outstanding.
  [[nodiscard]] const std::optional<FinishedIo>& last_finished() const { return last_finished_; }
  [[nodiscard]] std::uint64_t data_from_client() const { return conversation_->data_from_client(); }
  // Lost framing, or peers whose connection a session closes.
  [[nodiscard]] bool closed() const { return closed_; }
  // Closed because a client used a key too early: when exactly that shows depends on the pieces.
  [[nodiscard]] bool cut_short() const { return cut_short_; }
  // Whether the stream has been looked at up to that offset.
  [[nodiscard]] bool has_passed(Sender from, std::uint64_t offset) const;
  [[nodiscard]] std::uint64_t received(Sender from) const { return stream(from).bytes.size(); }
  [[nodiscard]] bool at_rest() const { return conversation_->at_rest(); }

  // One line for each step but need_more and wait, for each call above, and from log_state().
  [[nodiscard]] const std::vector<std::string>& log() const { return log_; }
  void log_state();

 private:
  struct Stream {
    std::vector<std::byte> bytes;  // all that have come
    std::size_t here = 0;          // of them, as far as the conversation can know
    std::uint64_t at = 0;          // where the next message begins; may be past the end
    std::optional<IoKey> ends;     // an I/O that is over when all bytes before `at` are here
    bool waits = false;
  };

  [[nodiscard]] Stream& stream(Sender from) { return streams_[static_cast<std::size_t>(from)]; }
  [[nodiscard]] const Stream& stream(Sender from) const {
    return streams_[static_cast<std::size_t>(from)];
  }
  void pump(Sender from);
  [[nodiscard]] Step look(Sender from, std::size_t window);
  void check_size(Sender from, const Step& step, std::size_t here) const;
  void hold(const Step& step);
  void finish(Stream& stream, const FinishedIo& io);
  void forget_key(IoKey key);
  void go_on(Sender waiting);
  void check_memory() const;

  std::unique_ptr<Conversation> conversation_;
  std::array<Stream, 2> streams_;
  std::vector<std::byte> shown_;  // the last look's bytes
  std::vector<IoKey> held_;
  std::vector<IoKey> outstanding_;
  std::optional<FinishedIo> last_finished_;
  bool closed_ = false;
  bool cut_short_ = false;
  MemoryWatch memory_;
  std::vector<std::string> log_;
};

}  // namespace vpfs::test
