#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "protocols/orangefs/bmi_header.h"

// Either end of one OrangeFS connection, in the hands of a test: blocking, with deadlines.
namespace vpfs::test {

using Buffer = std::vector<std::byte>;

inline constexpr std::chrono::seconds kPatience{20};

struct WireMessage {
  orangefs::BmiHeader header;
  Buffer payload;

  // As it came, header included.
  [[nodiscard]] Buffer bytes() const;
};

class WirePeer {
 public:
  WirePeer() = default;
  // Takes a connected socket.
  explicit WirePeer(int socket) : socket_(socket) {}
  // To 127.0.0.1. With `receive_buffer` the kernel holds about that many bytes for us.
  [[nodiscard]] static WirePeer connect(std::uint16_t port, int receive_buffer = 0);
  ~WirePeer() { close(); }
  WirePeer(WirePeer&& other) noexcept;
  WirePeer& operator=(WirePeer&& other) noexcept;

  // False when the other side has closed, or takes nothing for `kPatience`.
  bool send(std::span<const std::byte> bytes);
  // As send(), in fragments of random sizes.
  bool send_fragments(std::span<const std::byte> bytes, std::mt19937_64& random);
  // Sends copies of `message` until the other side has taken none for `quiet`; returns how many
  // were sent whole. What is left of the last one is sent by finish_send().
  std::size_t flood(std::span<const std::byte> message, std::size_t most,
                    std::chrono::milliseconds quiet);
  bool finish_send();

  // The next whole message; nothing at the end of the stream, on garbage, or when time is over.
  [[nodiscard]] std::optional<WireMessage> receive(std::chrono::milliseconds patience = kPatience);
  // Exactly that many bytes, or what came before the end.
  [[nodiscard]] Buffer receive_bytes(std::size_t size);
  // Whether something (or the end) is there to be received by then.
  [[nodiscard]] bool readable(std::chrono::milliseconds patience) const;
  // Waits for the other side to close, dropping what still comes.
  [[nodiscard]] bool closed_by_peer(std::chrono::milliseconds patience = kPatience);

  void close();
  // Closes with a reset, as the end of a killed process with unread data does.
  void reset();
  [[nodiscard]] int socket() const { return socket_; }

 private:
  int socket_ = -1;
  Buffer unsent_;
};

// Waits until one of the peers has something to receive; its index.
[[nodiscard]] std::optional<std::size_t> first_readable(std::span<WirePeer> peers,
                                                        std::chrono::milliseconds patience);

// A listening socket whose connections a test serves by hand: the data server of a script.
class FakeDataServer {
 public:
  // Port 0: a free one.
  explicit FakeDataServer(std::uint16_t port = 0);
  ~FakeDataServer();
  FakeDataServer(const FakeDataServer&) = delete;
  FakeDataServer& operator=(const FakeDataServer&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  // The next connection; a peer without a socket when none comes in time.
  [[nodiscard]] WirePeer accept(std::chrono::milliseconds patience = kPatience);

 private:
  int socket_ = -1;
  std::uint16_t port_ = 0;
};

}  // namespace vpfs::test
