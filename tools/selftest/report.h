#pragma once

#include <string>

#include "tools/selftest/judgement.h"
#include "tools/selftest/run.h"
#include "tools/selftest/settings.h"

namespace vpfs::selftest {

// For people.
[[nodiscard]] std::string to_words(const Settings& settings, const Record& record,
                                   const Findings& findings);
// docs/admin/selftest.md describes it.
[[nodiscard]] std::string to_json(const Settings& settings, const Record& record,
                                  const Findings& findings);
// What the server did at which depth, and what was got of shares and limits.
[[nodiscard]] std::string to_svg(const Record& record, const Findings& findings);

}  // namespace vpfs::selftest
