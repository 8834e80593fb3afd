#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "schedulers/policy_kind.h"
#include "schedulers/scheduler.h"

namespace vpfs {

// A list of policies. Borrows them.
using PolicyKinds = std::span<const PolicyKind* const>;

// The policies of vpfs.
[[nodiscard]] PolicyKinds known_policies();
// nullptr: there is none of that name.
[[nodiscard]] const PolicyKind* find_policy(std::string_view name,
                                            PolicyKinds among = known_policies());
// The names that configurations use: "fifo", "sfq", ...
[[nodiscard]] std::vector<std::string_view> scheduler_names(PolicyKinds among = known_policies());

// `shared`, `totals`: see Scheduler. Policies without rates, and those that make their own rates or
// promises
// (`adaptbf`, `edf`), ignore the limits; those that do not count service elsewhere, the totals.
[[nodiscard]] std::unique_ptr<Scheduler> make_scheduler(const PolicyKind& policy,
                                                        const SchedulerSettings& settings,
                                                        RateLimits* shared = nullptr,
                                                        Scheduler::TotalServices* totals = nullptr);
// Looks the name up in known_policies(). An unknown name is an error that lists the known ones.
[[nodiscard]] Result<std::unique_ptr<Scheduler>> make_scheduler(std::string_view name,
                                                                const SchedulerSettings& settings,
                                                                RateLimits* shared = nullptr);

}  // namespace vpfs
