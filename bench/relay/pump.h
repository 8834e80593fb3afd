#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/splice_pipe.h"
#include "protocols/orangefs/bmi_header.h"

namespace vpfs::bench {

// Follows the messages in a stream that is seen in pieces of any size.
class MessageWalk {
 public:
  // Throws std::runtime_error when the framing is lost.
  void pass(std::span<const std::byte> bytes);
  // As pass() of payload that is not looked at; at most remaining().
  void skip(std::size_t bytes) { remaining_ -= bytes; }
  // Payload of the current message that has not passed yet.
  [[nodiscard]] std::uint64_t remaining() const { return remaining_; }
  // Header bytes that are waiting for the rest of their header.
  [[nodiscard]] std::size_t partial_header() const { return partial_; }
  // Payload of the largest message so far.
  [[nodiscard]] std::uint64_t largest() const { return largest_; }

 private:
  std::byte header_[orangefs::kBmiHeaderSize] = {};
  std::size_t partial_ = 0;
  std::uint64_t remaining_ = 0;
  std::uint64_t largest_ = 0;
};

// Moves one direction of one connection. Sockets are non-blocking and borrowed.
class Pump {
 public:
  enum class State { more, blocked, ended };

  virtual ~Pump() = default;
  // One turn: a receive and a send at most. `blocked`: not before a socket says that it is ready.
  [[nodiscard]] virtual State step() = 0;
};

// The ways of moving bytes that are compared. recv_splice takes whatever is there up to the buffer
// and splices what then is missing of a message above 32 KiB; adaptive does so with a small buffer
// after a large message and with a large one after a small message. peek_splice peeks at headers
// and splices whole messages; peek_or_copy does so while messages are large and copies small ones.
enum class Mechanism { copy, recv_splice, adaptive, peek_splice, peek_or_copy };

[[nodiscard]] std::unique_ptr<Pump> make_pump(Mechanism mechanism, std::size_t buffer, int from,
                                              int to);

// Runs pairs of pumps (both directions of each connection) on the calling thread until a
// connection ends. Pairs of sockets: towards the client, towards the server.
void relay_with_epoll(const std::vector<std::pair<int, int>>& connections, Mechanism mechanism,
                      std::size_t buffer);
// The same with io_uring: one recv or send in flight for each direction. Throws
// std::system_error where the kernel does not allow it.
void relay_with_uring(const std::vector<std::pair<int, int>>& connections, std::size_t buffer);

}  // namespace vpfs::bench
