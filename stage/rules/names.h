#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace vpfs::stage {

// Looks up names that rules may use. The stage's owner implements it with the host's databases, so
// a call may take long.
class Names {
 public:
  virtual ~Names() = default;
  [[nodiscard]] virtual std::optional<std::uint32_t> user(const std::string& name) const = 0;
  [[nodiscard]] virtual std::optional<std::uint32_t> group(const std::string& name) const = 0;
  // The IP addresses of a host; none: it is not known.
  [[nodiscard]] virtual std::vector<std::string> addresses(const std::string& host) const = 0;
};

}  // namespace vpfs::stage
