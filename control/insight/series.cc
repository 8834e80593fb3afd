#include "control/insight/series.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

namespace vpfs::insight {
namespace {

using stage::HistoryRow;
using stage::HistorySpan;
using stage::Measures;

// A row that no line is for.
constexpr std::size_t kOthers = ~std::size_t{0};
// Spans that are at most so far apart follow each other.
constexpr auto kNear = std::chrono::seconds(5);

class SeriesReader {
 public:
  SeriesReader(const stage::History& history, WallTime from, WallTime to, SeriesSize size)
      : history_(history), from_(from), to_(to), size_(size) {}

  Series take() {
    choose();
    history_.read(from_, to_, [this](const HistorySpan& span, const std::vector<HistoryRow>& rows) {
      begin_point(span);
      for (const HistoryRow& row : rows) merge(line_of(row, span), row.measures);
    });
    return std::move(series_);
  }

 private:
  // The busiest get a line. All points are of one length, except the last one.
  void choose() {
    std::vector<std::uint64_t> weights(stage::HistoryNames::kMost);  // by number
    std::map<std::string, std::uint64_t, std::less<>> by_name;
    Duration length = {};
    history_.read(from_, to_, [&](const HistorySpan& span, const std::vector<HistoryRow>& rows) {
      length += span.length;
      for (const HistoryRow& row : rows) {
        const stage::HistoryName* const name = history_.name(row, span);
        if (name == nullptr) continue;
        if (weights[row.name] == 0) names_[row.name] = &name->info->name;
        weights[row.name] += row.measures.weight();
      }
    });
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (names_[i] != nullptr) by_name[*names_[i]] += weights[i];
    }
    std::vector<std::pair<std::string, std::uint64_t>> order(by_name.begin(), by_name.end());
    std::ranges::sort(order, [](const auto& one, const auto& other) {
      return one.second != other.second ? one.second > other.second : one.first < other.first;
    });
    order.resize(std::min(order.size(), size_.lines));
    std::map<std::string_view, std::size_t> lines;
    for (auto& [name, weight] : order) series_.lines.push_back({.name = std::move(name), .at = {}});
    for (std::size_t i = 0; i < series_.lines.size(); ++i) lines.emplace(series_.lines[i].name, i);
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const auto line = names_[i] == nullptr ? lines.end() : lines.find(*names_[i]);
      lines_[i] = line == lines.end() ? kOthers : line->second;
    }
    least_ = length / static_cast<std::int64_t>(size_.points);
  }

  void begin_point(const HistorySpan& span) {
    // To the nearest span: seconds are not all of one length. None goes over a time without spans,
    // when the program was down.
    const bool is_near = span.begin - std::exchange(end_, span.end) < kNear;
    const bool goes_on = is_near && !series_.points.empty() &&
                         series_.points.back().length + span.length / 2 <= least_;
    if (goes_on) {
      series_.points.back().length += span.length;
      return;
    }
    series_.points.push_back({.begin = span.begin, .length = span.length});
    for (Series::Line& line : series_.lines) line.at.emplace_back();
    series_.others.at.emplace_back();
  }

  [[nodiscard]] std::size_t line_of(const HistoryRow& row, const HistorySpan& span) const {
    return history_.name(row, span) == nullptr ? kOthers : lines_[row.name];
  }

  // Sums over all rows, whether of the same span or a later one.
  void merge(std::size_t line, const Measures& measures) {
    Series::Line& to = line == kOthers ? series_.others : series_.lines[line];
    to.at.back().add(measures);
  }

  const stage::History& history_;
  const WallTime from_;
  const WallTime to_;
  const SeriesSize size_;
  Series series_;
  // By the number of a name. A number is one name in all rows that still have theirs.
  std::vector<const std::string*> names_ =
      std::vector<const std::string*>(stage::HistoryNames::kMost);
  std::vector<std::size_t> lines_ = std::vector<std::size_t>(stage::HistoryNames::kMost);
  Duration least_ = {};  // of a point
  WallTime end_ = {};    // of the last span
};

}  // namespace

Series series_of(const stage::History& history, WallTime from, WallTime to, SeriesSize size) {
  return SeriesReader(history, from, to, size).take();
}

}  // namespace vpfs::insight
