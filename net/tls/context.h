#pragma once

#include <memory>

#include "net/tls.h"
#include "net/tls/openssl.h"

// What the kinds of TLS streams share.
namespace vpfs::net {

struct TlsContext::State {
  struct Free {
    void operator()(SSL_CTX* freed) const { openssl().SSL_CTX_free(freed); }
  };
  std::unique_ptr<SSL_CTX, Free> context;
};

}  // namespace vpfs::net
