#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "control/wire/control.pb.h"

namespace vpfs::words {

// Where the time went in which a virtual PFS was active, in parts of 1. They add up to 1.
struct TimeParts {
  double limit = 0;
  double share = 0;
  double kept_slot = 0;
  double depth = 0;
  double traffic_class = 0;
  double slow_client = 0;
  double server = 0;  // at the data server, or on the way from it
  double rest = 0;    // it had no request at the proxy
};

// What proxies have answered of a time of the past, together.
struct SitePast {
  struct Server {
    std::string name;
    control::PastReply reply;
  };
  std::vector<Server> servers;  // those that know something of the time
  // Sums over servers, by name. Weight, limit and minimum are those of one server, and the lag is
  // that which comes nearest to its bound.
  std::map<std::string, control::PastOf> virtual_pfs;
  // Where the time of each of these went, over all servers.
  std::map<std::string, TimeParts> time_parts;
  control::PastOf others;
  std::uint64_t cost = 0;
  std::int64_t from_at = 0;
  std::int64_t to_at = 0;
  bool is_partial = false;         // some show only what the caller may see
  std::int64_t known_from_at = 0;  // the earliest of any; 0: none knows anything
};
[[nodiscard]] SitePast add_up(std::vector<SitePast::Server> servers);

// Adds what one did at another server, or another one at the same.
void add_use(control::PastOf& to, const control::PastOf& more);

// The names of those that are asked about, the busiest first.
[[nodiscard]] std::vector<std::string> asked_names(const SitePast& past);

[[nodiscard]] std::uint64_t bytes_of(const control::PastOf& who);

// Held, but not by a limit of its own.
[[nodiscard]] double held_for_others(const TimeParts& parts);
[[nodiscard]] TimeParts time_parts(const control::PastOf& at_one_server);
// That of SitePast::time_parts; all 0 for a name that is not there.
[[nodiscard]] TimeParts time_parts(const SitePast& past, const std::string& name);

}  // namespace vpfs::words
