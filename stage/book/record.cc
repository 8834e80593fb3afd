#include "stage/book/record.h"

#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stage/book/changes.h"
#include "stage/book/json_members.h"
#include "stage/book/record_format.h"

namespace vpfs::stage {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMostNumber = std::numeric_limits<std::int64_t>::max();
// Times up to here fit into a Duration as well.
constexpr std::uint64_t kMostTime = std::uint64_t{1} << 33;

WallTime time_of(JsonMembers& object, const char* key) {
  return WallTime(std::chrono::seconds(object.number(key, kMostTime)));
}

std::optional<WallTime> until_of(JsonMembers& object, const char* key = "until") {
  if (!object.has(key)) return std::nullopt;
  return time_of(object, key);
}

UntilChange change_of(JsonMembers& object) {
  const std::optional<WallTime> until = until_of(object);
  if (!until) return std::nullopt;
  return *until == WallTime{} ? UntilChange(std::optional<WallTime>()) : UntilChange(until);
}

RuleOrigin origin_of(JsonMembers& object) {
  const std::string name = object.text("origin");
  for (std::size_t at = 0; at < std::size(kOriginNames); ++at) {
    if (name == kOriginNames[at]) return static_cast<RuleOrigin>(at);
  }
  object.report(fmt::format("the origin '{}' is not known", name));
  return RuleOrigin::administrator;
}

RuleText read_text(JsonMembers object) {
  RuleText text;
  text.name = object.text("name");
  text.condition = object.text("condition");
  text.words = object.texts("words");
  return text;
}

RegisteredJob read_job(JsonMembers object) {
  RegisteredJob job;
  job.jobid = object.text("jobid");
  job.clients = object.texts("clients");
  job.uids = object.numbers("uids", UINT32_MAX);
  job.gids = object.numbers("gids", UINT32_MAX);
  job.account = object.text("account");
  job.nodes = static_cast<std::uint32_t>(object.number("nodes", UINT32_MAX));
  return job;
}

std::shared_ptr<const LiveRule> read_live_rule(JsonMembers object) {
  LiveRule rule;
  rule.text = read_text(object.child("text"));
  rule.origin = origin_of(object);
  rule.by = object.text("by");
  rule.since = time_of(object, "since");
  rule.until = until_of(object);
  return std::make_shared<const LiveRule>(std::move(rule));
}

std::shared_ptr<const LiveShare> read_live_share(JsonMembers object) {
  LiveShare share;
  share.virtual_pfs = object.text("virtual_pfs");
  share.overrides = object.flag("overrides");
  share.words = object.texts("words");
  share.by = object.text("by");
  share.since = time_of(object, "since");
  share.until = until_of(object);
  return std::make_shared<const LiveShare>(std::move(share));
}

LiveJob read_live_job(JsonMembers object) {
  LiveJob job;
  job.job = read_job(object.child("job"));
  job.origin = origin_of(object);
  job.by = object.text("by");
  job.since = time_of(object, "since");
  job.until = until_of(object);
  if (object.has("rule")) job.rule = read_live_rule(object.child("rule"));
  return job;
}

std::vector<ApplySet::Rule> read_rules(JsonMembers& object, std::string& error) {
  std::vector<ApplySet::Rule> rules;
  object.for_each("rules", [&](const json& each) {
    JsonMembers rule(each, error);
    rules.push_back({.text = read_text(rule.child("text")), .until = until_of(rule)});
  });
  return rules;
}

ReplaceSite read_site(JsonMembers& object, std::string& error) {
  ReplaceSite site;
  site.site = object.text("site");
  site.rules = read_rules(object, error);
  object.for_each("jobs", [&](const json& each) {
    JsonMembers job(each, error);
    site.jobs.push_back({.job = read_job(job.child("job")), .until = until_of(job)});
  });
  return site;
}

ApplySet read_apply(JsonMembers& object, std::string& error) {
  ApplySet apply;
  apply.rules = read_rules(object, error);
  object.for_each("shares", [&](const json& each) {
    JsonMembers share(each, error);
    ApplySet::DeclaredShare& made = apply.shares.emplace_back();
    made.virtual_pfs = share.text("virtual_pfs");
    made.words = share.texts("words");
    made.overrides = share.flag("overrides");
  });
  return apply;
}

template <typename T>
std::vector<std::shared_ptr<const T>> chosen(JsonMembers& object, const char* key,
                                             const std::vector<std::shared_ptr<const T>>& pool) {
  std::vector<std::shared_ptr<const T>> items;
  for (const std::uint64_t place : object.numbers(key, kMostNumber)) {
    if (place < pool.size()) {
      items.push_back(pool[place]);
    } else {
      object.report(fmt::format("\"{}\" has a place that does not exist", key));
    }
  }
  return items;
}

void read_history(JsonMembers& object, BookState& state, std::string& error) {
  std::vector<std::shared_ptr<const LiveRule>> rules;
  std::vector<std::shared_ptr<const LiveShare>> shares;
  object.for_each("rules", [&](const json& each) {
    rules.push_back(read_live_rule({each, error}));
  });
  object.for_each("shares", [&](const json& each) {
    shares.push_back(read_live_share({each, error}));
  });
  object.for_each("history", [&](const json& each) {
    JsonMembers entry(each, error);
    HistoryEntry& made = state.history.emplace_back();
    made.version = entry.number("version", kMostNumber);
    made.at = time_of(entry, "at");
    made.who = entry.text("who");
    made.command = entry.text("command");
    made.set = std::make_shared<const LiveSet>(
        LiveSet{.rules = chosen(entry, "rules", rules), .shares = chosen(entry, "shares", shares)});
  });
  for (std::size_t at = 0; at < state.history.size(); ++at) {
    if (state.history[at].version + state.history.size() - 1 - at != state.version) {
      object.report("the versions of the history are not in a row");
    }
  }
  if (state.history.empty() != (state.version == 0)) object.report("the history is missing");
  if (!state.history.empty()) state.administrators = state.history.back().set;
}

BookState read_state(JsonMembers& object, std::string& error) {
  BookState state;
  state.number = object.number("n", kMostNumber);
  state.version = object.number("version", kMostNumber);
  read_history(object, state, error);
  object.for_each("coordinators", [&](const json& each) {
    state.coordinators.push_back(read_live_rule({each, error}));
  });
  object.for_each("jobs", [&](const json& each) {
    LiveJob job = read_live_job({each, error});
    state.jobs.insert_or_assign(job.job.jobid, std::move(job));
  });
  // Earlier versions of vpfs had none.
  if (object.has("site_jobs")) {
    object.for_each("site_jobs", [&](const json& each) {
      LiveJob job = read_live_job({each, error});
      state.site_jobs.insert_or_assign(job.job.jobid, std::move(job));
    });
  }
  if (object.has("bypass")) {
    JsonMembers bypass = object.child("bypass");
    state.bypass = {.on = true,
                    .by = bypass.text("by"),
                    .since = time_of(bypass, "since"),
                    .until = until_of(bypass)};
  }
  if (object.has("pending")) {
    JsonMembers pending = object.child("pending");
    state.pending = {.deadline = time_of(pending, "deadline"),
                     .version = pending.number("version", kMostNumber)};
    if (set_of(state, state.pending->version) == nullptr) {
      object.report("the version to go back to is not in the history");
    }
  }
  return state;
}

void read_operation(const std::string& op, JsonMembers& object, BookOperation& operation,
                    std::string& error) {
  operation.at = time_of(object, "at");
  operation.who = object.text("who");
  operation.confirm_by = until_of(object, "confirm_by");
  if (op == "rule_start") {
    StartRule start;
    start.rule = read_text(object.child("rule"));
    start.origin = origin_of(object);
    start.until = until_of(object);
    operation.what = std::move(start);
  } else if (op == "rule_change") {
    operation.what = ChangeRule{.name = object.text("name"),
                                .words = object.texts("words"),
                                .until = change_of(object),
                                .becomes = object.texts("becomes")};
  } else if (op == "share_change") {
    ChangeShare change;
    change.virtual_pfs = object.text("virtual_pfs");
    change.overrides = object.flag("overrides");
    change.words = object.texts("words");
    change.until = change_of(object);
    change.becomes = object.texts("becomes");
    operation.what = std::move(change);
  } else if (op == "rule_stop") {
    operation.what = StopRule{.name = object.text("name")};
  } else if (op == "share_stop") {
    operation.what = StopShare{.virtual_pfs = object.text("virtual_pfs")};
  } else if (op == "apply") {
    operation.what = read_apply(object, error);
  } else if (op == "confirm") {
    operation.what = Confirm{};
  } else if (op == "rollback") {
    operation.what = Rollback{.version = object.number("version", kMostNumber)};
  } else if (op == "job_start") {
    StartJob start;
    start.job = read_job(object.child("job"));
    start.words = object.texts("words");
    start.origin = origin_of(object);
    start.until = until_of(object);
    operation.what = std::move(start);
  } else if (op == "job_stop") {
    operation.what = StopJob{.jobid = object.text("jobid")};
  } else if (op == "site") {
    operation.what = read_site(object, error);
  } else if (op == "bypass") {
    operation.what = SetBypass{.on = object.flag("on"), .until = until_of(object)};
  } else if (op == "expire") {
    operation.what = Expire{};
  } else {
    object.report(
        fmt::format("the operation '{}' is not known: a newer version of vpfs wrote it. "
                    "Run that version, or move the file away to start without live rules",
                    op));
  }
}

}  // namespace

std::expected<BookRecord, std::string> read_record(std::string_view line) {
  const json parsed = json::parse(line, nullptr, false);
  if (parsed.is_discarded()) return std::unexpected("this is not JSON");
  std::string error;
  JsonMembers object(parsed, error);
  const std::uint64_t version = object.number("v", kMostNumber);
  if (error.empty() && version > kRecordVersion) {
    return std::unexpected(
        fmt::format("a newer version of vpfs wrote it (format {}, this one reads up to {}). Run "
                    "that version, or move the file away to start without live rules",
                    version, kRecordVersion));
  }
  BookRecord record;
  if (version >= 2) record.number = object.number("n", kMostNumber);
  const std::string op = object.text("op");
  if (error.empty() && op == "snapshot" && version >= 2) {
    record.what = read_state(object, error);
  } else if (error.empty()) {
    read_operation(op, object, record.what.emplace<BookOperation>(), error);
  }
  if (!error.empty()) return std::unexpected(error);
  return record;
}

}  // namespace vpfs::stage
