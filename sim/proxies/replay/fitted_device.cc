#include "sim/proxies/replay/fitted_device.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace vpfs::sim {
namespace {

struct Window {
  double busy = 0;  // seconds
  double requests = 0;
  double bytes = 0;
};

// Seconds for each request and byte.
struct Fit {
  double request = 0;
  double byte = 0;
};

// A request comes to the server, or has been there.
struct Change {
  TimePoint when;
  int requests = 0;  // 1 or -1
  // What is done of it in each second, if it is served evenly.
  double request_rate = 0;
  double byte_rate = 0;
};

std::vector<Change> changes_of(const RecordedLoad& load) {
  std::vector<Change> changes;
  for (const RecordedIo& io : load.requests) {
    const TimePoint from = std::max(io.sent, TimePoint());
    if (io.end <= from) continue;
    const double request_rate = 1 / in_seconds(io.end - io.sent);
    const double byte_rate = request_rate * static_cast<double>(io.size.count);
    changes.push_back(
        {.when = from, .requests = 1, .request_rate = request_rate, .byte_rate = byte_rate});
    changes.push_back(
        {.when = io.end, .requests = -1, .request_rate = -request_rate, .byte_rate = -byte_rate});
  }
  std::ranges::sort(changes, {},
                    [](const Change& change) { return std::pair(change.when, change.requests); });
  return changes;
}

class Windows {
 public:
  explicit Windows(Duration length)
      : width_(std::max(std::clamp<Duration>(length / 50, std::chrono::milliseconds(100),
                                             std::chrono::seconds(1)),
                        length / kMost)),
        all_(static_cast<std::size_t>(length / width_) + 1) {}

  // There were requests at the server.
  void add_busy(TimePoint from, TimePoint to) {
    each_part(from, to, [](Window& window, Duration part) { window.busy += in_seconds(part); });
  }
  // A request counts where it was served, as evenly as its time there.
  void add(const RecordedIo& io) {
    const TimePoint from = std::max(io.sent, TimePoint());
    const double whole = in_seconds(io.end - io.sent);
    const auto bytes = static_cast<double>(io.size.count);
    if (io.end <= from || whole <= 0) {
      Window& window = all_[index(io.end)];
      window.requests += 1;
      window.bytes += bytes;
      return;
    }
    each_part(from, io.end, [&](Window& window, Duration part) {
      window.requests += in_seconds(part) / whole;
      window.bytes += bytes * in_seconds(part) / whole;
    });
  }
  [[nodiscard]] const std::vector<Window>& all() const { return all_; }

 private:
  template <typename Visitor>
  void each_part(TimePoint from, TimePoint to, Visitor visit) {
    while (from < to) {
      const std::size_t at = index(from);
      const bool is_last = at + 1 == all_.size();
      const TimePoint end =
          is_last ? to : std::min(to, TimePoint() + width_ * static_cast<std::int64_t>(at + 1));
      visit(all_[at], end - from);
      from = end;
    }
  }
  [[nodiscard]] std::size_t index(TimePoint when) const {
    const auto at = std::max<std::int64_t>((when - TimePoint()) / width_, 0);
    return std::min(static_cast<std::size_t>(at), all_.size() - 1);
  }

  static constexpr int kMost = 100'000;  // windows

  Duration width_;
  std::vector<Window> all_;
};

double wrong_by(const Fit& fit, const std::vector<Window>& windows) {
  double sum = 0;
  for (const Window& each : windows) {
    const double wrong = each.busy - fit.request * each.requests - fit.byte * each.bytes;
    sum += wrong * wrong;
  }
  return sum;
}

// Neither is negative.
Fit fit(const std::vector<Window>& windows) {
  double nn = 0;
  double nb = 0;
  double bb = 0;
  double tn = 0;
  double tb = 0;
  Window sum;
  for (const Window& each : windows) {
    nn += each.requests * each.requests;
    nb += each.requests * each.bytes;
    bb += each.bytes * each.bytes;
    tn += each.busy * each.requests;
    tb += each.busy * each.bytes;
    sum.busy += each.busy;
    sum.requests += each.requests;
    sum.bytes += each.bytes;
  }
  const Fit by_bytes = {.request = 0, .byte = sum.bytes > 0 ? sum.busy / sum.bytes : 0};
  const Fit by_requests = {.request = sum.requests > 0 ? sum.busy / sum.requests : 0, .byte = 0};
  if (sum.bytes <= 0) return by_requests;
  const double determinant = nn * bb - nb * nb;
  // A mixture of sizes that is always the same tells nothing of what a request takes beside its
  // bytes.
  constexpr double kLeast = 1e-3;
  if (determinant < kLeast * nn * bb) return by_bytes;
  const Fit both = {.request = (tn * bb - tb * nb) / determinant,
                    .byte = (tb * nn - tn * nb) / determinant};
  if (both.request <= 0) return by_bytes;
  if (both.byte <= 0) return by_requests;
  constexpr double kMuchBetter = 0.5;
  return wrong_by(both, windows) < kMuchBetter * wrong_by(by_bytes, windows) ? both : by_bytes;
}

// What was done while so many requests were at the server (by that number).
std::vector<Window> levels_of(const std::vector<Change>& changes) {
  std::vector<Window> levels(1);
  std::size_t outstanding = 0;
  double request_rate = 0;
  double byte_rate = 0;
  TimePoint since;
  for (const Change& change : changes) {
    if (outstanding > 0) {
      const double time = in_seconds(change.when - since);
      levels[outstanding].busy += time;
      levels[outstanding].requests += time * request_rate;
      levels[outstanding].bytes += time * byte_rate;
    }
    outstanding += static_cast<std::size_t>(change.requests);
    request_rate += change.request_rate;
    byte_rate += change.byte_rate;
    if (outstanding == 0) request_rate = byte_rate = 0;  // no rounding error stays
    if (outstanding >= levels.size()) levels.resize(outstanding + 1);
    since = change.when;
  }
  return levels;
}

// Slots, each of which has a request for so many seconds.
struct Slots {
  std::size_t count = 1;
  double request = 0;
  double wrong = 0;  // by the sum of squares, in seconds
};

// With n requests there, min(n, count) slots are in use.
Slots slots_of(std::size_t count, const std::vector<Window>& levels, double byte) {
  const auto for_each = [&](auto visit) {
    for (std::size_t n = 1; n < levels.size(); ++n) {
      const Window& level = levels[n];
      if (level.busy <= 0) continue;
      visit(std::max(level.busy - byte * level.bytes, 0.0),
            level.requests / static_cast<double>(std::min(n, count)));
    }
  };
  double turns_squared = 0;
  double product = 0;
  for_each([&](double busy, double turns) {
    turns_squared += turns * turns;
    product += busy * turns;
  });
  Slots slots = {.count = count, .request = turns_squared > 0 ? product / turns_squared : 0};
  for_each([&](double busy, double turns) {
    const double wrong = busy - slots.request * turns;
    slots.wrong += wrong * wrong;
  });
  return slots;
}

// The best number of slots. If several are as good, such as below the only number of requests that
// was seen, the largest: a request alone would not be served faster than it was.
Slots best_slots(const std::vector<Window>& levels, double byte) {
  constexpr std::size_t kEach = 64;  // up to there all numbers are tried
  constexpr double kNothing = 1e-3;  // of the busy time
  double busy = 0;
  for (const Window& level : levels) busy += level.busy;
  const std::size_t most = std::max<std::size_t>(levels.size() - 1, 1);
  std::vector<Slots> tried;
  for (std::size_t count = 1; count < most; count += count < kEach ? 1 : count / 8) {
    tried.push_back(slots_of(count, levels, byte));
  }
  tried.push_back(slots_of(most, levels, byte));
  const double least = std::ranges::min_element(tried, {}, &Slots::wrong)->wrong;
  const double most_wrong = least + kNothing * busy * kNothing * busy;
  Slots best;
  for (const Slots& each : tried) {
    if (each.wrong <= most_wrong) best = each;
  }
  return best;
}

}  // namespace

DeviceSettings fitted_device(const RecordedLoad& load) {
  constexpr double kFastest = 1e13;  // bytes per second
  Windows windows(load.length);
  const std::vector<Change> changes = changes_of(load);
  int outstanding = 0;
  TimePoint since;
  for (const Change& change : changes) {
    if (outstanding > 0) windows.add_busy(since, change.when);
    outstanding += change.requests;
    since = change.when;
  }
  for (const RecordedIo& io : load.requests) windows.add(io);
  const Fit found = fit(windows.all());
  const double bandwidth = found.byte > 0 ? std::min(1 / found.byte, kFastest) : kFastest;
  const Slots slots = found.request > 0 ? best_slots(levels_of(changes), found.byte) : Slots();
  return {.bandwidth = {static_cast<std::uint64_t>(std::max(bandwidth, 1.0))},
          .per_request = Duration(std::llround(std::min(slots.request, 3600.0) * 1e9)),
          .parallelism = slots.count};
}

}  // namespace vpfs::sim
