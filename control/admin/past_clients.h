#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/clock.h"
#include "control/admin/who.h"
#include "control/wire/control.pb.h"

namespace vpfs::control {

// Which clients and users were in which virtual PFSes in the last 24 hours, so that one whose
// connections have ended can be asked about.
class PastClients {
 public:
  static constexpr std::chrono::hours kKept{24};
  static constexpr std::size_t kMost = 16384;  // the one seen the longest time ago is forgotten

  // They are here now.
  void note(const std::vector<Client>& clients, WallTime now);

  // The virtual PFSes in which the one that is asked about was seen in a time that has a part
  // between `from` and `to`.
  [[nodiscard]] std::set<std::string, std::less<>> virtual_pfs_of(const Asked& asked, WallTime from,
                                                                  WallTime to) const;
  [[nodiscard]] std::size_t size() const { return rows_.size(); }

 private:
  // Address, uid, owner, virtual PFS.
  using Key = std::tuple<std::string, std::optional<std::uint32_t>, std::optional<std::uint32_t>,
                         std::string>;
  struct Row {
    WallTime first = {};
    WallTime last = {};
  };

  void forget(WallTime now);

  std::map<Key, Row> rows_;
};

}  // namespace vpfs::control
