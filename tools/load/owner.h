#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace vpfs::load {

// The process that a load runs in, on whatever host. Others see by it whose files these are.
struct LoadProcess {
  std::string host;  // letters, digits and dashes
  pid_t pid = 0;
  bool operator==(const LoadProcess&) const = default;
};

[[nodiscard]] LoadProcess this_owner();
// "HOST.PID", and back.
[[nodiscard]] std::string owner_text(const LoadProcess& owner);
[[nodiscard]] std::optional<LoadProcess> parse_owner(std::string_view text);

// Whether the process is known to have ended, or to run. One of another host is neither.
[[nodiscard]] bool has_ended(const LoadProcess& owner);
[[nodiscard]] bool is_running(const LoadProcess& owner);

}  // namespace vpfs::load
