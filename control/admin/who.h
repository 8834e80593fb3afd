#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/wire/control.pb.h"
#include "stage/rules/address.h"
#include "stage/rules/names.h"

namespace vpfs::control {

// The user, client or job that an administrator asks about. A text may mean several things: "4711"
// is a job and a uid.
struct Asked {
  std::string text;  // "": clients that have requests in default
  std::vector<stage::AddressBlock> addresses;
  std::optional<std::uint32_t> uid;
};
[[nodiscard]] Asked read_asked(const std::string& text, const stage::Names* names);

[[nodiscard]] bool has_address(const Asked& asked, std::string_view client);
// Whether it is the user of requests, or the owner of their files.
[[nodiscard]] bool is_user(const Asked& asked, std::optional<std::uint32_t> uid,
                           std::optional<std::uint32_t> owner);

// Adds the clients that are asked about, with what they have shown. A client that is asked for by
// its address is shown with everything.
void add_clients(WhyReply& reply, std::vector<Client> clients, const Asked& asked);
// Adds the virtual PFSes and rules that these clients are in, and the registered jobs that fit.
void add_context(WhyReply& reply, StatsReply& stats, const JobReply& jobs, const Asked& asked);

}  // namespace vpfs::control
