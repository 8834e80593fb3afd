#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <openssl/ssl.h>

#include "bench/control/control_cycles/sockets.h"
#include "net/tls.h"

namespace vpfs::bench {

// TLS with a certificate on both sides, without a thread or a loop of its own.
class TlsClient {
 public:
  // `host` must be in the certificate of the peer.
  TlsClient(const net::TlsFiles& files, std::string host);

  struct Free {
    void operator()(SSL* session) const { SSL_free(session); }
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };
  using Session = std::unique_ptr<SSL, Free>;
  [[nodiscard]] Session start(const net::Descriptor& socket) const;

 private:
  const std::string host_;
  std::unique_ptr<SSL_CTX, Free> context_;
};

// A stage's connection. No call waits; whatever fails throws.
class StageLink {
 public:
  StageLink() = default;
  // Without `tls` the connection is plain.
  StageLink(net::Descriptor socket, const TlsClient* tls);

  [[nodiscard]] const net::Descriptor& socket() const { return socket_; }
  [[nodiscard]] bool is_tls() const { return session_ != nullptr; }
  // Comes before all else, and again when more has arrived, until it says true.
  [[nodiscard]] bool shake_hands();
  // How many bytes there were, perhaps none yet; nothing: the peer has closed the connection.
  [[nodiscard]] std::optional<std::size_t> receive(std::span<std::byte> into);
  // REQUIRES: the peer takes what it is sent, so that there is room for it.
  void send(std::string_view bytes);
  void close();

 private:
  net::Descriptor socket_;
  TlsClient::Session session_;
};

}  // namespace vpfs::bench
