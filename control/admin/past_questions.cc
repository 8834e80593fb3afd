#include "control/admin/past_questions.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/result.h"
#include "control/wire/protocol.h"

namespace vpfs::control {
namespace {

// Clocks of two hosts differ, and a span may end a little after the question.
constexpr std::chrono::seconds kAhead(2);
constexpr std::int64_t kMostSeconds = std::int64_t{1} << 40;

std::chrono::seconds seconds(std::uint64_t count) {
  return std::chrono::seconds(std::min(count, static_cast<std::uint64_t>(kMostSeconds)));
}

WallTime time(std::int64_t at) {
  return WallTime(std::chrono::seconds(std::clamp<std::int64_t>(at, 0, kMostSeconds)));
}

struct Time {
  WallTime from;
  WallTime to;
};

// Past and Ledger have the same fields for it.
template <typename Request>
std::expected<Time, Error> time_of(const Request& request, WallTime now) {
  if (request.back_seconds() > 0) {
    return Time{.from = now - seconds(request.back_seconds()), .to = now + kAhead};
  }
  const Time made = {.from = time(request.from_at()), .to = time(request.to_at())};
  if (made.from >= made.to) {
    return std::unexpected(make_error(Error::INVALID, "to_at", "expected a time after from_at"));
  }
  if (made.from > now + kAhead) {
    return std::unexpected(make_error(Error::INVALID, "from_at", "that time is yet to come"));
  }
  return made;
}

LedgerEntry::Cause cause_of(insight::Spell::Cause cause) {
  switch (cause) {
    case insight::Spell::Cause::limit:
      return LedgerEntry::LIMIT;
    case insight::Spell::Cause::traffic_class:
      return LedgerEntry::TRAFFIC_CLASS;
    case insight::Spell::Cause::loans:
      break;
  }
  return LedgerEntry::LOANS;
}

void fill(LedgerEntry& to, const insight::Spell& from) {
  to.set_name(from.name);
  to.set_jobid(from.jobid);
  to.set_rule(from.rule);
  to.set_cause(cause_of(from.cause));
  to.set_account(from.account);
  to.set_lent_cost(from.loans.lent);
  to.set_borrowed_cost(from.loans.borrowed);
  to.set_rate(from.rate);
  to.set_rules(from.rules);
  to.set_begin_at(seconds_since_epoch(from.begin));
  to.set_end_at(seconds_since_epoch(from.end));
  to.set_held_us(microseconds_of(from.held));
  to.set_bytes(from.bytes);
  to.set_operations(from.operations);
  to.set_longest_wait_us(microseconds_of(from.longest_wait));
}

}  // namespace

std::expected<insight::Past, Error> PastQuestions::read(const Past& request, WallTime now) const {
  const std::expected<Time, Error> time = time_of(request, now);
  VPFS_TRY(time);
  return insight::past_of(keeper_.history(), time->from, time->to);
}

std::expected<SeriesReply, Error> PastQuestions::series(const Series& request, WallTime now) const {
  constexpr std::uint32_t kMostLines = 128;
  constexpr std::uint32_t kMostPoints = 1440;
  const std::expected<Time, Error> time = time_of(request, now);
  VPFS_TRY(time);
  insight::SeriesSize size;
  if (request.lines() > 0) size.lines = std::min(request.lines(), kMostLines);
  if (request.points() > 0) size.points = std::min(request.points(), kMostPoints);
  SeriesReply made;
  fill(made, insight::series_of(keeper_.history(), time->from, time->to, size));
  if (const std::optional<WallTime> begin = keeper_.history().begin()) {
    made.set_known_from_at(seconds_since_epoch(*begin));
  }
  return made;
}

std::expected<insight::Past, Error> PastQuestions::read_for_own(const Past& request, WallTime now) {
  VPFS_TRY(count_for_own(now));
  return read(request, now);
}

std::expected<void, Error> PastQuestions::count_for_own(WallTime now) {
  if (second_ != now) answers_ = 0;
  second_ = now;
  if (answers_ == kForOwn) {
    return std::unexpected(make_error(Error::UNAVAILABLE, "",
                                      "too many users ask about the past: try again in a second"));
  }
  ++answers_;
  return {};
}

std::expected<LedgerReply, Error> PastQuestions::ledger(const Ledger& request, WallTime now,
                                                        const MayBeSeen& may_be_seen) const {
  const std::expected<Time, Error> time = time_of(request, now);
  VPFS_TRY(time);
  LedgerReply reply;
  const auto add = [&](const insight::Spell& spell, bool goes_on) {
    const bool is_asked =
        request.name().empty() || request.name() == spell.name || request.name() == spell.jobid;
    if (!is_asked || spell.end <= time->from || spell.begin >= time->to) return;
    if (!may_be_seen(spell)) return;
    LedgerEntry& to = *reply.add_entries();
    fill(to, spell);
    to.set_goes_on(goes_on);
  };
  for (const insight::Spell& each : keeper_.ledger().spells()) add(each, false);
  for (const insight::Spell& each : keeper_.ledger().loans()) add(each, false);
  for (const insight::Spell& each : keeper_.open_spells()) add(each, true);
  return reply;
}

PastReply PastQuestions::reply(const insight::Past& past, const PastChoice& choice) const {
  PastReply made;
  fill(made, past, choice);
  for (PastOf& each : *made.mutable_virtual_pfs()) {
    const std::optional<insight::Lag> lag = keeper_.lags().worst(each.name(), past.begin, past.end);
    if (!lag) continue;
    each.set_lag_cost(lag->lag);
    each.set_lag_bound_cost(lag->bound);
  }
  const stage::History& history = keeper_.history();
  if (const std::optional<WallTime> begin = history.begin()) {
    made.set_known_from_at(seconds_since_epoch(*begin));
  }
  made.set_most_cost_per_second(history.most_cost_per_second());
  return made;
}

void PastQuestions::add_entitlements(StatsReply& reply) const {
  const insight::EntitlementWatch& known = keeper_.entitlements();
  reply.set_not_busy(known.was_idle());
  for (VirtualPfs& each : *reply.mutable_virtual_pfs()) {
    const auto entitled =
        known.entitled({.app = AppId{each.id()}, .generation = each.generation()});
    if (entitled) each.set_entitled_cost(*entitled);
  }
}

}  // namespace vpfs::control
