#include "client/beegfs/storage_address.h"

#include <charconv>

#include <fmt/format.h>

#include "net/endpoint.h"

namespace vpfs::client {

Result<StorageAddress> parse_storage_address(std::string_view text) {
  const auto wrong = [text] {
    return fail(
        fmt::format("'{}' is not beegfs://HOST:PORT/TARGET (a number from 1 to 65535)", text));
  };
  if (!text.starts_with(kStorageScheme)) return wrong();
  const std::string_view rest = text.substr(kStorageScheme.size());
  const std::size_t slash = rest.find('/');
  if (slash == std::string_view::npos || !net::split_address(rest.substr(0, slash))) return wrong();
  const std::string_view number = rest.substr(slash + 1);
  StorageAddress address{.host_port = std::string(rest.substr(0, slash)), .target = 0};
  const char* const last = number.data() + number.size();
  const auto [end, problem] = std::from_chars(number.data(), last, address.target);
  if (problem != std::errc{} || end != last || address.target == 0) return wrong();
  return address;
}

}  // namespace vpfs::client
