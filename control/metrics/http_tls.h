#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/config_reader.h"
#include "base/result.h"
#include "control/metrics/http_config.h"
#include "control/wire/accounts.h"
#include "control/wire/port_config.h"
#include "net/tls.h"

namespace vpfs::control {

// How an HTTP port serves other hosts: over TLS, and only clients whose certificates may read.
struct HttpTls {
  std::shared_ptr<net::TlsContext> context;
  // By the names in the client's certificate. The port's thread calls it.
  std::function<bool(const std::vector<std::string>& names)> may_read;
};

// With the certificate, the CA, the readers and the writers of the control port. The error begins
// with the key.
[[nodiscard]] Result<HttpTls> load_http_tls(const PortConfig& control,
                                            const Accounts& accounts = {});

// Reports what load_http_tls() would, unless check_port_config() has.
void check_http_tls(const HttpConfig& http, const PortConfig& control, ConfigErrors& errors,
                    const Accounts& accounts = {});

}  // namespace vpfs::control
