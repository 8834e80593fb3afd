#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "stage/config/config.h"
#include "stage/rules/condition.h"

namespace vpfs::stage {

// The most numbers that one list may stand for.
inline constexpr std::size_t kMostNumbers = 65'536;

// Takes a mistake of a term. `value` is the index of the wrong value; nothing: it is about the key.
using ReportCondition = std::function<void(const ConditionTerm& term,
                                           std::optional<std::size_t> value, std::string problem)>;

// What the terms mean for `context`, which has the protocol and looks up names. If no mistake is
// reported, the result may be used in a rule.
[[nodiscard]] Conditions read_conditions(const ConditionTerms& terms, const Config& context,
                                         const ReportCondition& report);

// Whether requests can show the attribute: by themselves, or through the registration of their job.
[[nodiscard]] bool may_be_known(const Config& context, Attribute attribute);

// Reads numbers, "1000-1999", and names of users or groups; `kind` is user, group or neither.
// Returns the problem, if there is one.
enum class NumberKind : std::uint8_t { plain, user, group };
[[nodiscard]] std::optional<std::string> add_numbers(const std::string& text, NumberKind kind,
                                                     std::uint64_t most, const Names* names,
                                                     std::vector<std::uint64_t>& numbers);

}  // namespace vpfs::stage
