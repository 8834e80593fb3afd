#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "proxy/address_block.h"
#include "proxy/classifier.h"
#include "proxy/config.h"
#include "schedulers/cost_model.h"

namespace vpfs::proxy {

// A configuration, ready for use. Immutable: each thread keeps the one in force until it is given
// another by a reload.
struct Settings {
  explicit Settings(Config from)
      : config(std::move(from)),
        classifier(config.rules, default_class(config)),
        cost_model(config.cost) {
    for (const std::string& server : config.servers) {
      if (const auto block = AddressBlock::parse(server)) servers.push_back(*block);
    }
  }

  // Whether the address is one of the file system's other servers.
  [[nodiscard]] bool is_server(const asio::ip::address& address) const {
    return std::ranges::any_of(servers, [&](const auto& block) { return block.contains(address); });
  }

  const Config config;
  const Classifier classifier;
  const CostModel cost_model;
  std::vector<AddressBlock> servers;
};

using SettingsPtr = std::shared_ptr<const Settings>;  // shared by the threads

}  // namespace vpfs::proxy
