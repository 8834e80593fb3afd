#include "schedulers/policies/capacity_estimate.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/wide.h"

namespace vpfs {
namespace {
constexpr Duration kLeastSpan = std::chrono::milliseconds(100);
}  // namespace

void CapacityEstimate::observe(const Period& period) {
  if (settings_.configured > 0 || period.length <= Duration::zero()) return;
  span_.length += period.length;
  span_.done += period.done;
  span_.always_queued = span_.always_queued && period.always_queued;
  span_.waited_for_tokens = span_.waited_for_tokens || period.waited_for_tokens;
  if (span_.length < kLeastSpan || (span_.done == 0 && span_.always_queued)) return;
  learn(std::exchange(span_, {.length = {}, .done = 0, .always_queued = true}));
}

void CapacityEstimate::learn(const Period& span) {
  const Wide exact =
      Wide{span.done} * kNanosecondsPerSecond / static_cast<Wide>(span.length.count());
  const auto rate = static_cast<std::uint64_t>(std::min<Wide>(exact, settings_.most));
  const std::uint64_t rise = std::exchange(rise_, kFirstRise);
  if (span.waited_for_tokens) {
    measured_ = std::max(measured_, rate);
    measured_ += measured_ / rise;
    rise_ = std::max(rise / 2, kLargestRise);
  } else if (span.always_queued && measured_ > 0) {
    measured_ = measured_ - measured_ / 4 + rate / 4;
  } else {
    measured_ = std::max(measured_, rate);
  }
  measured_ = std::min(measured_, settings_.most);
}

std::uint64_t CapacityEstimate::value() const {
  if (settings_.configured > 0) return settings_.configured;
  if (measured_ == 0) return 0;
  return std::clamp(measured_, settings_.least, settings_.most);
}

std::string_view CapacityEstimate::source() const {
  if (settings_.configured > 0) return "configured";
  if (measured_ == 0) return "nothing measured yet";
  if (measured_ <= settings_.least) return "measured, at the lower limit";
  if (measured_ >= settings_.most) return "measured, at the upper limit";
  return "measured";
}

}  // namespace vpfs
