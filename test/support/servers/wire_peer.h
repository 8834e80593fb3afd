#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "protocols/orangefs/bmi_header.h"

// One end of a connection, driven by a test: blocking, with deadlines.
namespace vpfs::test {

using Buffer = std::vector<std::byte>;

inline constexpr std::chrono::seconds kPatience{20};

struct WireMessage {
  orangefs::BmiHeader header;
  Buffer payload;

  // The message as received, header included.
  [[nodiscard]] Buffer bytes() const;
};

class WirePeer {
 public:
  WirePeer() = default;
  // Takes a connected socket.
  explicit WirePeer(int socket) : socket_(socket) {}
  // Connects to 127.0.0.1. `receive_buffer` limits the bytes that the kernel holds for this end.
  [[nodiscard]] static WirePeer connect(std::uint16_t port, int receive_buffer = 0);
  ~WirePeer() { close(); }
  WirePeer(WirePeer&& other) noexcept;
  WirePeer& operator=(WirePeer&& other) noexcept;

  // False if the other side has closed, or takes nothing for `kPatience`.
  bool send(std::span<const std::byte> bytes);
  // Like send(), in fragments of random sizes.
  bool send_fragments(std::span<const std::byte> bytes, std::mt19937_64& random);
  // Sends copies of `message` until the other side has taken nothing for `quiet`. Returns how many
  // were sent whole. finish_send() sends the rest of the last one.
  std::size_t flood(std::span<const std::byte> message, std::size_t most,
                    std::chrono::milliseconds quiet);
  bool finish_send();

  // The next whole message; nothing at the end of the stream, on garbage, or when time runs out.
  [[nodiscard]] std::optional<WireMessage> receive(std::chrono::milliseconds patience = kPatience);
  // Exactly that many bytes, or fewer if the stream ends before.
  [[nodiscard]] Buffer receive_bytes(std::size_t size);
  // Whether data or the end of the stream can be received within that time.
  [[nodiscard]] bool readable(std::chrono::milliseconds patience) const;
  // Waits for the other side to close, and drops what it still sends.
  [[nodiscard]] bool closed_by_peer(std::chrono::milliseconds patience = kPatience);

  void close();
  // Closes with a reset, as when a process is killed with unread data.
  void reset();
  [[nodiscard]] int socket() const { return socket_; }

 private:
  int socket_ = -1;
  Buffer unsent_;
};

// Waits until one of the peers has something to receive, and returns its index.
[[nodiscard]] std::optional<std::size_t> first_readable(std::span<WirePeer> peers,
                                                        std::chrono::milliseconds patience);

// A data server that the test plays: a listening socket whose connections the test serves.
class FakeDataServer {
 public:
  // Port 0: any free port.
  explicit FakeDataServer(std::uint16_t port = 0);
  ~FakeDataServer();
  FakeDataServer(const FakeDataServer&) = delete;
  FakeDataServer& operator=(const FakeDataServer&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  // The next connection; a peer without a socket if none comes in time.
  [[nodiscard]] WirePeer accept(std::chrono::milliseconds patience = kPatience);

 private:
  int socket_ = -1;
  std::uint16_t port_ = 0;
};

}  // namespace vpfs::test
