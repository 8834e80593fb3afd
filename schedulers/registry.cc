#include "schedulers/registry.h"

#include <array>
#include <string>

#include "schedulers/fifo.h"
#include "schedulers/sfq.h"

namespace vpfs {
namespace {

struct Policy {
  std::string_view name;
  std::unique_ptr<Scheduler> (*make)(const SchedulerSettings& settings);
};

template <typename Kind>
std::unique_ptr<Scheduler> make(const SchedulerSettings& settings) {
  return std::make_unique<Kind>(settings.depth);
}

constexpr std::array kPolicies = {
    Policy{.name = "fifo", .make = make<Fifo>},
    Policy{.name = "sfq", .make = make<Sfq>},
};

}  // namespace

std::vector<std::string_view> scheduler_names() {
  std::vector<std::string_view> names;
  names.reserve(kPolicies.size());
  for (const Policy& policy : kPolicies) names.push_back(policy.name);
  return names;
}

Result<std::unique_ptr<Scheduler>> make_scheduler(std::string_view name,
                                                  const SchedulerSettings& settings) {
  std::string known;
  for (const Policy& policy : kPolicies) {
    if (policy.name == name) return policy.make(settings);
    known += (known.empty() ? "" : ", ") + std::string(policy.name);
  }
  return fail("unknown scheduling policy \"" + std::string(name) + "\" (known: " + known + ")");
}

}  // namespace vpfs
