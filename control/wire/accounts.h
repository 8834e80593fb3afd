#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace vpfs::control {

// Names and numbers of this host's users and groups, as its name service has them. It may be on
// another machine, so each call may block.
[[nodiscard]] std::optional<std::uint32_t> user_id(const std::string& name);
[[nodiscard]] std::optional<std::uint32_t> group_id(const std::string& name);
[[nodiscard]] std::optional<std::string> user_name(std::uint32_t uid);
[[nodiscard]] std::optional<std::string> group_name(std::uint32_t gid);

}  // namespace vpfs::control
