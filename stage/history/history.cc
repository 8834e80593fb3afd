#include "stage/history/history.h"

#include <algorithm>
#include <utility>

namespace vpfs::stage {
namespace {

// Moves the busiest to the front. Returns how many those are.
template <typename Item>
std::size_t busiest_first(std::vector<Item>& items) {
  const std::size_t most = std::min(items.size(), HistoryLevel::kBusiest);
  if (most < items.size()) {
    std::ranges::nth_element(items, items.begin() + static_cast<std::ptrdiff_t>(most),
                             [](const Item& one, const Item& other) {
                               return one.measures.weight() > other.measures.weight();
                             });
  }
  return most;
}

}  // namespace

constexpr std::size_t History::bytes() {
  std::size_t sum = HistoryNames::kMost * sizeof(HistoryName);
  for (const Length& length : kLengths) {
    sum += HistoryLevel::bytes(length.spans) + HistoryNames::kMost * sizeof(std::uint16_t);
  }
  return sum + (kLengths.size() - 1) * kMostRows * sizeof(HistoryRow);
}

History::History()
    : levels_{HistoryLevel(kLengths[0].spans), HistoryLevel(kLengths[1].spans),
              HistoryLevel(kLengths[2].spans)} {
  static_assert(bytes() <= kBytes);
  for (Sum& sum : std::span(sums_).subspan(1)) {
    sum.row_of.assign(HistoryNames::kMost, kNoRow);
    sum.rows.reserve(kMostRows);
  }
}

void History::add(const Second& second, std::vector<Activity>& activities) {
  restored_.clear();
  ++seconds_;
  HistorySpan span = {.begin = second.begin,
                      .end = second.end,
                      .length = second.length,
                      .second = seconds_,
                      .rules = second.rules};
  for (const Activity& each : activities) span.cost += each.measures.of(Measure::cost);
  const std::size_t busiest = busiest_first(activities);
  std::vector<HistoryRow> rows;
  Measures others;
  for (std::size_t i = 0; i < activities.size(); ++i) {
    const Activity& each = activities[i];
    const HistoryNames::Number name =
        i < busiest ? names_.number_of(*each.reading, seconds_) : HistoryNames::kNone;
    if (name == HistoryNames::kNone) {
      others.merge(each.measures);
    } else {
      rows.push_back({.name = name, .measures = each.measures});
    }
  }
  keep(0, span, rows, others);
}

void History::keep(std::size_t length, const HistorySpan& span, std::span<const HistoryRow> rows,
                   const Measures& others) {
  levels_[length].add(span, rows, others);
  if (length + 1 < levels_.size()) {
    add_up(length + 1, span, rows, others);
  } else {
    ++minutes_ended_;
  }
}

void History::add_up(std::size_t length, const HistorySpan& span, std::span<const HistoryRow> rows,
                     const Measures& others) {
  Sum& sum = sums_[length];
  const bool is_first = sum.seconds == 0;
  sum.span = {.begin = is_first ? span.begin : sum.span.begin,
              .end = span.end,
              .length = (is_first ? Duration::zero() : sum.span.length) + span.length,
              .second = span.second,
              .rules = span.rules,
              .cost = (is_first ? 0 : sum.span.cost) + span.cost};
  for (const HistoryRow& row : rows) {
    std::uint16_t& index = sum.row_of[row.name];
    if (index == kNoRow && sum.rows.size() == kMostRows) {
      sum.others.merge(row.measures);
    } else if (index == kNoRow) {
      index = static_cast<std::uint16_t>(sum.rows.size());
      sum.rows.push_back(row);
    } else {
      sum.rows[index].measures.add(row.measures);
    }
  }
  sum.others.add(others);
  sum.seconds += kLengths[length - 1].seconds;
  if (sum.seconds >= kLengths[length].seconds) end_sum(length);
}

void History::end_sum(std::size_t length) {
  Sum& sum = sums_[length];
  for (const HistoryRow& row : sum.rows) sum.row_of[row.name] = kNoRow;
  const std::size_t busiest = busiest_first(sum.rows);
  for (const HistoryRow& row : std::span(sum.rows).subspan(busiest)) {
    sum.others.merge(row.measures);
  }
  keep(length, sum.span, std::span(sum.rows).first(busiest), sum.others);
  sum.rows.clear();
  sum.others = {};
  sum.seconds = 0;
}

void History::end_minute() {
  for (std::size_t length = 1; length < levels_.size(); ++length) {
    if (sums_[length].seconds > 0) end_sum(length);
  }
}

History::Minute History::minute(std::size_t before_the_last) const {
  const HistoryLevel& level = levels_.back();
  const std::size_t index = level.size() - 1 - before_the_last;
  Minute made = {.span = level.span(index), .rows = {}, .others = {}};
  std::vector<HistoryRow> rows;
  level.read(index, rows);
  for (const HistoryRow& row : std::span(rows).first(rows.size() - 1)) {
    const HistoryName* const name = this->name(row, made.span);
    made.rows.push_back(
        {.name = name == nullptr ? HistoryName() : *name, .measures = row.measures});
  }
  made.others = rows.back().measures;
  return made;
}

void History::restore(const Minute& minute) {
  was_restored_ = true;
  seconds_ += kLengths.back().seconds;
  HistorySpan span = minute.span;
  span.second = seconds_;
  std::vector<HistoryRow> rows;
  Measures others = minute.others;
  for (const Minute::Row& row : minute.rows) {
    HistoryNames::Number number = HistoryNames::kNone;
    if (row.name.info != nullptr) {
      const auto known = restored_.find(row.name.info.get());
      const HistoryName* const name =
          known == restored_.end() ? nullptr : names_.find(known->second, seconds_);
      if (name != nullptr && name->info == row.name.info) {
        number = known->second;
        names_.use(number, seconds_);
      } else {
        number = names_.add(row.name, seconds_).value_or(HistoryNames::kNone);
        restored_[row.name.info.get()] = number;
      }
    }
    if (number == HistoryNames::kNone || rows.size() == HistoryLevel::kBusiest) {
      others.merge(row.measures);
    } else {
      rows.push_back({.name = number, .measures = row.measures});
    }
  }
  levels_.back().add(span, rows, others);
}

std::size_t History::reaching(WallTime from) const {
  std::size_t length = 0;
  for (; length + 1 < levels_.size(); ++length) {
    const HistoryLevel& level = levels_[length];
    const bool has_all = !level.is_full() && !was_restored_;
    if (has_all || (level.size() > 0 && level.span(0).begin <= from)) break;
  }
  return length;
}

std::optional<WallTime> History::begin() const {
  for (std::size_t length = levels_.size(); length-- > 0;) {
    const HistoryLevel& level = levels_[length];
    if (level.size() > 0) return level.span(0).begin;
  }
  return std::nullopt;
}

std::uint64_t History::most_cost_per_second() const {
  std::uint64_t most = 0;
  // Seconds are too short: they have bursts.
  for (const HistoryLevel& level : std::span(levels_).subspan(1)) {
    for (std::size_t i = 0; i < level.size(); ++i) {
      most = std::max(most, level.span(i).cost_per_second());
    }
  }
  return most;
}

}  // namespace vpfs::stage
