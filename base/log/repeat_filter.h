#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace vpfs {

// Decides which messages of a log are written, so that a message that repeats is counted instead.
//
// Messages are alike if they differ only in words that contain a digit (numbers, addresses, names
// such as "job-7"). The first different texts of alike messages are written, each text once; the
// others are counted. At the end of the period one summary tells their number and the last text,
// and the next period begins. So a message about one client hides that of another for one period at
// most. A forgotten kind of message counts as new.
//
// Allocates for summaries and for texts that are counted. Not thread-safe.
class RepeatFilter {
 public:
  struct Settings {
    std::size_t remembered = 32;  // kinds of messages; the one not seen for longest is forgotten
    std::size_t differing = 10;   // texts of one kind that are written in a period
    Duration period = std::chrono::minutes(1);
  };
  struct Summary {
    int level;
    std::string text;  // "disk full (repeated 1,234 times in 1 min)"

    bool operator==(const Summary&) const = default;
  };

  RepeatFilter() = default;
  explicit RepeatFilter(Settings settings) : settings_(settings) {}

  // Whether to write the message. Messages of different levels are never alike.
  [[nodiscard]] bool admit(int level, std::string_view text, TimePoint now);
  // What is to be written before the next message: summaries of periods that have ended, and of
  // kinds that were forgotten.
  [[nodiscard]] std::vector<Summary> take_due(TimePoint now);
  // The same for all that is counted, for the end of the program.
  [[nodiscard]] std::vector<Summary> take_all(TimePoint now);

 private:
  struct Kind {
    std::uint64_t pattern = 0;
    int level = 0;
    TimePoint since = {};  // of its period
    TimePoint last = {};
    std::vector<std::uint64_t> written;  // texts
    std::uint64_t counted = 0;
    std::uint64_t counted_text = 0;  // the last of them
    bool all_same = true;            // of those counted
    std::string example;
  };

  [[nodiscard]] Kind& make_room(TimePoint now);
  void summarize(const Kind& kind, TimePoint now);
  void end_period(Kind& kind, TimePoint now);
  [[nodiscard]] std::vector<Summary> take();

  Settings settings_;
  std::vector<Kind> kinds_;
  std::vector<Summary> summaries_;
};

}  // namespace vpfs
