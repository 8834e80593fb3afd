#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "protocols/protocol.h"
#include "test/fuzz/conversation_driver.h"

namespace vpfs::test {

// What two peers say and what a session decides, as it happens and once more in other pieces: a
// conversation has to tell the same, however the same bytes are cut.
class ConversationExchange {
 public:
  using Maker = std::function<std::unique_ptr<Conversation>()>;

  explicit ConversationExchange(Maker maker) : maker_(std::move(maker)), driver_(maker_()) {}

  // Does nothing once the connection is closed; neither do the others.
  void send(Sender from, std::span<const std::byte> bytes);
  // No I/O is held or outstanding: nothing happens. Else `any` chooses one.
  void release(std::size_t any);
  void refuse(std::size_t any);
  void forget(std::size_t any);
  void forget_ending();
  void forget_answers();
  void hold_metadata(bool hold);

  [[nodiscard]] const ConversationDriver& driver() const { return driver_; }

  // Everything again: in pieces of at most `piece` bytes, or with `join` as few arrivals as there
  // can be. Ends the program when the conversation tells something else.
  void repeat(std::size_t piece, bool join);
  // As repeat(), in bytes if they are few, in pieces of `piece` bytes, and joined.
  void repeat_in_all_ways(std::size_t piece);

 private:
  enum class Kind : std::uint8_t {
    arrive,
    release,
    refuse,
    forget,
    forget_ending,
    forget_answers,
    hold_metadata
  };
  struct Event {
    Kind kind = Kind::arrive;
    Sender from = Sender::client;
    std::vector<std::byte> bytes;
    std::size_t place = 0;
  };

  void happen(Event event);
  static void apply(const Event& event, ConversationDriver& driver, std::size_t piece);

  Maker maker_;
  std::vector<Event> events_;
  std::size_t total_ = 0;  // bytes
  ConversationDriver driver_;
};

}  // namespace vpfs::test
