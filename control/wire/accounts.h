#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace vpfs::control {

// Names and numbers of this host's users and groups, as its name service has them. It may be on
// another machine, so each call may block.
[[nodiscard]] std::optional<std::uint32_t> user_id(const std::string& name);
[[nodiscard]] std::optional<std::uint32_t> group_id(const std::string& name);
[[nodiscard]] std::optional<std::string> user_name(std::uint32_t uid);
[[nodiscard]] std::optional<std::string> group_name(std::uint32_t gid);

// user_id() and group_id(), or the same with names that were looked up before: they do not block.
struct Accounts {
  using LookUp = std::function<std::optional<std::uint32_t>(const std::string& name)>;
  LookUp user = user_id;
  LookUp group = group_id;
};

}  // namespace vpfs::control
