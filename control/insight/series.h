#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/clock.h"
#include "stage/history/history.h"

namespace vpfs::insight {

// What virtual PFSes did, point by point.
struct Series {
  struct Point {
    WallTime begin = {};
    Duration length = {};
  };
  struct Line {
    std::string name;
    std::vector<stage::Measures> at;  // one for each point
  };
  std::vector<Point> points;  // in the order of time
  std::vector<Line> lines;    // the busiest first
  Line others;                // all but those, without a name
};

// At most this many lines beside that of the others, and about so many points. REQUIRES: both are
// above 0.
struct SeriesSize {
  std::size_t points = 240;
  std::size_t lines = 12;
};

// What a history knows of the time between `from` and `to`: its spans, or several of them together
// where there would be too many points.
[[nodiscard]] Series series_of(const stage::History& history, WallTime from, WallTime to,
                               SeriesSize size);

}  // namespace vpfs::insight
