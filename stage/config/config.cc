#include "stage/config/config.h"

#include <fmt/format.h>

#include "base/check.h"

namespace vpfs::stage {

const PolicyKind& policy_of(const Config& config) {
  const PolicyKind* const found = find_policy(config.policy, config.policies);
  VPFS_ASSERT(found != nullptr);
  return *found;
}

void read_stage_limits(ConfigReader& limits, Config& config) {
  std::uint64_t count = config.most_virtual_pfs;
  if (limits.get("virtual_pfs", &count, 1, 1'000'000)) config.most_virtual_pfs = count;
  limits.get("idle", &config.idle, std::chrono::seconds(1), std::chrono::hours(24 * 365));
  if (limits.is("max_held_per_client", "off")) {
    config.client_limits.enabled = false;
  } else if (!limits.is("max_held_per_client", "auto") &&
             limits.get("max_held_per_client", &count, 1, 1'000'000)) {
    config.client_limits.most = count;
  }
}

void read_fallback(ConfigReader& control, Config& config) {
  std::string text;
  if (!control.get("fallback", &text)) return;
  if (text == "configured" || text == "last") {
    config.fallback = {.mode = text == "last" ? Fallback::Mode::last : Fallback::Mode::configured};
    return;
  }
  const Result<BytesPerSecond> rate = parse_rate(text);
  if (rate && rate->count >= kKiB && rate->count <= Share::kMaxRate) {
    config.fallback = {.mode = Fallback::Mode::rate, .rate = *rate};
  } else {
    control.report("fallback",
                   fmt::format("\"{}\" is not a fallback: expected configured, last, or a "
                               "rate of at least 1 KiB/s such as 100 MiB/s",
                               text));
  }
}

void read_longest_delay(ConfigReader& control, Config& config) {
  std::string text;
  if (!control.get("longest_delay", &text) || text == "auto") return;
  Duration delay = {};
  if (control.get("longest_delay", &delay, std::chrono::milliseconds(1), std::chrono::hours(1))) {
    config.longest_delay = delay;
  }
}

std::uint8_t default_class(const Config& config) {
  const std::size_t count = config.scheduler.classes.classes.size();
  return static_cast<std::uint8_t>(count == 0 ? 0 : count - 1);
}

}  // namespace vpfs::stage
