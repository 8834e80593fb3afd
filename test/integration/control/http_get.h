#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <gtest/gtest.h>

#include "test/support/servers/wire_peer.h"

namespace vpfs::test {

// What an HTTP server answers to GET.
inline std::string http_get(std::uint16_t port, const std::string& path) {
  WirePeer peer = WirePeer::connect(port);
  const std::string request = "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n";
  EXPECT_TRUE(peer.send(std::as_bytes(std::span(request))));
  const Buffer answer = peer.receive_bytes(1 << 24U);
  return {reinterpret_cast<const char*>(answer.data()), answer.size()};
}

}  // namespace vpfs::test
