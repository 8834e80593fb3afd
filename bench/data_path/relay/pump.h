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

// Tracks message boundaries in a stream that arrives in pieces of any size.
class MessageWalk {
 public:
  // Throws std::runtime_error when the framing is lost.
  void pass(std::span<const std::byte> bytes);
  // Like pass(), for at most remaining() bytes of payload that the caller has not read.
  void skip(std::size_t bytes) { remaining_ -= bytes; }
  // Payload bytes of the current message that are still to pass.
  [[nodiscard]] std::uint64_t remaining() const { return remaining_; }
  // Bytes of an incomplete header.
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
  // One turn: at most one receive and one send. After `blocked`, wait until a socket is ready.
  [[nodiscard]] virtual State step() = 0;
};

// The mechanisms that are compared. recv_splice receives up to one buffer, and splices the rest of
// a message above 32 KiB. adaptive does the same, with a small buffer after a large message and a
// large buffer after a small one. peek_splice peeks at headers and splices whole messages.
// peek_or_copy does so while messages are large, and copies small ones.
enum class Mechanism { copy, recv_splice, adaptive, peek_splice, peek_or_copy };

[[nodiscard]] std::unique_ptr<Pump> make_pump(Mechanism mechanism, std::size_t buffer, int from,
                                              int to);

// Runs two pumps per connection, one for each direction, on the calling thread until a connection
// ends. A connection is a pair of sockets: towards the client, and towards the server.
void relay_with_epoll(const std::vector<std::pair<int, int>>& connections, Mechanism mechanism,
                      std::size_t buffer);
// The same with io_uring, with one recv or send in flight per direction. Throws std::system_error
// if the kernel does not allow it.
void relay_with_uring(const std::vector<std::pair<int, int>>& connections, std::size_t buffer);

}  // namespace vpfs::bench
