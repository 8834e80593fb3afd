// The writing side of book_record.h.
#include <cstddef>
#include <memory>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "stage/book/record.h"
#include "stage/book/record_format.h"

namespace vpfs::stage {
namespace {

using nlohmann::json;

std::int64_t seconds_of(WallTime time) {
  return time.time_since_epoch().count();
}

const char* name_of(RuleOrigin origin) {
  return kOriginNames[static_cast<std::size_t>(origin)];
}

void put_until(json& object, const std::optional<WallTime>& until) {
  if (until) object["until"] = seconds_of(*until);
}
void put_change(json& object, const UntilChange& change) {
  if (change) object["until"] = *change ? seconds_of(**change) : 0;
}

json to_json(const RuleText& rule) {
  return {{"name", rule.name}, {"condition", rule.condition}, {"words", rule.words}};
}

json to_json(const std::vector<ApplySet::Rule>& rules) {
  json all = json::array();
  for (const ApplySet::Rule& rule : rules) {
    json& object = all.emplace_back(json{{"text", to_json(rule.text)}});
    put_until(object, rule.until);
  }
  return all;
}

json to_json(const RegisteredJob& job) {
  return {{"jobid", job.jobid}, {"clients", job.clients}, {"uids", job.uids},
          {"gids", job.gids},   {"account", job.account}, {"nodes", job.nodes}};
}

json to_json(const LiveRule& rule) {
  json object = {{"text", to_json(rule.text)},
                 {"origin", name_of(rule.origin)},
                 {"by", rule.by},
                 {"since", seconds_of(rule.since)}};
  put_until(object, rule.until);
  return object;
}

json to_json(const LiveShare& share) {
  json object = {{"virtual_pfs", share.virtual_pfs},
                 {"overrides", share.overrides},
                 {"words", share.words},
                 {"by", share.by},
                 {"since", seconds_of(share.since)}};
  put_until(object, share.until);
  return object;
}

json to_json(const LiveJob& job) {
  json object = {{"job", to_json(job.job)},
                 {"origin", name_of(job.origin)},
                 {"by", job.by},
                 {"since", seconds_of(job.since)}};
  put_until(object, job.until);
  if (job.rule) object["rule"] = to_json(*job.rule);
  return object;
}

struct OperationWriter {
  json& record;

  void operator()(const StartRule& start) const {
    record["op"] = "rule_start";
    record["rule"] = to_json(start.rule);
    record["origin"] = name_of(start.origin);
    put_until(record, start.until);
  }
  void operator()(const ChangeRule& change) const {
    record["op"] = "rule_change";
    record["name"] = change.name;
    record["words"] = change.words;
    record["becomes"] = change.becomes;
    put_change(record, change.until);
  }
  void operator()(const ChangeShare& change) const {
    record["op"] = "share_change";
    record["virtual_pfs"] = change.virtual_pfs;
    record["overrides"] = change.overrides;
    record["words"] = change.words;
    record["becomes"] = change.becomes;
    put_change(record, change.until);
  }
  void operator()(const StopRule& stop) const {
    record["op"] = "rule_stop";
    record["name"] = stop.name;
  }
  void operator()(const StopShare& stop) const {
    record["op"] = "share_stop";
    record["virtual_pfs"] = stop.virtual_pfs;
  }
  void operator()(const ApplySet& apply) const {
    record["op"] = "apply";
    record["rules"] = to_json(apply.rules);
    json shares = json::array();
    for (const ApplySet::DeclaredShare& share : apply.shares) {
      shares.push_back({{"virtual_pfs", share.virtual_pfs},
                        {"words", share.words},
                        {"overrides", share.overrides}});
    }
    record["shares"] = std::move(shares);
  }
  void operator()(const Confirm&) const { record["op"] = "confirm"; }
  void operator()(const Rollback& rollback) const {
    record["op"] = "rollback";
    record["version"] = rollback.version;
  }
  void operator()(const StartJob& start) const {
    record["op"] = "job_start";
    record["job"] = to_json(start.job);
    record["words"] = start.words;
    record["origin"] = name_of(start.origin);
    put_until(record, start.until);
  }
  void operator()(const StopJob& stop) const {
    record["op"] = "job_stop";
    record["jobid"] = stop.jobid;
  }
  void operator()(const ReplaceSite& site) const {
    record["op"] = "site";
    record["site"] = site.site;
    record["rules"] = to_json(site.rules);
    json jobs = json::array();
    for (const ReplaceSite::Job& job : site.jobs) {
      json& object = jobs.emplace_back(json{{"job", to_json(job.job)}});
      put_until(object, job.until);
    }
    record["jobs"] = std::move(jobs);
  }
  void operator()(const SetBypass& bypass) const {
    record["op"] = "bypass";
    record["on"] = bypass.on;
    put_until(record, bypass.until);
  }
  void operator()(const Expire&) const { record["op"] = "expire"; }
};

// Writes each value that versions share once; the versions have their places.
template <typename T>
class Pool {
 public:
  std::size_t place_of(const std::shared_ptr<const T>& item) {
    const auto [found, added] = places_.try_emplace(item.get(), values_.size());
    if (added) values_.push_back(to_json(*item));
    return found->second;
  }
  std::vector<std::size_t> places_of(const std::vector<std::shared_ptr<const T>>& items) {
    std::vector<std::size_t> places;
    places.reserve(items.size());
    for (const auto& item : items) places.push_back(place_of(item));
    return places;
  }
  json take() { return std::move(values_); }

 private:
  std::unordered_map<const T*, std::size_t> places_;
  json values_ = json::array();
};

}  // namespace

std::optional<std::string> to_record(const BookOperation& operation, std::uint64_t number) {
  json record = {{"v", kRecordVersion},
                 {"n", number},
                 {"at", seconds_of(operation.at)},
                 {"who", operation.who}};
  std::visit(OperationWriter{record}, operation.what);
  if (operation.confirm_by) record["confirm_by"] = seconds_of(*operation.confirm_by);
  try {
    return record.dump();
  } catch (const json::type_error&) {
    return std::nullopt;
  }
}

std::string to_record(const BookState& state) {
  Pool<LiveRule> rules;
  Pool<LiveShare> shares;
  json record = {
      {"v", kRecordVersion}, {"n", state.number}, {"op", "snapshot"}, {"version", state.version}};
  json history = json::array();
  for (const HistoryEntry& entry : state.history) {
    history.push_back({{"version", entry.version},
                       {"at", seconds_of(entry.at)},
                       {"who", entry.who},
                       {"command", entry.command},
                       {"rules", rules.places_of(entry.set->rules)},
                       {"shares", shares.places_of(entry.set->shares)}});
  }
  record["history"] = std::move(history);
  record["rules"] = rules.take();
  record["shares"] = shares.take();
  json coordinators = json::array();
  for (const auto& rule : state.coordinators) coordinators.push_back(to_json(*rule));
  record["coordinators"] = std::move(coordinators);
  json jobs = json::array();
  for (const auto& [id, job] : state.jobs) jobs.push_back(to_json(job));
  record["jobs"] = std::move(jobs);
  json site_jobs = json::array();
  for (const auto& [id, job] : state.site_jobs) site_jobs.push_back(to_json(job));
  record["site_jobs"] = std::move(site_jobs);
  if (state.bypass.on) {
    json bypass = {{"by", state.bypass.by}, {"since", seconds_of(state.bypass.since)}};
    put_until(bypass, state.bypass.until);
    record["bypass"] = std::move(bypass);
  }
  if (state.pending) {
    record["pending"] = {{"deadline", seconds_of(state.pending->deadline)},
                         {"version", state.pending->version}};
  }
  return record.dump();
}

}  // namespace vpfs::stage
