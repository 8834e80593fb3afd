#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proxy/config.h"
#include "schedulers/cost_model.h"
#include "stage/address.h"
#include "stage/classifier.h"
#include "stage/job_registry.h"

namespace vpfs::proxy {

// A configuration that is ready for use. Immutable: each thread keeps its copy until a reload gives
// it another.
struct Settings {
  explicit Settings(Config from)
      : config(std::move(from)),
        jobs(registry_of(config)),
        classifier(config.rules, stage::default_class(config), jobs ? &*jobs : nullptr),
        cost_model(config.cost) {
    for (const std::string& server : config.servers) {
      if (const auto block = stage::AddressBlock::parse(server)) servers.push_back(*block);
    }
  }

  // Whether the address is one of the file system's other servers.
  [[nodiscard]] bool is_server(const stage::Address& address) const {
    return std::ranges::any_of(servers, [&](const auto& block) { return block.contains(address); });
  }

  Settings(const Settings&) = delete;
  Settings& operator=(const Settings&) = delete;

  const Config config;
  const std::optional<stage::JobRegistry> jobs;  // none: every job id counts
  const stage::Classifier classifier;
  const CostModel cost_model;
  std::vector<stage::AddressBlock> servers;

 private:
  static std::optional<stage::JobRegistry> registry_of(const Config& config) {
    if (!config.registered_jobs) return std::nullopt;
    stage::JobRegistry jobs;
    // REQUIRES: the configuration has no errors, so no job is refused.
    for (const stage::RegisteredJob& job : *config.registered_jobs) (void)jobs.add(job);
    return jobs;
  }
};

using SettingsPtr = std::shared_ptr<const Settings>;  // shared by the threads

}  // namespace vpfs::proxy
