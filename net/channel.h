#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include <asio/generic/stream_protocol.hpp>

#include "base/result.h"
#include "net/async.h"

namespace vpfs::net {

// A connected stream socket of any address family.
using StreamSocket = asio::generic::stream_protocol::socket;

struct Transfer {
  std::error_code error;
  std::size_t size = 0;
};

// A stream of bytes to a peer: a UNIX socket, or TLS over TCP.
//
// One read and one write may be under way at a time; they must have ended before the channel is
// destroyed, which close() brings about. Belongs to the strand of its socket.
class Channel {
 public:
  Channel() = default;
  virtual ~Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Comes before all else. The error is a sentence that says what is wrong with the peer.
  [[nodiscard]] virtual Task<Result<void>> handshake() = 0;
  // The names in the peer's certificate, its common name first; known after the handshake.
  [[nodiscard]] virtual std::vector<std::string> peer_names() const = 0;

  // Waits for at least one byte.
  [[nodiscard]] virtual Task<Transfer> read_some(std::span<std::byte> into) = 0;
  // Writes all of them.
  [[nodiscard]] virtual Task<std::error_code> write(std::span<const std::byte> bytes) = 0;
  // How many of the bytes were taken at once, without waiting; 0 if this kind of channel cannot
  // tell. Not while a write() is under way.
  [[nodiscard]] virtual std::size_t write_now(std::span<const std::byte> bytes) = 0;

  // Tells the peer that nothing more comes.
  virtual void end_output() = 0;
  // Ends reads and writes with an error. Idempotent.
  virtual void close() = 0;

  // What an error of read_some() or write() means.
  [[nodiscard]] virtual std::string explain(const std::error_code& error) const = 0;
};

[[nodiscard]] std::unique_ptr<Channel> make_plain_channel(StreamSocket socket);

}  // namespace vpfs::net
