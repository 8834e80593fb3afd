#include "client/beegfs/storage_address.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "net/endpoint.h"

namespace vpfs::client {

Result<StorageAddress> parse_storage_address(std::string_view text) {
  const auto wrong = [text] {
    return fail(
        fmt::format("'{}' is not a mount address: expected beegfs://HOST:PORT/TARGET[,TARGET...] "
                    "(numbers from 1 to 65535, each once)",
                    text));
  };
  if (!text.starts_with(kStorageScheme)) return wrong();
  const std::string_view rest = text.substr(kStorageScheme.size());
  const std::size_t slash = rest.find('/');
  if (slash == std::string_view::npos || !net::split_address(rest.substr(0, slash))) return wrong();
  StorageAddress address{.host_port = std::string(rest.substr(0, slash)), .targets = {}};
  const char* at = rest.data() + slash;
  const char* const last = rest.data() + rest.size();
  do {
    std::uint16_t target = 0;
    const auto [end, problem] = std::from_chars(at + 1, last, target);
    if (problem != std::errc{} || target == 0) return wrong();
    if (std::ranges::find(address.targets, target) != address.targets.end()) return wrong();
    address.targets.push_back(target);
    at = end;
  } while (at != last && *at == ',');
  if (at != last) return wrong();
  return address;
}

}  // namespace vpfs::client
