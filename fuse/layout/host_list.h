#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace vpfs::fuse {

// Bounds of a host list. Users write it, so they hold before names are made of it.
inline constexpr std::size_t kMostBrackets = 3;  // of one word
inline constexpr std::size_t kMostHosts = 4096;
inline constexpr std::size_t kLongestHost = 255;          // bytes of one name, as DNS has it
inline constexpr std::size_t kMostHostBytes = 64 * 1024;  // of all names

// Calls each(name) for the hosts in a list as Slurm writes it: "login1,node[001-003,7]-ib". The
// name is valid during the call. An error says at which byte of the list what is wrong and what is
// expected, without quoting the list; some hosts may have been named before. It allocates nothing
// but the error, and takes at most kMostHosts calls.
[[nodiscard]] Result<void> for_each_host(std::string_view list,
                                         const std::function<void(std::string_view)>& each);

// These hosts. An empty list has none.
[[nodiscard]] Result<std::vector<std::string>> hosts_in(std::string_view list);

// Whether two names are those of one host: equal except for case, or one is the other's first
// label ("n1" and "n1.site.org").
[[nodiscard]] bool is_same_host(std::string_view one, std::string_view other);

// Whether a name is an address or a number, whose labels are not names.
[[nodiscard]] bool is_numeric_host(std::string_view name);

}  // namespace vpfs::fuse
