#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/attributes.h"

// The names of virtual PFSes. One with fields in braces, "job-{jobid}", is a template: each request
// fills it in with what it shows.
namespace vpfs::stage {

// In bytes, of the names that templates make.
inline constexpr std::size_t kLongestName = 128;

// Whether a name that was filled in from what a request says may become a virtual PFS's, which is
// then kept, logged and written to the status: 1 to kLongestName bytes, all of them printable ASCII
// (space to ~). Anybody may say anything in a request.
[[nodiscard]] bool is_good_name(std::string_view name);

// The attribute of a request that a field of a template may name: {"uid"}, ...
[[nodiscard]] std::optional<Attribute> template_attribute(std::string_view field);

// What is wrong with the braces of a name that may be a template; nothing when nothing is.
[[nodiscard]] std::optional<std::string> template_problem(std::string_view name);

// The names in braces of a template: {"jobid"} for "job-{jobid}".
[[nodiscard]] std::vector<std::string> template_fields(std::string_view name);

}  // namespace vpfs::stage
