// Jobs, the bypass, and what ends by itself.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stage/book/preparation.h"
#include "stage/config/live_words.h"
#include "stage/rules/client_list.h"
#include "stage/rules/job_registry.h"
#include "stage/rules/template_name.h"

namespace vpfs::stage {

BookPreparation::Problem BookPreparation::check(StartJob start) {
  std::vector<std::string> addresses;
  for (const std::string& client : start.job.clients) {
    if (const Result<void> added = add_clients(client, file_.names, addresses); !added) {
      return invalid("clients", added.error().message);
    }
  }
  start.job.clients = std::move(addresses);
  if (const Result<void> added = JobRegistry().add(start.job); !added) {
    return invalid("", added.error().message);
  }
  if (!start.job.account.empty() && !is_good_name(start.job.account)) {
    return invalid("account",
                   fmt::format("must be at most {} bytes of printable ASCII", kLongestName));
  }
  if (Problem found = time_problem(start.until, "time_limit")) return found;
  if (std::ranges::find(file_.jobs, start.job.jobid, &RegisteredJob::jobid) != file_.jobs.end()) {
    change_.warnings.push_back(
        fmt::format("the configuration file registers the job '{}' too: this one counts until it "
                    "stops",
                    start.job.jobid));
  }
  const bool known = state_.jobs.contains(start.job.jobid);
  if (!known && state_.jobs.size() >= RuleBook::kMostJobs) {
    return problem(ProblemCode::unavailable, "",
                   fmt::format("{} jobs are registered already", state_.jobs.size()));
  }
  bool promises = false;
  if (!start.words.empty()) {
    LiveRule rule = rule_of_job(start.job.jobid, start.words, at_, change_.operation.who);
    if (Problem found = name_problem(rule.text, RuleOrigin::job)) return found;
    if (start.job.jobid.find_first_of("{}") != std::string::npos) {
      return invalid("JOBID", "a job id with braces cannot have a rule");
    }
    if (value_of(start.words, "for")) {
      return invalid("for", "the rule of a job ends with the job, or at its time limit");
    }
    auto made = read(rule.text, context_for(rule.text.words));
    if (!made) return std::move(made.error());
    start.words = std::move(made->text.words);
    promises = may_promise(rule.text);
  }
  change_.operation.what = std::move(start);
  return promises ? promise_problem() : std::nullopt;
}

BookPreparation::Problem BookPreparation::check(const StopJob& stop) {
  if (state_.jobs.contains(stop.jobid)) return std::nullopt;
  if (state_.site_jobs.contains(stop.jobid)) {
    return invalid("JOBID", fmt::format("the job '{}' is the coordinator's: stop it there "
                                        "(vpfsctl --coordinator ADDRESS)",
                                        stop.jobid));
  }
  return problem(ProblemCode::not_found, "JOBID",
                 fmt::format("the job '{}' is not registered", stop.jobid));
}

BookPreparation::Problem BookPreparation::check(const SetBypass& bypass) {
  if (!bypass.on && bypass.until) return invalid("for", "`bypass off` has no end");
  return time_problem(bypass.until, "for");
}

BookPreparation::Problem BookPreparation::check(const Expire&) {
  find_differences();
  note_ends();
  return std::nullopt;
}

void BookPreparation::note_ends() {
  const auto is_over = [&](const std::optional<WallTime>& until) { return until && *until <= at_; };
  const auto note = [&](std::string text) { change_.warnings.push_back(std::move(text)); };
  if (state_.pending && is_over(state_.pending->deadline)) {
    note(fmt::format("the applied set was not confirmed: back to version {}",
                     state_.pending->version));
  }
  for (const auto& rule : set_.rules) {
    if (is_over(rule->until)) note(fmt::format("the rule '{}' has ended", rule->text.name));
  }
  for (const auto& share : set_.shares) {
    if (is_over(share->until)) {
      note(fmt::format("the share of '{}' is as before again", share->virtual_pfs));
    }
  }
  for (const auto& rule : state_.coordinators) {
    if (is_over(rule->until)) note(fmt::format("the rule '{}' has ended", rule->text.name));
  }
  for (const auto& [id, job] : state_.jobs) {
    if (is_over(job.until)) {
      note(fmt::format("the job '{}' has reached its time limit", id));
    } else if (job.rule && is_over(job.rule->until)) {
      note(fmt::format("the rule '{}' has ended", job.rule->text.name));
    }
  }
  for (const auto& [id, job] : state_.site_jobs) {
    if (is_over(job.until)) note(fmt::format("the job '{}' has reached its time limit", id));
  }
  if (is_over(state_.bypass.until)) note("bypass is off again");
}

}  // namespace vpfs::stage
