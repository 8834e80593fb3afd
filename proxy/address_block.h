#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "net/async.h"

namespace vpfs::proxy {

// An IP address or CIDR block: "10.0.0.0/8", "127.0.0.1", "fd00::/8". An IPv4 address that arrives
// mapped into IPv6 counts as IPv4.
class AddressBlock {
 public:
  [[nodiscard]] static std::optional<AddressBlock> parse(const std::string& text);
  [[nodiscard]] bool contains(const asio::ip::address& address) const;
  // Whether every address of `other` is in this one.
  [[nodiscard]] bool covers(const AddressBlock& other) const;

 private:
  using Bits = std::array<std::uint8_t, 16>;
  static Bits bits_of(const asio::ip::address& address);
  [[nodiscard]] bool contains(const Bits& other) const;

  Bits bits_ = {};  // IPv4 as ::ffff:a.b.c.d
  int prefix_ = 128;
};

}  // namespace vpfs::proxy
