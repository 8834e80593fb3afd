#pragma once

#include <optional>
#include <string>
#include <system_error>

namespace vpfs::net {

// Chooses the congestion control of one socket ("cubic", "reno"). The system's default may pace
// (bbr), which costs half the throughput on a local connection.
[[nodiscard]] std::error_code set_congestion_control(int socket, const std::string& name);

// Why this program may not use that congestion control; empty when it may. The message lists the
// names that the kernel offers.
[[nodiscard]] std::optional<std::string> congestion_control_problem(const std::string& name);

// The congestion control of connections within a host unless a configuration says otherwise.
inline constexpr const char* kLocalCongestion = "cubic";

// Chooses it for a connection whose ends are both on this host. Leaves others alone, and all if the
// kernel refuses it.
void choose_local_congestion(int socket, const std::string& name = kLocalCongestion);

}  // namespace vpfs::net
