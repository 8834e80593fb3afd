#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "net/ready_stream.h"
#include "net/tls.h"
#include "net/tls/openssl.h"

namespace vpfs::net {

// TLS on a connected socket, which it owns and makes non-blocking. It keeps its context. No call
// waits or raises SIGPIPE; the calls are those of ReadyStream. They fail once the socket is closed.
class TlsSession {
 public:
  // `host`, if any, has to be in the peer's certificate.
  TlsSession(StreamSocket socket, std::shared_ptr<TlsContext> context, TlsSide side,
             const std::string& host);
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  [[nodiscard]] StreamSocket& socket() { return socket_; }

  [[nodiscard]] Result<ReadyStream::Wants> handshake();
  [[nodiscard]] std::vector<std::string> peer_names() const;
  [[nodiscard]] ReadyStream::Outcome read_now(std::span<std::byte> into);
  [[nodiscard]] ReadyStream::Outcome write_now(std::span<const std::byte> bytes);
  [[nodiscard]] std::string explain(const std::error_code& error) const;

 private:
  struct Free {
    void operator()(SSL* ssl) const { openssl().SSL_free(ssl); }
  };

  std::shared_ptr<TlsContext> context_;
  StreamSocket socket_;
  std::unique_ptr<SSL, Free> ssl_;
};

}  // namespace vpfs::net
