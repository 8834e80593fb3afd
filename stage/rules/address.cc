#include "stage/rules/address.h"

#include <algorithm>
#include <charconv>

#include <arpa/inet.h>  // inet_pton() only, which is a function of its text

namespace vpfs::stage {
namespace {
constexpr Address::Bytes kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr std::size_t kMappedPrefix = 12;  // bytes
}  // namespace

std::optional<Address> Address::parse(const std::string& text) {
  Bytes bytes = kMapped;
  if (::inet_pton(AF_INET, text.c_str(), bytes.data() + kMappedPrefix) == 1) return Address(bytes);
  if (::inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1) return Address(bytes);
  return std::nullopt;
}

std::optional<AddressBlock> AddressBlock::parse(const std::string& text) {
  const std::size_t slash = text.find('/');
  const std::optional<Address> address = Address::parse(text.substr(0, slash));
  if (!address) return std::nullopt;
  const bool is_dotted = text.find(':') == std::string::npos;
  const int width = is_dotted ? 32 : 128;
  int prefix = width;
  if (slash != std::string::npos) {
    const char* const end = text.data() + text.size();
    const auto [stop, problem] = std::from_chars(text.data() + slash + 1, end, prefix);
    if (problem != std::errc{} || stop != end || prefix < 0 || prefix > width) return std::nullopt;
  }
  AddressBlock block;
  block.address_ = *address;
  block.prefix_ = prefix + 128 - width;
  return block;
}

Address AddressBlock::first() const {
  Address::Bytes bytes = address_.bytes();
  const auto whole = static_cast<std::size_t>(prefix_ / 8);
  if (whole < bytes.size()) {
    bytes[whole] &= static_cast<std::uint8_t>(0xff00 >> prefix_ % 8);
    std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(whole) + 1, bytes.end(), 0);
  }
  return Address(bytes);
}

bool AddressBlock::covers(const AddressBlock& other) const {
  return prefix_ <= other.prefix_ && contains(other.address_);
}

bool AddressBlock::contains(const Address& address) const {
  const Address::Bytes& mine = address_.bytes();
  const Address::Bytes& other = address.bytes();
  const auto whole = static_cast<std::ptrdiff_t>(prefix_ / 8);
  if (!std::equal(mine.begin(), mine.begin() + whole, other.begin())) return false;
  const int rest = prefix_ % 8;
  if (rest == 0) return true;
  const auto at = static_cast<std::size_t>(whole);
  return (mine[at] ^ other[at]) >> (8 - rest) == 0;
}

}  // namespace vpfs::stage
