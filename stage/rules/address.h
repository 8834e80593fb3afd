#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>

namespace vpfs::stage {

// A client's address: IPv6, or IPv4 as ::ffff:a.b.c.d, however it arrived.
class Address {
 public:
  using Bytes = std::array<std::uint8_t, 16>;  // in network order

  Address() = default;  // ::
  explicit Address(const Bytes& bytes) : bytes_(bytes) {}
  // "10.0.0.1" or "fd00::1"; nothing for any other text.
  [[nodiscard]] static std::optional<Address> parse(const std::string& text);

  [[nodiscard]] const Bytes& bytes() const { return bytes_; }
  auto operator<=>(const Address&) const = default;

 private:
  Bytes bytes_ = {};
};

// A CIDR block, "10.0.0.0/8" or "fd00::/8", or a single address.
class AddressBlock {
 public:
  AddressBlock() = default;
  // The addresses that share the first `prefix` bits with this one; 0 ... 128.
  AddressBlock(const Address& address, int prefix) : address_(address), prefix_(prefix) {}
  [[nodiscard]] static std::optional<AddressBlock> parse(const std::string& text);
  [[nodiscard]] bool contains(const Address& address) const;
  // Whether every address of `other` is in this one.
  [[nodiscard]] bool covers(const AddressBlock& other) const;

  // The number of leading bits that count, 0 ... 128, and an address of the block.
  [[nodiscard]] int prefix() const { return prefix_; }
  [[nodiscard]] const Address& address() const { return address_; }
  // The lowest address.
  [[nodiscard]] Address first() const;
  [[nodiscard]] bool is_single() const { return prefix_ == 128; }

 private:
  Address address_;
  int prefix_ = 128;
};

}  // namespace vpfs::stage
