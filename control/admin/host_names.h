#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "stage/names.h"

namespace vpfs::control {

// The users, groups and hosts that this machine knows (nsswitch.conf says from where). Answers are
// kept until forget(): rules are read often, and a directory service may be slow. Belongs to one
// thread.
class HostNames final : public stage::Names {
 public:
  [[nodiscard]] std::optional<std::uint32_t> user(const std::string& name) const override;
  [[nodiscard]] std::optional<std::uint32_t> group(const std::string& name) const override;
  [[nodiscard]] std::vector<std::string> addresses(const std::string& host) const override;

  // Asks anew from now on; for a reload.
  void forget();

 private:
  mutable std::map<std::string, std::optional<std::uint32_t>> users_;
  mutable std::map<std::string, std::optional<std::uint32_t>> groups_;
  mutable std::map<std::string, std::vector<std::string>> hosts_;
};

}  // namespace vpfs::control
