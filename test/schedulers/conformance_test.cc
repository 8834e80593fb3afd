// The rules for every policy of the registry, whatever it decides (schedulers/conformance/).
#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "schedulers/conformance/rules.h"
#include "schedulers/policies/adaptbf.h"
#include "schedulers/policies/edf.h"
#include "schedulers/policies/registry.h"
#include "schedulers/policies/sfq.h"
#include "test/support/allocation_count.h"
#include "test/support/round_robin.h"

namespace vpfs {
namespace {

using conformance::Rule;
using conformance::Subject;

constexpr std::string_view kAnticipating = "sfq_anticipating";

// RoundRobin stands for policies that vpfs does not know.
PolicyKind anticipating_kind() {
  PolicyKind kind = Sfq::kKind;
  kind.name = kAnticipating;
  kind.make = [](const SchedulerSettings& settings, RateLimits& limits,
                 Scheduler::Part part) -> std::unique_ptr<Policy> {
    const bool keeps = settings.classes.mode == TrafficClasses::Mode::none;
    return std::make_unique<Sfq>(limits, part.user,
                                 AnticipationSettings{.on = true, .max_loss = keeps ? 100U : 0U});
  };
  return kind;
}

std::vector<const PolicyKind*> policies_under_test() {
  static const PolicyKind kAnticipatingSfq = anticipating_kind();
  std::vector<const PolicyKind*> policies = policies_with_round_robin();
  policies.push_back(&kAnticipatingSfq);
  return policies;
}

// Only a strict `adaptbf` and kept slots may hold requests that no limit holds.
bool vary(std::string_view name, SchedulerSettings& settings, std::uint64_t seed) {
  settings.own.of<AdapTbfSettings>().work_conserving = seed % 2 == 0;
  const bool keeps_slots =
      name == kAnticipating && settings.classes.mode == TrafficClasses::Mode::none;
  return keeps_slots || (name == "adaptbf" && seed % 2 != 0);
}

Subject subject_of(const PolicyKind& kind) {
  return {.kind = &kind,
          .settings = {.own = {EdfSettings{.capacity = 1000 * kMiB},
                               AdapTbfSettings{.capacity = {.configured = Share::kMaxRate}}}},
          .vary = [&kind](SchedulerSettings& settings,
                          std::uint64_t seed) { return vary(kind.name, settings, seed); },
          .allocations = allocation_count};
}

using PolicyAndRule = std::tuple<const PolicyKind*, Rule>;
class Conformance : public ::testing::TestWithParam<PolicyAndRule> {};

INSTANTIATE_TEST_SUITE_P(EveryPolicy, Conformance,
                         ::testing::Combine(::testing::ValuesIn(policies_under_test()),
                                            ::testing::ValuesIn(conformance::rules().begin(),
                                                                conformance::rules().end())),
                         [](const auto& both) {
                           return fmt::format("{}_{}", std::get<0>(both.param)->name,
                                              std::get<1>(both.param).name);
                         });

TEST_P(Conformance, KeepsTheRule) {
  const auto& [kind, rule] = GetParam();
  EXPECT_EQ(rule.check(subject_of(*kind)), "") << rule.about;
}

TEST(Registry, AnUnknownPolicyNamesTheKnownOnes) {
  const auto scheduler = make_scheduler("fair", {});
  ASSERT_FALSE(scheduler.has_value());
  std::vector<std::string_view> names = scheduler_names();
  EXPECT_TRUE(std::ranges::is_sorted(names)) << "people read them";
  EXPECT_NE(std::ranges::find(names, "sfq"), names.end());
  EXPECT_EQ(scheduler.error().message,
            fmt::format("unknown scheduling policy \"fair\" (known: {})", fmt::join(names, ", ")));
}

}  // namespace
}  // namespace vpfs
