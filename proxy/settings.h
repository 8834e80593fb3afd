#pragma once

#include <memory>

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
        cost_model(config.cost) {}

  const Config config;
  const Classifier classifier;
  const CostModel cost_model;
};

using SettingsPtr = std::shared_ptr<const Settings>;  // shared by the threads

}  // namespace vpfs::proxy
