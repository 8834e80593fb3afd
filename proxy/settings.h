#pragma once

#include <algorithm>
#include <memory>
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
  // `before`: settings whose prepared rules and jobs are shared if they are the same.
  explicit Settings(Config from, const Settings* before = nullptr)
      : config(std::move(from)),
        jobs(registry_of(config, before)),
        classifier(
            rules_of(config, before), stage::default_class(config), jobs.get(),
            config.only_registered_jobs ? stage::JobIds::registered : stage::JobIds::trusted),
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
  const std::shared_ptr<const stage::JobRegistry> jobs;  // shared by settings with the same jobs
  const stage::Classifier classifier;
  const CostModel cost_model;
  std::vector<stage::AddressBlock> servers;

 private:
  static std::shared_ptr<const stage::JobRegistry> registry_of(const Config& config,
                                                               const Settings* before) {
    if (before != nullptr && before->config.jobs == config.jobs) return before->jobs;
    auto jobs = std::make_shared<stage::JobRegistry>();
    // REQUIRES: the configuration has no errors, so no job is refused.
    for (const stage::RegisteredJob& job : config.jobs) (void)jobs->add(job);
    return jobs;
  }
  static std::shared_ptr<const stage::RuleSet> rules_of(const Config& config,
                                                        const Settings* before) {
    if (before != nullptr && before->config.rules == config.rules) {
      return before->classifier.rules();
    }
    return std::make_shared<const stage::RuleSet>(config.rules);
  }
};

using SettingsPtr = std::shared_ptr<const Settings>;  // shared by the threads

}  // namespace vpfs::proxy
