#include "control/admin/ledger_file.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace vpfs::control {
namespace {

using insight::Spell;
using nlohmann::json;

constexpr int kRecordVersion = 2;
constexpr int kOldestRecord = 1;  // that can be read: it has no loans
constexpr std::array<std::string_view, 3> kCauses = {"limit", "class", "loans"};  // by their values
constexpr std::chrono::hours kKept(24);

json to_json(const Spell& spell) {
  json made = {{"cause", kCauses.at(std::to_underlying(spell.cause))},
               {"name", spell.name},
               {"begin", seconds_since_epoch(spell.begin)},
               {"end", seconds_since_epoch(spell.end)},
               {"held_us", microseconds_of(spell.held)},
               {"bytes", spell.bytes},
               {"operations", spell.operations},
               {"longest_wait_us", microseconds_of(spell.longest_wait)},
               {"rules", spell.rules}};
  if (!spell.jobid.empty()) made["job"] = spell.jobid;
  if (spell.job_uid) made["uid"] = *spell.job_uid;
  if (!spell.account.empty()) made["account"] = spell.account;
  if (spell.loans.lent > 0) made["lent"] = spell.loans.lent;
  if (spell.loans.borrowed > 0) made["borrowed"] = spell.loans.borrowed;
  if (!spell.rule.empty()) made["rule"] = spell.rule;
  if (spell.rate > 0) made["rate"] = spell.rate;
  return made;
}

WallTime wall_time(const json& seconds) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  return WallTime(std::chrono::seconds(std::clamp<std::int64_t>(seconds, 0, kMost)));
}

Duration duration(const json& microseconds) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 50;
  return std::chrono::microseconds(std::min(microseconds.get<std::uint64_t>(), kMost));
}

Spell::Cause cause_of(const std::string& word) {
  const auto found = std::ranges::find(kCauses, word);
  // A newer program may know others.
  if (found == kCauses.end()) return Spell::Cause::traffic_class;
  return static_cast<Spell::Cause>(found - kCauses.begin());
}

// Throws what json throws.
Spell spell_of(const json& from) {
  Spell made;
  made.cause = cause_of(from.at("cause").get<std::string>());
  made.name = from.at("name").get<std::string>();
  made.begin = wall_time(from.at("begin"));
  made.end = std::max(made.begin, wall_time(from.at("end")));
  made.held = duration(from.at("held_us"));
  made.bytes = from.at("bytes").get<std::uint64_t>();
  made.operations = from.at("operations").get<std::uint64_t>();
  made.longest_wait = duration(from.at("longest_wait_us"));
  made.rules = from.at("rules").get<std::uint64_t>();
  made.jobid = from.value("job", std::string());
  if (from.contains("uid")) made.job_uid = from.at("uid").get<std::uint32_t>();
  made.account = from.value("account", std::string());
  made.loans = {.lent = from.value("lent", Cost{0}), .borrowed = from.value("borrowed", Cost{0})};
  made.rule = from.value("rule", std::string());
  made.rate = from.value("rate", std::uint64_t{0});
  return made;
}

}  // namespace

std::string ledger_record(const std::vector<Spell>& spells) {
  json all = json::array();
  for (const Spell& each : spells) all.push_back(to_json(each));
  const json record = {{"v", kRecordVersion}, {"spells", std::move(all)}};
  return json_text(record);
}

Result<std::vector<Spell>> read_ledger_record(const std::string& record) {
  std::vector<Spell> spells;
  try {
    const json read = json::parse(record);
    const auto version = read.at("v").get<std::int64_t>();
    if (version < kOldestRecord || version > kRecordVersion) {
      return fail(fmt::format("is of version {}, and this program knows {}: move the file away",
                              version, kRecordVersion));
    }
    for (const json& each : read.at("spells")) spells.push_back(spell_of(each));
  } catch (const json::exception& problem) {
    return fail(fmt::format("holds no entries of a ledger: {}", problem.what()));
  }
  return spells;
}

Result<void> LedgerFile::load(WallTime now, std::vector<std::string>& notes) {
  if (!records_.exists()) return {};
  Result<StateStore::Loaded> loaded = records_.load();
  VPFS_TRY(loaded);
  for (std::string& note : loaded->notes) notes.push_back("control.ledger: " + note);
  for (const StateStore::Record& record : loaded->records) {
    Result<std::vector<Spell>> spells = read_ledger_record(record.text);
    if (!spells) return fail(fmt::format("{}: {}", record.place, spells.error().message));
    for (Spell& each : *spells) {
      keep(std::move(each));
    }
  }
  forget(now);
  return {};
}

void LedgerFile::keep(Spell spell) {
  std::deque<Spell>& kept = spell.cause == Spell::Cause::loans ? loans_ : spells_;
  kept.push_back(std::move(spell));
  if (kept.size() > kMost) kept.pop_front();
}

void LedgerFile::forget(WallTime now) {
  for (std::deque<Spell>* const each : {&spells_, &loans_}) {
    while (!each->empty() && each->front().end <= now - kKept) each->pop_front();
  }
}

void LedgerFile::add(std::vector<Spell> ended, WallTime now) {
  forget(now);
  if (ended.empty() && not_stored_.empty()) return;
  for (const Spell& each : ended) keep(each);
  if (!records_.exists()) return;
  not_stored_.insert(not_stored_.end(), std::make_move_iterator(ended.begin()),
                     std::make_move_iterator(ended.end()));
  if (not_stored_.size() > kMost) {
    not_stored_.erase(not_stored_.begin(), not_stored_.end() - static_cast<std::ptrdiff_t>(kMost));
  }
  const auto all = [this] {
    std::vector<Spell> both(spells_.begin(), spells_.end());
    both.insert(both.end(), loans_.begin(), loans_.end());
    return ledger_record(both);
  };
  if (records_.keep([&] { return ledger_record(not_stored_); }, all)) not_stored_.clear();
}

}  // namespace vpfs::control
