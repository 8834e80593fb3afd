#include "stage/book_record.h"

#include <limits>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stage/book_changes.h"
#include "stage/json_members.h"

namespace vpfs::stage {
namespace {

using nlohmann::json;

constexpr std::uint64_t kVersion = 2;
constexpr std::uint64_t kMostNumber = std::numeric_limits<std::int64_t>::max();
// Times up to here fit into a Duration as well.
constexpr std::uint64_t kMostTime = std::uint64_t{1} << 33;
constexpr const char* kOrigins[] = {"file", "administrator", "job", "coordinator"};

std::int64_t seconds_of(WallTime time) {
  return time.time_since_epoch().count();
}

const char* name_of(RuleOrigin origin) {
  return kOrigins[static_cast<std::size_t>(origin)];
}

// --- Writing

void put_until(json& object, const std::optional<WallTime>& until) {
  if (until) object["until"] = seconds_of(*until);
}
void put_change(json& object, const UntilChange& change) {
  if (change) object["until"] = *change ? seconds_of(**change) : 0;
}

json to_json(const RuleText& rule) {
  return {{"name", rule.name}, {"condition", rule.condition}, {"words", rule.words}};
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
    json rules = json::array();
    for (const ApplySet::Rule& rule : apply.rules) {
      json& object = rules.emplace_back(json{{"text", to_json(rule.text)}});
      put_until(object, rule.until);
    }
    record["rules"] = std::move(rules);
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
    for (const auto& item : items) places.push_back(place_of(item));
    return places;
  }
  json take() { return std::move(values_); }

 private:
  std::unordered_map<const T*, std::size_t> places_;
  json values_ = json::array();
};

// --- Reading

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
  for (std::size_t at = 0; at < std::size(kOrigins); ++at) {
    if (name == kOrigins[at]) return static_cast<RuleOrigin>(at);
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

ApplySet read_apply(JsonMembers& object, std::string& error) {
  ApplySet apply;
  object.for_each("rules", [&](const json& each) {
    JsonMembers rule(each, error);
    apply.rules.push_back({.text = read_text(rule.child("text")), .until = until_of(rule)});
  });
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
      object.report(fmt::format("\"{}\" has a place that is not there", key));
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

std::optional<std::string> to_record(const BookOperation& operation, std::uint64_t number) {
  json record = {
      {"v", kVersion}, {"n", number}, {"at", seconds_of(operation.at)}, {"who", operation.who}};
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
      {"v", kVersion}, {"n", state.number}, {"op", "snapshot"}, {"version", state.version}};
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

std::expected<BookRecord, std::string> read_record(std::string_view line) {
  const json parsed = json::parse(line, nullptr, false);
  if (parsed.is_discarded()) return std::unexpected("this is no JSON");
  std::string error;
  JsonMembers object(parsed, error);
  const std::uint64_t version = object.number("v", kMostNumber);
  if (error.empty() && version > kVersion) {
    return std::unexpected(
        fmt::format("a newer version of vpfs wrote it (format {}, this one reads up to {}). Run "
                    "that version, or move the file away to start without live rules",
                    version, kVersion));
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
