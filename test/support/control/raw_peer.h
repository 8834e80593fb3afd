#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "control/wire/framing.h"
#include "net/endpoint.h"

namespace vpfs::test {

using namespace std::chrono_literals;

// A peer of a control port that sends what it likes. Its calls block, with a time-out.
class RawPeer {
 public:
  // Not connected if the port refuses; see connected().
  explicit RawPeer(const std::string& socket_path);
  explicit RawPeer(const net::Endpoint& tcp);
  // A connected socket, which it closes.
  [[nodiscard]] static RawPeer adopt(int socket);
  ~RawPeer();
  RawPeer(RawPeer&& other) noexcept;
  RawPeer& operator=(RawPeer&& other) noexcept;

  [[nodiscard]] bool connected() const { return socket_ >= 0; }
  // Whether all was taken within `patience`.
  bool send(std::string_view bytes, std::chrono::milliseconds patience = 5s);
  bool send(const control::Envelope& message);
  // The next message; nothing at the end of the stream or after `patience`.
  std::optional<control::Envelope> receive(std::chrono::milliseconds patience = 5s);
  // Whether the port closed the connection within `patience`; drops what it sends before.
  bool closed_within(std::chrono::milliseconds patience = 5s);
  // Sends Hello; the answer.
  std::optional<control::Envelope> greet(std::uint32_t version = 1, std::uint32_t least = 1);
  void end_output();
  void set_receive_buffer(int bytes);

 private:
  RawPeer() = default;
  bool wait_for(short events, std::chrono::milliseconds patience) const;
  int socket_ = -1;
  control::FrameReader reader_{control::kMostAnswer};
};

// Bytes of a length field alone.
[[nodiscard]] std::string length_field(std::uint32_t length);
[[nodiscard]] std::string frame_of(const control::Envelope& message);

// Runs `work` in a thread of another user and group. False, without running it, where that is not
// allowed. All other threads of the process keep their user.
[[nodiscard]] bool run_as(std::uint32_t uid, std::uint32_t gid, const std::function<void()>& work);

}  // namespace vpfs::test
