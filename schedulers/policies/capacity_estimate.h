#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "base/clock.h"
#include "schedulers/request.h"

namespace vpfs {

// Learns how much cost a data server does in a second from what it does under load.
//
// Periods are merged into spans of at least a tenth of a second, and under load a span lasts until
// something was done: a shorter time shows when requests end, not how fast they are. A span in
// which requests were always queued and none waited for tokens shows the server's own speed, and
// the estimate follows it. If requests waited for tokens, the server might have done more, so the
// estimate rises: by 1/64 at first, then by twice as much each time, up to an eighth, until the
// server is the limit. Other spans only show that the server can do at least what it did.
class CapacityEstimate {
 public:
  struct Settings {
    std::uint64_t configured = 0;  // cost/s; zero: measured, between the limits
    std::uint64_t least = 1 << 20;
    std::uint64_t most = std::uint64_t{1} << 40;

    bool operator==(const Settings&) const = default;
  };
  // What one period showed.
  struct Period {
    Duration length;
    Cost done = 0;
    bool always_queued = false;
    bool waited_for_tokens = false;
  };

  explicit CapacityEstimate(Settings settings) : settings_(settings) {}

  void observe(const Period& period);
  // In cost/s; zero while nothing is known.
  [[nodiscard]] std::uint64_t value() const;
  template <typename Archive>
  void archive(Archive& fields) {
    fields("span_length", span_.length);
    fields("span_done", span_.done);
    fields("span_always_queued", span_.always_queued);
    fields("span_waited_for_tokens", span_.waited_for_tokens);
    fields("measured", measured_);
    fields("rise", rise_);
    if constexpr (Archive::kReads) rise_ = std::max<std::uint64_t>(rise_, 1);
  }

  // "configured", "measured", that it is at one of the limits, or that nothing is measured yet.
  [[nodiscard]] std::string_view source() const;

 private:
  static constexpr std::uint64_t kFirstRise = 64;
  static constexpr std::uint64_t kLargestRise = 8;

  void learn(const Period& span);

  Settings settings_;
  Period span_ = {.length = {}, .done = 0, .always_queued = true};
  std::uint64_t measured_ = 0;
  std::uint64_t rise_ = kFirstRise;  // measured_ rises by 1 / rise_ next
};

}  // namespace vpfs
