#include "control/wire/leader/address_list.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace vpfs::control {

std::vector<PortAddress> read_addresses(ConfigReader& reader, std::string_view key) {
  std::vector<PortAddress> addresses;
  std::vector<std::string> texts;
  const bool is_list = !reader.is_scalar(key);
  if (!reader.get(key, &texts)) return addresses;
  if (texts.size() > kMostAddresses) {
    reader.report(key,
                  fmt::format("has {} addresses; there may be {}", texts.size(), kMostAddresses));
    return addresses;
  }
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string place = is_list ? fmt::format("{}[{}]", key, i) : std::string(key);
    auto address = parse_port_address(texts[i]);
    if (!address) {
      reader.report(place, fmt::format("\"{}\" is not an address: expected the path of a socket "
                                       "(/run/vpfs/stages.sock) or HOST:PORT",
                                       texts[i]));
    } else if (std::ranges::find(addresses, *address) != addresses.end()) {
      reader.report(place, fmt::format("{} is given twice", to_string(*address)));
    } else {
      addresses.push_back(std::move(*address));
    }
  }
  return addresses;
}

Result<std::vector<PortAddress>> parse_addresses(const std::vector<std::string>& texts) {
  std::vector<PortAddress> addresses;
  for (const std::string& text : texts) {
    auto address = parse_port_address(text);
    VPFS_TRY(address);
    addresses.push_back(std::move(*address));
  }
  return addresses;
}

bool any_is_tcp(const std::vector<PortAddress>& addresses) {
  return std::ranges::any_of(addresses,
                             [](const PortAddress& address) { return !address.is_unix(); });
}

}  // namespace vpfs::control
