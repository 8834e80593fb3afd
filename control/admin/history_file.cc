#include "control/admin/history_file.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <exception>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace vpfs::control {
namespace {

using nlohmann::json;
using stage::History;
using stage::Measures;

constexpr int kVersion = 2;
constexpr int kOldestVersion = 1;  // that can be read: it has no times of kept slots
constexpr std::chrono::hours kDay(24);

json to_json(const Measures& measures) {
  return json(static_cast<const std::array<std::uint64_t, stage::kMeasures>&>(measures));
}

json to_json(const History::Minute::Row& row) {
  const stage::VirtualPfsInfo& info = *row.name.info;
  json made = {{"name", info.name}, {"sums", to_json(row.measures)}};
  if (!row.name.jobid.empty()) made["job"] = row.name.jobid;
  if (info.job_uid) made["uid"] = *info.job_uid;
  if (row.name.rule != nullptr) made["rule"] = *row.name.rule;
  if (info.declared != nullptr) {
    const Share share = info.share();
    made["weight"] = share.weight;
    if (share.rate.count > 0) made["rate"] = share.rate.count;
    if (share.min.count > 0) made["min"] = share.min.count;
  }
  return made;
}

json to_json(const History::Minute& minute) {
  json rows = json::array();
  Measures others = minute.others;
  for (const History::Minute::Row& row : minute.rows) {
    if (row.name.info == nullptr) {
      others.merge(row.measures);
    } else {
      rows.push_back(to_json(row));
    }
  }
  return {{"begin", seconds_since_epoch(minute.span.begin)},
          {"end", seconds_since_epoch(minute.span.end)},
          {"length_us", microseconds_of(minute.span.length)},
          {"rules", minute.span.rules},
          {"cost", minute.span.cost},
          {"virtual_pfs", std::move(rows)},
          {"others", to_json(others)}};
}

WallTime time_of(const json& seconds) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  return WallTime(std::chrono::seconds(std::clamp<std::int64_t>(seconds, 0, kMost)));
}

// Throws what json and vector throw, as the following three.
Measures measures_of(const json& from) {
  auto values = from.get<std::vector<std::uint64_t>>();
  if (values.size() == stage::kMeasures - 1) {
    constexpr auto kPlace = std::to_underlying(stage::Measure::held_by_kept_slot);
    values.insert(values.begin() + kPlace, 0);
  }
  Measures made;
  for (std::size_t i = 0; i < made.size(); ++i) made[i] = values.at(i);
  return made;
}

stage::HistoryName name_of(const json& from) {
  auto declared = std::make_shared<stage::VirtualPfsConfig>();
  declared->share.weight = from.value("weight", 1U);
  declared->share.rate = {from.value("rate", std::uint64_t{0})};
  declared->share.min = {from.value("min", std::uint64_t{0})};
  auto info = std::make_shared<stage::VirtualPfsInfo>();
  info->name = declared->name = from.at("name").get<std::string>();
  info->declared = std::move(declared);
  if (from.contains("uid")) info->job_uid = from.at("uid").get<std::uint32_t>();
  stage::HistoryName made;
  made.info = std::move(info);
  made.jobid = from.value("job", std::string());
  if (from.contains("rule")) {
    made.rule = std::make_shared<const std::string>(from.at("rule").get<std::string>());
  }
  return made;
}

History::Minute minute_of(const json& from) {
  History::Minute made;
  made.span.begin = time_of(from.at("begin"));
  made.span.end = std::max(made.span.begin, time_of(from.at("end")));
  constexpr std::uint64_t kMostMicroseconds = std::uint64_t{1} << 40;
  made.span.length = std::chrono::microseconds(
      std::min(from.at("length_us").get<std::uint64_t>(), kMostMicroseconds));
  made.span.rules = from.at("rules").get<std::uint64_t>();
  made.span.cost = from.at("cost").get<std::uint64_t>();
  for (const json& row : from.at("virtual_pfs")) {
    made.rows.push_back({.name = name_of(row), .measures = measures_of(row.at("sums"))});
  }
  made.others = measures_of(from.at("others"));
  return made;
}

// Gives rows of the same virtual PFS, share, rule and job the same name.
class SameNames {
 public:
  void unify(History::Minute& minute) {
    for (History::Minute::Row& row : minute.rows) {
      const stage::HistoryName& name = row.name;
      const Share share = name.info->share();
      const Key key = {
          name.info->name,    name.jobid,   name.rule == nullptr ? std::string() : *name.rule,
          name.info->job_uid, share.weight, share.rate.count,
          share.min.count};
      row.name = known_.try_emplace(key, name).first->second;
    }
  }

 private:
  using Key = std::tuple<std::string, std::string, std::string, std::optional<std::uint32_t>,
                         std::uint32_t, std::uint64_t, std::uint64_t>;
  std::map<Key, stage::HistoryName> known_;
};

}  // namespace

std::string history_record(const History& history, std::uint64_t minutes) {
  json all = json::array();
  for (std::uint64_t i = std::min<std::uint64_t>(minutes, history.minutes()); i-- > 0;) {
    all.push_back(to_json(history.minute(i)));
  }
  const json record = {{"v", kVersion}, {"minutes", std::move(all)}};
  return json_text(record);
}

Result<std::vector<History::Minute>> read_history_record(const std::string& record) {
  std::vector<History::Minute> minutes;
  try {
    const json read = json::parse(record);
    const auto version = read.at("v").get<std::int64_t>();
    if (version < kOldestVersion || version > kVersion) {
      return fail(fmt::format("is of version {}, and this program knows {}: move the file away",
                              version, kVersion));
    }
    for (const json& minute : read.at("minutes")) minutes.push_back(minute_of(minute));
  } catch (const std::exception& problem) {
    return fail(fmt::format("holds no minutes of a history: {}", problem.what()));
  }
  return minutes;
}

Result<void> HistoryFile::load(History& history, WallTime now, std::vector<std::string>& notes) {
  if (!records_.exists()) return {};
  Result<StateStore::Loaded> loaded = records_.load();
  VPFS_TRY(loaded);
  for (std::string& note : loaded->notes) notes.push_back("control.history: " + note);
  SameNames names;
  for (const StateStore::Record& record : loaded->records) {
    Result<std::vector<History::Minute>> minutes = read_history_record(record.text);
    if (!minutes) return fail(fmt::format("{}: {}", record.place, minutes.error().message));
    for (History::Minute& minute : *minutes) {
      if (minute.span.end <= now - kDay) continue;
      names.unify(minute);
      history.restore(minute);
    }
  }
  return {};
}

Result<void> restore_history(History& history, const std::string& record) {
  Result<std::vector<History::Minute>> minutes = read_history_record(record);
  VPFS_TRY(minutes);
  SameNames names;
  for (History::Minute& minute : *minutes) {
    names.unify(minute);
    history.restore(minute);
  }
  return {};
}

void HistoryFile::keep(const History& history) {
  const std::uint64_t ended = history.minutes_ended();
  if (!records_.exists() || ended == kept_) return;
  const bool is_kept = records_.keep([&] { return history_record(history, ended - kept_); },
                                     [&] { return history_record(history, history.minutes()); });
  if (is_kept) kept_ = ended;
}

}  // namespace vpfs::control
