#include "schedulers/policies/registry.h"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "schedulers/policies/adaptbf.h"
#include "schedulers/policies/edf.h"
#include "schedulers/policies/fifo.h"
#include "schedulers/policies/sfq.h"
#include "schedulers/policies/tbf.h"

namespace vpfs {
namespace {

constexpr std::array kPolicies = {
    &AdapTbf::kKind, &Edf::kKind, &Fifo::kKind, &Sfq::kKind, &Tbf::kKind,
};

}  // namespace

PolicyKinds known_policies() {
  return kPolicies;
}

const PolicyKind* find_policy(std::string_view name, PolicyKinds among) {
  const auto found = std::ranges::find(among, name, &PolicyKind::name);
  return found == among.end() ? nullptr : *found;
}

std::vector<std::string_view> scheduler_names(PolicyKinds among) {
  std::vector<std::string_view> names;
  names.reserve(among.size());
  for (const PolicyKind* policy : among) names.push_back(policy->name);
  return names;
}

std::unique_ptr<Scheduler> make_scheduler(const PolicyKind& policy,
                                          const SchedulerSettings& settings, RateLimits* shared,
                                          Scheduler::TotalServices* totals) {
  const auto make = [&](RateLimits& limits, Scheduler::Part part) {
    return policy.make(settings, limits, part);
  };
  return std::make_unique<Scheduler>(make, settings.depth, settings.auto_depth, settings.classes,
                                     shared, totals);
}

Result<std::unique_ptr<Scheduler>> make_scheduler(std::string_view name,
                                                  const SchedulerSettings& settings,
                                                  RateLimits* shared) {
  if (const PolicyKind* const policy = find_policy(name)) {
    return make_scheduler(*policy, settings, shared);
  }
  return fail(fmt::format("unknown scheduling policy \"{}\" (known: {})", name,
                          fmt::join(scheduler_names(), ", ")));
}

}  // namespace vpfs
