#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "control/coordinator/config/config.h"
#include "control/coordinator/links/port_reservation.h"

namespace vpfs::coordinator {

// Where members reach this process while it leads: on the host of its administrators' port, with
// the certificate and the writers of that. The port is the same for as long as this object lives.
class MembersPort {
 public:
  // The error names the key. REQUIRES: config.members.
  [[nodiscard]] static Result<MembersPort> reserve(const Config& config);

  // As others dial it.
  [[nodiscard]] const std::string& address() const { return address_; }
  // What the process has as a leader: its stages are the members.
  [[nodiscard]] Config leader_config(const Config& config) const;

 private:
  MembersPort() = default;

  std::optional<PortReservation> reserved_;  // nothing: a UNIX socket
  std::string address_;
};

// What the process has as a member: an aggregator of the leader, without ports for people.
[[nodiscard]] Config member_config(const Config& config);
// Where stages dial this member, as their configuration may have it; empty: they are dialled.
[[nodiscard]] std::vector<std::string> stage_addresses_of(const Config& config);

}  // namespace vpfs::coordinator
