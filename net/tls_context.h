#pragma once

#include <string>

#include <asio/ssl/context.hpp>
#include <openssl/ssl.h>

#include "net/tls.h"

// What the kinds of TLS streams share.
namespace vpfs::net {

struct TlsContext::State {
  explicit State(TlsSide side)
      : context(side == TlsSide::server ? asio::ssl::context::tls_server
                                        : asio::ssl::context::tls_client) {}
  asio::ssl::context context;
};

// From now on the peer's certificate has to be one for `host`, a name or an address.
void expect_host(SSL* ssl, const std::string& host);

}  // namespace vpfs::net
