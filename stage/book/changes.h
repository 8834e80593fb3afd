#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "stage/book/live_rules.h"
#include "stage/book/operation.h"

// What operations do to the state of a rule book.
namespace vpfs::stage {

inline constexpr std::size_t kMostHistory = 100;  // versions that are listed

// The set of the administrators.
[[nodiscard]] const LiveSet& administrators_of(const BookState& state);
// The set of a version; null: it is not known any more.
[[nodiscard]] const LiveSet* set_of(const BookState& state, std::uint64_t version);

// Null: there is none.
[[nodiscard]] std::shared_ptr<const LiveRule> find_rule(const BookState& state,
                                                        std::string_view name);
[[nodiscard]] std::shared_ptr<const LiveShare> find_share(const LiveSet& set,
                                                          std::string_view virtual_pfs);

// Looks only at rules of coordinators. An administrator may have a rule of the same name.
[[nodiscard]] std::shared_ptr<const LiveRule> find_site_rule(const BookState& state,
                                                             std::string_view name);
// Whether the state has all of this site, and nothing else of a coordinator.
[[nodiscard]] bool has_site(const BookState& state, const ReplaceSite& site);

// The set without what has ended by then.
[[nodiscard]] LiveSet running_at(const LiveSet& set, WallTime at);
// The set that `apply` puts in the place of `before`. Unchanged rules keep their age.
[[nodiscard]] LiveSet applied(const LiveSet& before, const ApplySet& apply, WallTime at,
                              const std::string& who);

// The rule of a job with words.
[[nodiscard]] LiveRule rule_of_job(const std::string& jobid, const std::vector<std::string>& words,
                                   WallTime at, const std::string& who);

// Carries the operation out, and counts it. Returns why it cannot be; then the state is as before.
[[nodiscard]] std::optional<std::string> change(BookState& state, const BookOperation& operation);

}  // namespace vpfs::stage
