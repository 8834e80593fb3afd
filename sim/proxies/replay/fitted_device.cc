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

// When the number of requests at the server changes.
std::vector<std::pair<TimePoint, int>> changes_of(const RecordedLoad& load) {
  std::vector<std::pair<TimePoint, int>> changes;
  for (const RecordedIo& io : load.requests) {
    changes.emplace_back(std::max(io.sent, TimePoint()), 1);
    changes.emplace_back(std::max(io.end, TimePoint()), -1);
  }
  std::ranges::sort(changes);
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

}  // namespace

DeviceSettings fitted_device(const RecordedLoad& load) {
  constexpr double kFastest = 1e13;  // bytes per second
  Windows windows(load.length);
  int outstanding = 0;
  int most = 1;
  TimePoint since;
  for (const auto& [when, change] : changes_of(load)) {
    if (outstanding > 0) windows.add_busy(since, when);
    outstanding += change;
    most = std::max(most, outstanding);
    since = when;
  }
  for (const RecordedIo& io : load.requests) windows.add(io);
  const Fit found = fit(windows.all());
  const double bandwidth = found.byte > 0 ? std::min(1 / found.byte, kFastest) : kFastest;
  const double fixed = std::min(found.request * most, 3600.0);
  return {.bandwidth = {static_cast<std::uint64_t>(std::max(bandwidth, 1.0))},
          .per_request = Duration(std::llround(fixed * 1e9)),
          .parallelism = static_cast<std::uint64_t>(most)};
}

}  // namespace vpfs::sim
