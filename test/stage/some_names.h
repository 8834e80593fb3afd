#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stage/rules/names.h"

namespace vpfs::stage {

// The names of a small site: user alice (1001), group physics (500), hosts login1 (two addresses)
// and n1 ... n128 and n001 ... n128 (10.0.1.1 ... 10.0.1.128).
class SomeNames final : public Names {
 public:
  [[nodiscard]] std::optional<std::uint32_t> user(const std::string& name) const override {
    return name == "alice" ? std::optional(1001U) : std::nullopt;
  }
  [[nodiscard]] std::optional<std::uint32_t> group(const std::string& name) const override {
    return name == "physics" ? std::optional(500U) : std::nullopt;
  }
  [[nodiscard]] std::vector<std::string> addresses(const std::string& host) const override {
    ++lookups_;
    if (host == "login1") return {"10.0.0.1", "fd00::1"};
    if (!host.starts_with('n')) return {};
    const std::string digits = host.substr(1);
    if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos) return {};
    const int number = std::stoi(digits);
    if (number < 1 || number > 128) return {};
    return {"10.0.1." + std::to_string(number)};
  }

  [[nodiscard]] int lookups() const { return lookups_; }

 private:
  mutable int lookups_ = 0;
};

}  // namespace vpfs::stage
