#include "proxy/address_block.h"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace vpfs::proxy {

AddressBlock::Bits AddressBlock::bits_of(const asio::ip::address& address) {
  if (address.is_v4())
    return asio::ip::make_address_v6(asio::ip::v4_mapped, address.to_v4()).to_bytes();
  return address.to_v6().to_bytes();
}

std::optional<AddressBlock> AddressBlock::parse(const std::string& text) {
  const std::size_t slash = text.find('/');
  std::error_code error;
  const asio::ip::address address = asio::ip::make_address(text.substr(0, slash), error);
  if (error) return std::nullopt;
  const int width = address.is_v4() ? 32 : 128;
  int prefix = width;
  if (slash != std::string::npos) {
    const char* const end = text.data() + text.size();
    const auto [stop, problem] = std::from_chars(text.data() + slash + 1, end, prefix);
    if (problem != std::errc{} || stop != end || prefix < 0 || prefix > width) return std::nullopt;
  }
  AddressBlock block;
  block.bits_ = bits_of(address);
  block.prefix_ = prefix + 128 - width;
  return block;
}

bool AddressBlock::contains(const asio::ip::address& address) const {
  return contains(bits_of(address));
}

bool AddressBlock::covers(const AddressBlock& other) const {
  return prefix_ <= other.prefix_ && contains(other.bits_);
}

bool AddressBlock::contains(const Bits& other) const {
  const auto whole = static_cast<std::ptrdiff_t>(prefix_ / 8);
  if (!std::equal(bits_.begin(), bits_.begin() + whole, other.begin())) return false;
  const int rest = prefix_ % 8;
  if (rest == 0) return true;
  const auto at = static_cast<std::size_t>(whole);
  return (bits_[at] ^ other[at]) >> (8 - rest) == 0;
}

}  // namespace vpfs::proxy
