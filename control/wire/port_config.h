#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_reader.h"
#include "base/result.h"
#include "control/wire/accounts.h"

namespace vpfs::control {

// A user, group or certificate that `readers` and `writers` name.
struct Principal {
  enum class Kind : std::uint8_t { user, group, uid, gid, certificate };
  Kind kind = Kind::user;
  std::string name;      // of a user, a group or in a certificate
  std::uint32_t id = 0;  // a uid or gid
  bool operator==(const Principal&) const = default;
};
// "alice", "user:alice", "@storage", "group:storage", "uid:1001", "gid:100", "cert:ops.example".
// The error names the text.
[[nodiscard]] Result<Principal> parse_principal(std::string_view text);

// The mapping `control` of a configuration. Without a socket, a TCP address and a coordinator there
// is no port.
struct PortConfig {
  std::string socket;  // path of a UNIX socket
  std::uint32_t mode = 0660;
  std::string group;  // name or number; "": that of the process
  std::string tcp;    // HOST:PORT, with TLS only
  std::string certificate;
  std::string key;
  std::string ca;
  // Empty readers: the members of the socket's group.
  std::vector<Principal> readers;
  std::vector<Principal> writers;
  std::string audit;  // a file; "": none
  // Where the coordinator may be that this port connects to, as parse_port_address() reads it; over
  // TCP with the certificate, key and CA of the port.
  std::vector<std::string> coordinators;
  bool operator==(const PortConfig&) const = default;

  [[nodiscard]] bool enabled() const { return !socket.empty() || !tcp.empty() || dials(); }
  [[nodiscard]] bool dials() const { return !coordinators.empty(); }
};

// Whether a port may connect to a coordinator: that of a stage.
enum class MayDial : std::uint8_t { no, yes };

// Reads the mapping `control` of `parent`, if it has one. Looks at the text only. `others` reads
// keys of the same mapping that belong to other ports; with it the mapping may be about them alone.
[[nodiscard]] PortConfig read_port_config(
    ConfigReader& parent, const std::function<void(ConfigReader& control)>& others = {},
    MayDial may_dial = MayDial::no);

// Reads the keys of one port from its own mapping.
void read_port_keys(ConfigReader& port, PortConfig& config, MayDial may_dial = MayDial::no);

// What only this host can say: whether the users, groups and certificates exist. The problems have
// the places "control.writers", ...
void check_port_config(const PortConfig& config, ConfigErrors& errors,
                       const Accounts& accounts = {});

// The folders of the socket and the audit log. A start needs them; a port that is open does not.
// `key`: of the mapping, such as "control".
void check_port_folders(const PortConfig& config, std::string_view key, ConfigErrors& errors);

// Why a running port cannot become `wanted`, as "control.socket: ..."; nothing if it can.
[[nodiscard]] Result<void> may_become(const PortConfig& running, const PortConfig& wanted);

}  // namespace vpfs::control
