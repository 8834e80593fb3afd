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

// TLS on a connected socket that does not block. It keeps its context. No call waits or raises
// SIGPIPE; the calls are those of ReadyStream.
class TlsSession {
 public:
  // The socket stays open while calls are made. `host`, if any, has to be in the peer's
  // certificate.
  TlsSession(int socket, std::shared_ptr<TlsContext> context, TlsSide side,
             const std::string& host);
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

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
  int socket_;
  std::unique_ptr<SSL, Free> ssl_;
};

}  // namespace vpfs::net
