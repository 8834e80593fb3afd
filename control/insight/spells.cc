#include "control/insight/spells.h"

#include <algorithm>

namespace vpfs::insight {
namespace {

using stage::Measure;
using stage::Measures;

Duration held_by(Spell::Cause cause, const Measures& measures) {
  switch (cause) {
    case Spell::Cause::limit:
      return measures.time(Measure::held_by_limit);
    case Spell::Cause::traffic_class:
      return measures.time(Measure::held_by_class);
    case Spell::Cause::loans:
      break;
  }
  return {};
}

bool is_in(Spell::Cause cause, const stage::Activity& activity, Duration second) {
  if (cause == Spell::Cause::loans) return activity.loans != Loans();
  const Duration held = held_by(cause, activity.measures);
  return held > Duration::zero() && held >= second / 10;
}

std::uint64_t bytes_of(const Measures& measures) {
  return measures.of(Measure::read_bytes) + measures.of(Measure::written_bytes);
}

Spell begin_of(const stage::HistoryReading& reading, Spell::Cause cause, WallTime begin) {
  Spell made;
  made.cause = cause;
  made.name = reading.info->name;
  made.jobid = reading.jobid;
  made.job_uid = reading.info->job_uid;
  made.account = reading.account;
  if (reading.rule != nullptr) made.rule = *reading.rule;
  // With a limit of operations too, nothing says which one holds it.
  const bool has_other = reading.info->declared != nullptr && reading.info->share().operations > 0;
  if (!has_other) made.rate = reading.limit.count;
  made.begin = begin;
  return made;
}

}  // namespace

void SpellWatch::add(const stage::History::Second& second, const stage::Activity& activity,
                     Spell::Cause cause, std::vector<Spell>& ended) {
  const stage::HistoryReading& reading = *activity.reading;
  const Measures& measures = activity.measures;
  const bool goes_on = is_in(cause, activity, second.length);
  auto known = open_.find({reading.id, cause});
  if (known == open_.end() && !goes_on) return;
  if (known != open_.end() && goes_on && known->second.info != reading.info.get()) {
    ended.push_back(std::move(known->second.spell));
    open_.erase(known);
    known = open_.end();
  }
  if (known == open_.end()) {
    Open begun;
    begun.spell = begin_of(reading, cause, second.begin);
    begun.info = reading.info.get();
    known = open_.emplace(Key(reading.id, cause), std::move(begun)).first;
  }
  Open& now = known->second;
  if (!goes_on) {
    now.quiet_bytes += bytes_of(measures);
    now.quiet_operations += measures.of(Measure::operations);
    return;
  }
  Spell& spell = now.spell;
  now.quiet = -1;  // add() counts this second too
  spell.end = second.end;
  spell.rules = second.rules;
  spell.held += held_by(cause, measures);
  if (cause == Spell::Cause::loans) spell.loans += activity.loans;
  spell.bytes += std::exchange(now.quiet_bytes, 0) + bytes_of(measures);
  spell.operations += std::exchange(now.quiet_operations, 0) + measures.of(Measure::operations);
  spell.longest_wait = std::max(spell.longest_wait, measures.time(Measure::longest_wait));
}

void SpellWatch::add(const stage::History::Second& second,
                     std::span<const stage::Activity> activities, std::vector<Spell>& ended) {
  for (const stage::Activity& each : activities) {
    add(second, each, Spell::Cause::limit, ended);
    add(second, each, Spell::Cause::traffic_class, ended);
    add(second, each, Spell::Cause::loans, ended);
  }
  for (auto each = open_.begin(); each != open_.end();) {
    const Spell& spell = each->second.spell;
    const bool is_long =
        each->first.second == Spell::Cause::loans && spell.end - spell.begin >= kLongestLoans;
    if (++each->second.quiet <= kQuiet && !is_long) {
      ++each;
      continue;
    }
    ended.push_back(std::move(each->second.spell));
    each = open_.erase(each);
  }
}

void SpellWatch::end_all(std::vector<Spell>& ended) {
  for (auto& [key, each] : open_) ended.push_back(std::move(each.spell));
  open_.clear();
}

std::vector<Spell> SpellWatch::open() const {
  std::vector<Spell> spells;
  spells.reserve(open_.size());
  for (const auto& [key, each] : open_) spells.push_back(each.spell);
  return spells;
}

}  // namespace vpfs::insight
