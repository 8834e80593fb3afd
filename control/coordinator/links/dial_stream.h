#pragma once

#include <expected>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "control/wire/port_address.h"
#include "net/async.h"
#include "net/endpoint.h"
#include "net/ready_stream.h"
#include "net/tls.h"

namespace vpfs::coordinator {

// A peer that a coordinator dials, as its messages name it.
struct DialTarget {
  control::PortAddress address;
  std::vector<net::Endpoint> endpoints = {};  // of its host; none: it is looked up
  std::string peer;                           // what it is
  std::string key;                            // of its configuration, which opens the port
};

// Connects to a control port; on TCP the stream speaks TLS. The error is a sentence.
using DialledStream = std::expected<std::unique_ptr<net::ReadyStream>, std::string>;
[[nodiscard]] net::Task<DialledStream> dial_stream(DialTarget target, Duration within,
                                                   std::shared_ptr<net::TlsContext> tls);

}  // namespace vpfs::coordinator
