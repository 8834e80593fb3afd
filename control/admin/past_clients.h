#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
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
  static constexpr std::chrono::minutes kGap{10};  // without requests: it was not there
  // So many that are there are known, and so many stays that have ended, the latest.
  static constexpr std::size_t kMost = 16384;

  // They are here now, with the requests of their connections up to now.
  void note(const std::vector<Client>& clients, WallTime now);

  // The virtual PFSes in which the one that is asked about was seen in a time that has a part
  // between `from` and `to`.
  [[nodiscard]] std::set<std::string, std::less<>> virtual_pfs_of(const Asked& asked, WallTime from,
                                                                  WallTime to) const;
  [[nodiscard]] std::size_t ended() const { return ended_.size(); }

 private:
  struct Who {
    std::string address;
    std::optional<std::uint32_t> uid;
    std::optional<std::uint32_t> owner;
    std::string virtual_pfs;
    auto operator<=>(const Who&) const = default;
  };
  struct Stay {
    WallTime first = {};
    WallTime last = {};  // with a new request
  };
  // One that is connected, or was a moment ago.
  struct Present {
    Stay stay;
    std::uint64_t requests = 0;  // at the last note
    WallTime listed = {};        // the last note with it
    bool has_stay = true;        // else it is in ended_, and the connection is idle
  };

  void note(const Who& who, std::uint64_t requests, WallTime now);
  void end_stays(WallTime now);
  static void add(const Asked& asked, WallTime from, WallTime to, const Who& who, const Stay& stay,
                  std::set<std::string, std::less<>>& names);

  std::map<Who, Present> present_;
  std::multimap<WallTime, std::pair<Who, Stay>> ended_;  // by their ends
};

}  // namespace vpfs::control
