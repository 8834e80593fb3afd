#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "stage/rules/names.h"

namespace vpfs::stage {

// The most addresses and blocks that a list of clients may stand for. A short text cannot ask for
// more memory than this.
inline constexpr std::size_t kMostClients = 65'536;

// Appends the addresses and CIDR blocks that a client's text stands for:
//
//   10.0.0.1   fd00::/8   10.0.[0-3].[1-128]   10.0.*.7   login1   n[1-128]   n[001-128,200]
//
// Names of hosts are looked up in `names`; null: they are refused. An error names the text and
// leaves `clients` as it was. It is an error too if `clients` would have more than kMostClients.
[[nodiscard]] Result<void> add_clients(std::string_view text, const Names* names,
                                       std::vector<std::string>& clients);

}  // namespace vpfs::stage
