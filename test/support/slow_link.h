#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <list>
#include <thread>

#include "test/support/servers/wire_peer.h"

namespace vpfs::test {

// A link to a port of 127.0.0.1. All connections through it together move no more bytes in a second
// than set_rate() says, each way, in turn, a packet at a time. Little waits inside it, so a sender
// has no room for more than the link moves.
class SlowLink {
 public:
  explicit SlowLink(std::uint16_t to);

  [[nodiscard]] std::uint16_t port() const { return listener_.port(); }
  // Without a rate it moves as much as it can.
  void set_rate(double bytes_per_second) { rate_ = bytes_per_second; }
  // Bytes from clients, and to clients.
  [[nodiscard]] std::uint64_t sent() const { return ways_[0].moved; }
  [[nodiscard]] std::uint64_t received() const { return ways_[1].moved; }
  // Connections so far.
  [[nodiscard]] std::size_t accepted() const { return accepted_; }

 private:
  static constexpr std::size_t kPacket = 1448;
  // One direction of a connection, with the packet that is on its way.
  struct Lane {
    std::array<std::byte, kPacket> packet;
    std::size_t begin = 0;
    std::size_t end = 0;
    bool ended = false;
  };
  struct SlowConnection {
    std::array<WirePeer, 2> peers;  // client, server
    std::array<Lane, 2> lanes;      // from each
  };
  struct Way {
    double allowance = 0;
    std::atomic<std::uint64_t> moved = 0;
  };

  void run(const std::stop_token& stop);
  void accept();
  // Moves what the link may move that way by now.
  void move(std::size_t way);
  // One packet, or what its receiver takes of it; the number of bytes.
  static std::size_t pass(SlowConnection& connection, std::size_t way);

  std::uint16_t to_;
  FakeDataServer listener_;
  std::atomic<double> rate_ = std::numeric_limits<double>::infinity();
  std::array<Way, 2> ways_;
  std::atomic<std::size_t> accepted_ = 0;
  std::list<SlowConnection> connections_;  // the next one to move a packet is the first
  std::jthread thread_;
};

}  // namespace vpfs::test
