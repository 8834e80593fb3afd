#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace vpfs::load {

// The process that a load runs in, on whatever host. Others see by it whose files these are.
struct Owner {
  std::string host;  // letters, digits and dashes
  pid_t pid = 0;
  bool operator==(const Owner&) const = default;
};

[[nodiscard]] Owner this_owner();
// "HOST.PID", and back.
[[nodiscard]] std::string owner_text(const Owner& owner);
[[nodiscard]] std::optional<Owner> parse_owner(std::string_view text);

// Whether the process is known to have ended. One of another host is not.
[[nodiscard]] bool has_ended(const Owner& owner);

}  // namespace vpfs::load
