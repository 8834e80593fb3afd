#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "control/host/prepared_config.h"
#include "protocols/protocol.h"
#include "proxy/config/config.h"
#include "stage/rules/address.h"

namespace vpfs::proxy {

// A configuration that is ready for use. Each thread keeps its copy until a reload gives it
// another.
struct WorkerSettings : control::PreparedConfig<Config> {
  // `before`: as that of control::PreparedConfig.
  explicit WorkerSettings(Config from, const WorkerSettings* before = nullptr)
      : control::PreparedConfig<Config>(std::move(from), before) {
    for (const std::string& server : config.servers) {
      if (const auto block = stage::AddressBlock::parse(server)) servers.push_back(*block);
    }
  }

  [[nodiscard]] PeerAddress peer_at(const stage::Address& address) const {
    if (servers.empty()) return PeerAddress::unknown;
    const bool is_server =
        std::ranges::any_of(servers, [&](const auto& block) { return block.contains(address); });
    return is_server ? PeerAddress::server : PeerAddress::not_servers;
  }

  std::vector<stage::AddressBlock> servers;
};

using WorkerSettingsPtr = std::shared_ptr<const WorkerSettings>;  // shared by the threads

}  // namespace vpfs::proxy
