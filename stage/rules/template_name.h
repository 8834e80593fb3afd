#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/attributes.h"

// The names of virtual PFSes. A name with fields in braces, "job-{jobid}", is a template: each
// request fills in its own values.
namespace vpfs::stage {

// The length limit in bytes of names that templates make.
inline constexpr std::size_t kLongestName = 128;

// Whether a name with values of a request may become a virtual PFS's name, which is then stored,
// logged and written to the status: 1 to kLongestName bytes of printable ASCII (space to ~). A
// request may contain anything.
[[nodiscard]] bool is_good_name(std::string_view name);

// The attribute of a request that a template's field names: {"uid"}, ...
[[nodiscard]] std::optional<Attribute> template_attribute(std::string_view field);

// The problem with the braces of a name; nothing: there is none.
[[nodiscard]] std::optional<std::string> template_problem(std::string_view name);

// The names in braces of a template: {"jobid"} for "job-{jobid}".
[[nodiscard]] std::vector<std::string> template_fields(std::string_view name);

}  // namespace vpfs::stage
