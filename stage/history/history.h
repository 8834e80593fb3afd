#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "stage/history/level.h"
#include "stage/history/measures.h"
#include "stage/history/names.h"
#include "stage/history_reading.h"

namespace vpfs::stage {

// What a virtual PFS did in one second.
struct Activity {
  const HistoryReading* reading = nullptr;  // at the end of the second
  Measures measures = {};
  Loans loans = {};  // not kept: they are for a ledger
};

// What virtual PFSes did in the last 24 hours: each second for two minutes, each ten for an hour,
// each minute for a day. A span has the busiest, and one row for all others.
//
// Takes kBytes at most, and 2 bytes for each virtual PFS that there was at once. Belongs to one
// thread.
class History {
 public:
  struct Length {
    std::size_t seconds;  // of a span; a multiple of the one before
    std::size_t spans;
  };
  static constexpr std::array<Length, 3> kLengths = {{{.seconds = 1, .spans = 120},
                                                      {.seconds = 10, .spans = 360},
                                                      {.seconds = 60, .spans = 1440}}};

  struct Second {
    WallTime begin = {};
    WallTime end = {};
    Duration length = {};     // about a second
    std::uint64_t rules = 0;  // the version in force at its end
  };

  History();

  // Adds what was done in the second that just ended; reorders `activities`.
  void add(const Second& second, std::vector<Activity>& activities);

  // A minute, or the part of one that has ended, as a file keeps it. A name without `info` is that
  // of a row that has lost it.
  struct Minute {
    struct Row {
      HistoryName name;
      Measures measures;
    };
    HistorySpan span;
    std::vector<Row> rows;
    Measures others;
  };
  // Ends the minute before its time.
  void end_minute();
  // How many have ended, without those that were restored.
  [[nodiscard]] std::uint64_t minutes_ended() const { return minutes_ended_; }
  // How many are kept, and the one that ended so many before the last one. REQUIRES: it is kept.
  [[nodiscard]] std::size_t minutes() const { return levels_.back().size(); }
  [[nodiscard]] Minute minute(std::size_t before_the_last) const;
  // Takes on a minute of an earlier run, the oldest first. Rows of one name have the same `info`.
  // REQUIRES: no second was added.
  void restore(const Minute& minute);

  // Calls visit(span, rows) for spans that have a part between `from` and `to`, in the order of
  // time: in the shortest length that reaches back to `from`, and the newest end in shorter ones.
  // The last of `rows` is that of the others.
  template <typename Visitor>
  void read(WallTime from, WallTime to, Visitor&& visit) const {
    std::uint64_t done = 0;
    std::vector<HistoryRow> rows;
    for (std::size_t length = reaching(from) + 1; length-- > 0;) {
      const HistoryLevel& level = levels_[length];
      for (std::size_t i = 0; i < level.size(); ++i) {
        const HistorySpan& span = level.span(i);
        if (span.second <= done || span.end <= from || span.begin >= to) continue;
        level.read(i, rows);
        visit(span, rows);
        done = span.second;
      }
    }
  }
  // The beginning of what is known; nothing: no second has ended.
  [[nodiscard]] std::optional<WallTime> begin() const;
  // The most that was sent to the data server in ten seconds, or a minute; 0: not known yet.
  [[nodiscard]] std::uint64_t most_cost_per_second() const;
  // nullptr: the row is about others, or its virtual PFS is forgotten.
  [[nodiscard]] const HistoryName* name(const HistoryRow& row, const HistorySpan& span) const {
    return names_.find(row.name, span.second);
  }

  static constexpr std::size_t kBytes = std::size_t{8} << 20;

 private:
  // Spans of one length, summed up for the next.
  struct Sum {
    std::vector<HistoryRow> rows;
    std::vector<std::uint16_t> row_of;  // by name; kNoRow
    Measures others;
    HistorySpan span;
    std::size_t seconds = 0;
  };
  static constexpr std::uint16_t kNoRow = 0xffff;
  // That a sum has; what more virtual PFSes do goes to the others.
  static constexpr std::size_t kMostRows = HistoryNames::kMost / 2;

  // All that is reserved at once.
  [[nodiscard]] static constexpr std::size_t bytes();
  [[nodiscard]] std::size_t reaching(WallTime from) const;
  // The span ended: keeps it, and adds it to the next length.
  void keep(std::size_t length, const HistorySpan& span, std::span<const HistoryRow> rows,
            const Measures& others);
  void add_up(std::size_t length, const HistorySpan& span, std::span<const HistoryRow> rows,
              const Measures& others);
  // The sum for a span of that length is complete.
  void end_sum(std::size_t length);

  HistoryNames names_;
  std::array<HistoryLevel, kLengths.size()> levels_;
  std::array<Sum, kLengths.size()> sums_;  // that of the first length is not used
  std::uint64_t seconds_ = 0;              // that were added
  std::uint64_t minutes_ended_ = 0;
  bool was_restored_ = false;
  // The numbers of names that were restored, until the first second is added.
  std::map<const VirtualPfsInfo*, HistoryNames::Number> restored_;
};

}  // namespace vpfs::stage
