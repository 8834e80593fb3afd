#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "control/wire/accounts.h"
#include "control/wire/control.pb.h"
#include "control/wire/port_config.h"

namespace vpfs::control {

// What a caller may do; each includes those before it.
enum class Rights : std::uint8_t {
  own,     // see own jobs
  read,    // see everything
  change,  // change rules and shares
};

// The user or program at the other end, as the kernel or a certificate says.
struct Identity {
  std::optional<std::uint32_t> uid;  // of a peer on the UNIX socket
  std::vector<std::uint32_t> gids;
  // In a certificate: the common name first, then the alternative ones.
  std::vector<std::string> certificate;
  std::string from;  // "unix", or an address
};

// "alice (uid 1001)", "uid 1001" without a name, "CN=ops".
[[nodiscard]] std::string name_of(const Identity& who, const std::optional<std::string>& user);

// A peer as an owner sees it.
struct Caller {
  std::string name;  // "alice (uid 1001)", "CN=ops"
  std::string from;  // "unix", or an address
  Rights rights = Rights::own;
  std::optional<std::uint32_t> uid;
};

// Principals, with names looked up.
struct Members {
  std::vector<std::uint32_t> uids;
  std::vector<std::uint32_t> gids;
  std::vector<std::string> certificates;
  [[nodiscard]] bool have(const Identity& who) const;
};
struct Access {
  Members readers;
  Members writers;  // always root and the user of this process
  std::uint32_t socket_gid = 0;
};

// Looks up the names of users and groups. The error's place is the key below `section`.
[[nodiscard]] std::expected<Access, Error> resolve_access(const PortConfig& config,
                                                          const Accounts& accounts = {},
                                                          const std::string& section = "control");

[[nodiscard]] Rights rights_of(const Identity& who, const Access& access);
// Whether `who` may do anything at all: a peer without a uid has no own jobs.
[[nodiscard]] bool may_connect(const Identity& who, const Access& access);
// Whether `who` is a user of this host who sees own jobs alone. Any user may be one.
[[nodiscard]] bool is_any_user(const Identity& who, const Access& access);

// NOT_PERMITTED, with the caller's rights here and the setting that would change them.
[[nodiscard]] Error refusal(const Caller& caller, Rights needed);

}  // namespace vpfs::control
