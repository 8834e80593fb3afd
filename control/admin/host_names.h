#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "stage/rules/names.h"

namespace vpfs::control {

// Names that have to be looked up.
struct WantedNames {
  std::set<std::string> users;
  std::set<std::string> groups;
  std::set<std::string> hosts;

  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] std::size_t size() const { return users.size() + groups.size() + hosts.size(); }
};

// Writes down which names a text has, and lets its reader go on: every name is known to it.
class NotedNames final : public stage::Names {
 public:
  [[nodiscard]] std::optional<std::uint32_t> user(const std::string& name) const override;
  [[nodiscard]] std::optional<std::uint32_t> group(const std::string& name) const override;
  [[nodiscard]] std::vector<std::string> addresses(const std::string& host) const override;

  [[nodiscard]] const WantedNames& wanted() const { return wanted_; }

 private:
  mutable WantedNames wanted_;
};

// The users, groups and hosts that this machine knows (nsswitch.conf says from where). A name that
// is not kept is looked up, which may take long: NameLookups does it beforehand. Any thread may
// call; the copies share what they keep.
class HostNames final : public stage::Names {
 public:
  HostNames();

  // The names of this host, and its addresses, the best one first. A name that the databases do not
  // know, or only by addresses of other hosts, has the first address as well.
  void set_own(std::set<std::string> names, std::vector<std::string> addresses);

  [[nodiscard]] std::optional<std::uint32_t> user(const std::string& name) const override;
  [[nodiscard]] std::optional<std::uint32_t> group(const std::string& name) const override;
  [[nodiscard]] std::vector<std::string> addresses(const std::string& host) const override;

  // Those that are not kept, or kept as unknown.
  [[nodiscard]] WantedNames missing(const WantedNames& names) const;
  // Look a name up anew.
  void find_user(const std::string& name) const;
  void find_group(const std::string& name) const;
  void find_host(const std::string& name) const;
  // Forgets all if there are more than so many.
  void bound(std::size_t most);

 private:
  struct Kept;
  std::shared_ptr<Kept> kept_;  // shared with look-ups whose callers have gone
};

}  // namespace vpfs::control
