#pragma once

#include <vector>

#include "tools/selftest/judgement.h"

namespace vpfs::selftest {

// The findings in plain words, with their reasons. `shared`: the self-test was held to a share.
[[nodiscard]] std::vector<VerdictLine> verdict(const Record& record, const Findings& findings,
                                               bool shared);

// "{requests: 16, bytes: 8 MiB}", as the configuration has it.
[[nodiscard]] std::string to_text(const DepthAdvice& advice);
// "{per_request: 96 KiB, write_factor: 1.4}".
[[nodiscard]] std::string to_text(const CostFit& costs);

}  // namespace vpfs::selftest
