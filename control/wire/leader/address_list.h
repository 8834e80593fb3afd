#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_reader.h"
#include "control/wire/port_address.h"

namespace vpfs::control {

// A coordinator has at most so many processes, one of which leads.
inline constexpr std::size_t kMostAddresses = 16;

// Reads an address, or a list of them, that stages connect to. Each one that is wrong is an
// error, in a list with the place `key[1]`, and not in the result.
[[nodiscard]] std::vector<PortAddress> read_addresses(ConfigReader& reader, std::string_view key);

// The error names the text.
[[nodiscard]] Result<std::vector<PortAddress>> parse_addresses(
    const std::vector<std::string>& texts);

// Whether TLS is needed for one of them.
[[nodiscard]] bool any_is_tcp(const std::vector<PortAddress>& addresses);

}  // namespace vpfs::control
