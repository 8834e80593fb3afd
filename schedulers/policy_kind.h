#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/config_reader.h"
#include "base/units.h"
#include "schedulers/own_settings.h"
#include "schedulers/scheduler.h"

namespace vpfs {

struct SchedulerSettings {
  Depth depth = {};
  std::optional<AutoDepth> auto_depth = {};
  TrafficClasses classes = {};
  // Of the single policies: EdfSettings, AdapTbfSettings, and so on.
  OwnSettings own = {};

  bool operator==(const SchedulerSettings&) const = default;
};

// What several policies may make of a Share; every policy accepts a weight.
enum class ShareField : std::uint8_t {
  rate,        // and burst
  operations,  // and burst_operations
  min,
  realtime,
  rank,
  latency,
  finish,
};

class ShareFields {
 public:
  constexpr ShareFields(std::initializer_list<ShareField> fields) {
    for (const ShareField each : fields) set_ |= bit(each);
  }
  [[nodiscard]] constexpr bool has(ShareField field) const { return (set_ & bit(field)) != 0; }

 private:
  static constexpr std::uint32_t bit(ShareField field) {
    return std::uint32_t{1} << std::to_underlying(field);
  }
  std::uint32_t set_ = 0;
};

// A word of a share that only one policy knows; Share::own has its value, an integer.
struct ShareWord {
  std::string_view name;
  std::uint64_t least = 0;
  std::uint64_t most = UINT64_MAX;
  // A share without the word has its weight for the value.
  bool replaces_weight = false;
};

// What the configuration and status need to know of one policy. The policy's own files define it;
// the registry lists it.
struct PolicyKind {
  std::string_view name;  // in configurations
  ShareFields share_fields = {};
  std::span<const ShareWord> share_words = {};
  // What a request costs beside its bytes, unless the configuration says it. What a request without
  // data takes of a real server, in bytes that it could move meanwhile: OrangeFS 2.10 with data in
  // memory shows 110 KiB for reads and 150 KiB for writes, and servers that move data more slowly
  // show less (docs/schedulers.md).
  Bytes per_request = {64 * kKiB};

  std::unique_ptr<Policy> (*make)(const SchedulerSettings& settings, RateLimits& limits,
                                  Scheduler::Part part);
  // Reads and checks the policy's keys of the mapping `scheduler`, by custom a mapping of the
  // policy's name, whether the policy is chosen or not. Depth and classes have been read. Nothing:
  // it has no settings.
  void (*read)(ConfigReader& scheduler, SchedulerSettings& settings) = nullptr;
  // A line for people about the settings; "": there is nothing to say.
  std::string (*summary)(const SchedulerSettings& settings) = nullptr;

  [[nodiscard]] bool knows(ShareField field) const { return share_fields.has(field); }
  [[nodiscard]] bool knows(std::string_view share_word) const {
    return std::ranges::find(share_words, share_word, &ShareWord::name) != share_words.end();
  }
};

}  // namespace vpfs
