#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/config_reader.h"
#include "net/tls.h"

namespace vpfs::coordinator {

// Nodes of one etcd.
struct EtcdConfig {
  std::vector<std::string> endpoints;  // "https://HOST:PORT"
  std::string prefix;                  // of the keys
  net::TlsFiles tls;                   // for https
  std::string user;                    // "": without authentication
  std::string password_file;

  [[nodiscard]] bool uses_tls() const;
  bool operator==(const EtcdConfig&) const = default;
};

// The mapping `store` of a coordinator: what several coordinators of a site share. One of `etcd`
// and `directory` is there.
struct StoreConfig {
  std::optional<EtcdConfig> etcd;
  std::string directory;
  Duration lease = std::chrono::seconds(5);  // of the office
  // Where other coordinators and vpfsctl find the administrators' port of this one.
  std::vector<std::string> addresses;
  bool operator==(const StoreConfig&) const = default;
};

// Reads the mapping `store` of `parent`, if it has one. `site`: the name of the site.
[[nodiscard]] std::optional<StoreConfig> read_store(ConfigReader& parent, const std::string& site);

}  // namespace vpfs::coordinator
