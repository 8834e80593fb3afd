// The part of Administration that takes on what a coordinator's site has.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"
#include "control/host/administration.h"
#include "control/wire/protocol.h"
#include "stage/book/changes.h"
#include "stage/config/rule_text.h"

namespace vpfs::control {
namespace {

std::optional<WallTime> until_of(std::int64_t seconds) {
  if (seconds == 0) return std::nullopt;
  return WallTime(std::chrono::seconds(seconds));
}

stage::RegisteredJob job_of(const JobState& job) {
  return {.jobid = job.jobid(),
          .clients = {job.clients().begin(), job.clients().end()},
          .uids = {job.uids().begin(), job.uids().end()},
          .gids = {job.gids().begin(), job.gids().end()},
          .account = job.account(),
          .nodes = job.nodes()};
}

}  // namespace

stage::BookOperation Administration::operation_of(const Site& request, const Caller& caller) const {
  stage::ReplaceSite site = {.site = request.origin(), .rules = {}, .jobs = {}};
  if (site.site.empty()) site.site = caller.name;
  for (const Site::Rule& rule : request.rules()) {
    site.rules.push_back({.text = {.name = rule.name(),
                                   .condition = rule.condition(),
                                   .words = {rule.words().begin(), rule.words().end()}},
                          .until = until_of(rule.until_at())});
  }
  for (const JobState& job : request.jobs()) {
    site.jobs.push_back({.job = job_of(job), .until = until_of(job.until_at())});
  }
  return {.at = now_(), .who = caller.name, .what = std::move(site)};
}

std::expected<void, Error> Administration::site_arrived(const Site& request) {
  if (auto why = why_outdated(request)) return std::unexpected(std::move(*why));
  site_term_ = std::max(site_term_, request.term());
  ++last_site_;
  return {};
}

std::optional<Error> Administration::why_outdated(const Site& request) const {
  return control::why_outdated(request, std::max(site_term_, term_ == nullptr ? 0 : term_()));
}

// Look-ups take seconds, and the connection that brought the site may have ended since.
std::optional<Error> Administration::why_outdated(const Site& request, std::uint64_t number) const {
  if (number == last_site_) return why_outdated(request);
  return make_error(Error::OUTDATED, "",
                    "another site has come while the names of this one were looked up");
}

// Names of users, groups and hosts in the conditions of rules that are new here.
WantedNames Administration::names_of_site(const Site& request, const Caller& caller,
                                          ReadRequest& read) const {
  auto change = live_.prepare(operation_of(request, caller));
  if (!change) {
    read.mistake = std::move(change.error());
    return {};
  }
  const auto& site = std::get<stage::ReplaceSite>(change->operation.what);
  const stage::BookState& state = live_.book().state();
  const NotedNames noted(names_);
  for (const stage::ReplaceSite::Rule& rule : site.rules) {
    const auto known = stage::find_site_rule(state, rule.text.name);
    if (!known || known->text != rule.text) (void)stage::parse_rule(rule.text, live_.file());
  }
  if (noted.wanted().empty()) read.change = std::move(*change);
  return noted.wanted();
}

// A warning for each rule and job of the coordinator that is not in force.
void Administration::warn_of_site(Ack& reply) const {
  for (const stage::Suspended& each : live_.composed().suspended) {
    if (each.origin != stage::RuleOrigin::coordinator) continue;
    const std::string place = each.place.empty() || each.place == "NAME" ? "" : each.place + ": ";
    reply.add_warnings(fmt::format("rule {}: {}{}", each.name, place, each.text));
  }
  const stage::BookState& state = live_.book().state();
  std::set<std::string_view> of_file;
  for (const stage::RegisteredJob& job : live_.file().jobs) of_file.insert(job.jobid);
  for (const auto& [id, job] : state.site_jobs) {
    const auto here = state.jobs.find(id);
    if (here != state.jobs.end()) {
      reply.add_warnings(
          fmt::format("job {}: {} has registered it here, which counts", id, here->second.by));
    } else if (of_file.contains(id)) {
      reply.add_warnings(
          fmt::format("job {}: the configuration file registers it, which counts", id));
    }
  }
}

// The same site again is told what does not fit, and changes nothing: then the answer has no text.
Administration::Outcome<Ack> Administration::site(const Site& request, const Caller& caller,
                                                  ReadRequest& read) {
  if (rules_.tick()) read = {};
  if (read.mistake) return std::unexpected(std::move(*read.mistake));
  auto change = read.change ? Outcome<stage::Change>(std::move(*read.change))
                            : live_.prepare(operation_of(request, caller));
  VPFS_TRY(change);
  const auto& site = std::get<stage::ReplaceSite>(change->operation.what);
  Ack reply;
  if (!stage::has_site(live_.book().state(), site)) {
    VPFS_TRY(rules_.carry_out(*change));
    reply.set_text(
        fmt::format("{} rules and {} jobs of {}", site.rules.size(), site.jobs.size(), site.site));
  }
  for (const std::string& each : change->warnings) reply.add_warnings(each);
  warn_of_site(reply);
  return reply;
}

}  // namespace vpfs::control
