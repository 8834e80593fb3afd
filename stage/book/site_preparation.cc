// What a coordinator's site has.
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stage/book/preparation.h"
#include "stage/config/live_words.h"
#include "stage/rules/job_registry.h"
#include "stage/rules/template_name.h"

namespace vpfs::stage {

// A rule or job that could never be in force is left out. Whether the others fit is for the
// composer to say, again after each change of the file.
BookPreparation::Problem BookPreparation::check(ReplaceSite site) {
  if (site.rules.size() > RuleBook::kMostRules) {
    return invalid("rules", fmt::format("more than {} rules", RuleBook::kMostRules));
  }
  if (site.jobs.size() > RuleBook::kMostJobs) {
    return invalid("jobs", fmt::format("more than {} jobs", RuleBook::kMostJobs));
  }
  ReplaceSite made = {.site = std::move(site.site), .rules = {}, .jobs = {}};
  const auto warn = [&](std::string_view what, const std::string& name, std::string_view why) {
    change_.warnings.push_back(fmt::format("{} {}: {}", what, name, why));
  };
  const auto is_over = [&](const std::optional<WallTime>& until) { return until && *until <= at_; };

  std::unordered_set<std::string> names;
  for (ReplaceSite::Rule& rule : site.rules) {
    const std::string& name = rule.text.name;
    if (is_over(rule.until)) continue;
    if (!is_good_name(name)) {
      warn("rule", name, fmt::format("a name has 1 to {} bytes of printable ASCII", kLongestName));
    } else if (name == "default") {
      warn("rule", name, "`default` is always there, and is each stage's own");
    } else if (!names.insert(name).second) {
      warn("rule", name, "is given twice: the first one counts");
    } else {
      erase_words(rule.text.words, "for");
      if (time_problem(rule.until, "until_at")) rule.until.reset();
      made.rules.push_back(std::move(rule));
    }
  }
  JobRegistry jobs;
  for (ReplaceSite::Job& job : site.jobs) {
    if (is_over(job.until)) continue;
    if (const Result<void> added = jobs.add(job.job); !added) {
      warn("job", job.job.jobid, added.error().message);
      continue;
    }
    if (time_problem(job.until, "until_at")) job.until.reset();
    made.jobs.push_back(std::move(job));
  }
  change_.operation.what = std::move(made);
  return std::nullopt;
}

}  // namespace vpfs::stage
