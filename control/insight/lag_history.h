#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "base/clock.h"
#include "control/insight/lag_watch.h"

namespace vpfs::insight {

// The worst lag of each virtual PFS in each ten minutes of the last 24 hours. Takes a few MiB at
// most.
class LagHistory {
 public:
  static constexpr std::chrono::minutes kSpan{10};
  static constexpr std::chrono::hours kKept{24};
  static constexpr std::size_t kMostSpans = kKept / kSpan + 1;
  static constexpr std::size_t kMostNames = 256;  // in a span: those with the worst

  // A second ended at that time.
  void add(WallTime end, std::span<const NamedLag> lags);

  // That which came nearest to its bound, or was the furthest beyond it, in the spans that have a
  // part between `from` and `to`; nothing: it was not compared with another in them.
  [[nodiscard]] std::optional<Lag> worst(const std::string& name, WallTime from, WallTime to) const;

 private:
  struct Span {
    WallTime begin = {};
    WallTime end = {};  // of its last second
    std::map<std::string, Lag, std::less<>> worst;
  };

  std::deque<Span> spans_;  // the oldest first
};

}  // namespace vpfs::insight
