#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "base/result.h"
#include "net/channel.h"
#include "net/tls.h"

namespace vpfs::net {

// A connected stream whose calls never wait, for owners of thousands of them that wait for all at
// once (see ReadySet). Where a call could do nothing, the stream wants() to be waited for.
class ReadyStream {
 public:
  struct Outcome {
    std::size_t size = 0;    // zero with neither of the following: nothing now
    bool has_ended = false;  // the peer sends nothing more
    std::error_code error;
  };
  enum class Wants : std::uint8_t { nothing, read, write };

  virtual ~ReadyStream() = default;
  ReadyStream() = default;
  ReadyStream(const ReadyStream&) = delete;
  ReadyStream& operator=(const ReadyStream&) = delete;

  // Comes before all else, again and again until it wants nothing. The error is a sentence that
  // says what is wrong with the peer.
  [[nodiscard]] virtual Result<Wants> handshake() = 0;
  // Whether one of these calls may take milliseconds.
  [[nodiscard]] virtual bool has_slow_handshake() const { return false; }
  // The names in the peer's certificate; known after the handshake.
  [[nodiscard]] virtual std::vector<std::string> peer_names() const = 0;

  // Reads what is there. Less than there was room for is all, unless it may_have_more(): then call
  // it until it gives nothing.
  [[nodiscard]] virtual Outcome read_now(std::span<std::byte> into) = 0;
  [[nodiscard]] virtual bool may_have_more() const = 0;
  // Writes as much as there is room for. After an outcome of zero the next call has to have the
  // same bytes first.
  [[nodiscard]] virtual Outcome write_now(std::span<const std::byte> bytes) = 0;

  [[nodiscard]] virtual int descriptor() const = 0;
  // What an error of read_now() or write_now() means.
  [[nodiscard]] virtual std::string explain(const std::error_code& error) const = 0;
};

[[nodiscard]] std::unique_ptr<ReadyStream> make_ready_stream(StreamSocket socket);
[[nodiscard]] std::unique_ptr<ReadyStream> make_ready_tls_stream(
    StreamSocket socket, std::shared_ptr<TlsContext> context, TlsSide side,
    const std::string& host = {});  // client: has to be in the server's certificate

}  // namespace vpfs::net
