#include "schedulers/registry.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "schedulers/adaptbf.h"
#include "schedulers/edf.h"
#include "schedulers/fifo.h"
#include "schedulers/sfq.h"
#include "schedulers/tbf.h"

namespace vpfs {
namespace {

__extension__ using Wide = unsigned __int128;

using Part = Scheduler::Part;
using Fields = std::uint32_t;

template <typename... Field>
constexpr Fields knows(Field... field) {
  return (Fields{0} | ... | (Fields{1} << std::to_underlying(field)));
}

struct Known {
  std::string_view name;
  Fields fields;
  std::unique_ptr<Policy> (*make)(const SchedulerSettings& settings, RateLimits& limits, Part part);
};

std::uint64_t part_of(std::uint64_t whole, Part part) {
  if (whole == 0) return 0;
  return std::max<std::uint64_t>(static_cast<std::uint64_t>(Wide{whole} * part.share / part.of), 1);
}

std::unique_ptr<Policy> make_fifo(const SchedulerSettings&, RateLimits&, Part) {
  return std::make_unique<Fifo>();
}

std::unique_ptr<Policy> make_sfq(const SchedulerSettings&, RateLimits& limits, Part part) {
  return std::make_unique<Sfq>(limits, part.user);
}

std::unique_ptr<Policy> make_tbf(const SchedulerSettings&, RateLimits& limits, Part part) {
  return std::make_unique<Tbf>(limits, Duration::zero(), part.user);
}

// At most D of the largest requests are at the server, and no more cost than the depth allows, or
// two of them.
std::unique_ptr<Policy> make_edf(const SchedulerSettings& settings, RateLimits&, Part part) {
  const std::uint32_t depth =
      settings.auto_depth ? settings.auto_depth->most : settings.depth.requests;
  const Cost largest = std::min(settings.largest_request, kMaxCost);
  const EdfSettings edf = {
      .capacity = part_of(settings.capacity, part),
      .ahead = std::min(depth * largest, std::max(settings.depth.cost, 2 * largest)),
      .default_latency = settings.default_latency};
  return std::make_unique<Edf>(edf);
}

std::unique_ptr<Policy> make_adaptbf(const SchedulerSettings& settings, RateLimits&, Part part) {
  AdapTbfSettings adaptbf = settings.adaptbf;
  adaptbf.capacity.configured = part_of(adaptbf.capacity.configured, part);
  return std::make_unique<AdapTbf>(adaptbf);
}

constexpr std::array kPolicies = {
    Known{.name = "adaptbf",
          .fields = knows(ShareField::nodes, ShareField::rank),
          .make = make_adaptbf},
    Known{.name = "edf",
          .fields = knows(ShareField::rate, ShareField::latency, ShareField::finish),
          .make = make_edf},
    Known{.name = "fifo", .fields = 0, .make = make_fifo},
    Known{.name = "sfq",
          .fields = knows(ShareField::rate, ShareField::operations, ShareField::min,
                          ShareField::realtime),
          .make = make_sfq},
    Known{.name = "tbf",
          .fields = knows(ShareField::rate, ShareField::operations, ShareField::realtime,
                          ShareField::rank),
          .make = make_tbf},
};

}  // namespace

std::vector<std::string_view> scheduler_names() {
  std::vector<std::string_view> names;
  names.reserve(kPolicies.size());
  for (const Known& policy : kPolicies) names.push_back(policy.name);
  return names;
}

bool policy_knows(std::string_view name, ShareField field) {
  return std::ranges::any_of(kPolicies, [&](const Known& policy) {
    return policy.name == name && (policy.fields & knows(field)) != 0;
  });
}

Result<std::unique_ptr<Scheduler>> make_scheduler(std::string_view name,
                                                  const SchedulerSettings& settings,
                                                  RateLimits* shared) {
  std::string known;
  for (const Known& policy : kPolicies) {
    if (policy.name == name) {
      const auto make = [&](RateLimits& limits, Part part) {
        return policy.make(settings, limits, part);
      };
      return std::make_unique<Scheduler>(make, settings.depth, settings.auto_depth,
                                         settings.classes, shared);
    }
    known += (known.empty() ? "" : ", ") + std::string(policy.name);
  }
  return fail("unknown scheduling policy \"" + std::string(name) + "\" (known: " + known + ")");
}

}  // namespace vpfs
