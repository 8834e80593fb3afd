#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vpfs::fuse {

// The host names in a list as Slurm writes it: "login1,node[001-003,7]-ib". At most 65,536 of them;
// a list that is longer, or is no list, gives none.
[[nodiscard]] std::vector<std::string> hosts_in(std::string_view list);

// Whether two names are those of one host: equal but for case, or one is the other's first label
// ("n1" and "n1.site.org").
[[nodiscard]] bool is_same_host(std::string_view one, std::string_view other);

}  // namespace vpfs::fuse
