#pragma once

#include <memory>
#include <utility>

#include "schedulers/cost_model.h"
#include "stage/config/config.h"
#include "stage/rules/classifier.h"
#include "stage/rules/job_registry.h"

namespace vpfs::control {

// The program's own configuration with the stage's part of another one: that of the file with live
// rules, for example.
template <typename Config>
[[nodiscard]] Config with_stage(const Config& own, const stage::Config& stage) {
  Config config = own;
  static_cast<stage::Config&>(config) = stage;
  return config;
}

// A configuration that is ready for requests. Immutable, so that threads share it until a reload
// gives them another. `Config` is a program's, which has a stage::Config as a base.
template <typename Config>
struct PreparedConfig {
  // `before`: settings whose prepared rules and jobs are shared if they are the same.
  explicit PreparedConfig(Config from, const PreparedConfig* before = nullptr)
      : config(std::move(from)),
        jobs(registry_of(config, before)),
        classifier(rules_of(config, before), stage::default_class(config), jobs.get(),
                   config.only_registered_jobs ? stage::JobIds::registered : stage::JobIds::trusted,
                   config.node_addresses),
        cost_model(config.cost) {}
  PreparedConfig(const PreparedConfig&) = delete;
  PreparedConfig& operator=(const PreparedConfig&) = delete;

  const Config config;
  const std::shared_ptr<const stage::JobRegistry> jobs;  // shared by settings with the same jobs
  const stage::Classifier classifier;
  const CostModel cost_model;

 private:
  static std::shared_ptr<const stage::JobRegistry> registry_of(const Config& config,
                                                               const PreparedConfig* before) {
    if (before != nullptr && before->config.jobs == config.jobs) return before->jobs;
    auto jobs = std::make_shared<stage::JobRegistry>();
    // REQUIRES: the configuration has no errors, so no job is refused.
    for (const stage::RegisteredJob& job : config.jobs) (void)jobs->add(job);
    return jobs;
  }
  static std::shared_ptr<const stage::RuleSet> rules_of(const Config& config,
                                                        const PreparedConfig* before) {
    if (before != nullptr && before->config.rules == config.rules) {
      return before->classifier.rules();
    }
    return std::make_shared<const stage::RuleSet>(config.rules);
  }
};

}  // namespace vpfs::control
