#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "tools/vpfsctl/record_dump.h"
#include "tools/vpfsctl/site/answer.h"

namespace vpfs::ctl {

// A set of rules to try on what one stage has recorded.
struct PlanOptions {
  control::Envelope dry_run;     // of `rule apply`
  std::optional<Duration> last;  // of the recording; nothing: all of it
  bool json = false;
};

struct Planned {
  std::string output;
  // What a stage answered instead; nothing: all is there.
  std::vector<ProxyAnswer> failures;
};
// What the set changes, and what each virtual PFS would have got with it. Changes nothing. An error
// is in the set, the recording or the answers.
[[nodiscard]] Result<Planned> plan_rules(const PlanOptions& options, const AskStages& ask);

}  // namespace vpfs::ctl
