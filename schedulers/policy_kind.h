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
  // Settings of single policies: EdfSettings, AdapTbfSettings, and so on.
  OwnSettings own = {};

  bool operator==(const SchedulerSettings&) const = default;
};

// Fields of a Share that several policies use. Every policy accepts a weight.
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

// A word of a share that only one policy knows. Share::own has its value, an integer.
struct ShareWord {
  std::string_view name;
  std::uint64_t least = 0;
  std::uint64_t most = UINT64_MAX;
  // The weight is the value for a share without the word.
  bool replaces_weight = false;
};

// What the configuration and status need to know of one policy. The policy's own files define it;
// the registry lists it.
struct PolicyKind {
  std::string_view name;  // in configurations
  ShareFields share_fields = {};
  std::span<const ShareWord> share_words = {};
  // What a coordinator can do with it: limit flows (Policy::set_limits), and tell them what they
  // got elsewhere. With one queue for all flows (`fifo`) a limit would hold them all; promises
  // (`edf`) and lent tokens (`adaptbf`) would not be kept under a limit from outside.
  bool caps = false;
  bool elsewhere = false;
  // The default cost of a request beside its bytes. The default stands for the bytes that a real
  // server could move while it handles a request without data: OrangeFS 2.10 with data in memory
  // shows 110 KiB for reads and 150 KiB for writes, and slower servers show less
  // (docs/schedulers.md).
  Bytes per_request = {64 * kKiB};

  std::unique_ptr<Policy> (*make)(const SchedulerSettings& settings, RateLimits& limits,
                                  Scheduler::Part part);
  // Reads and checks the policy's keys of the mapping `scheduler`: by custom one mapping with the
  // policy's name. It is called whether the policy is chosen or not, after depth and classes were
  // read. nullptr: the policy has no settings.
  void (*read)(ConfigReader& scheduler, SchedulerSettings& settings, bool is_chosen) = nullptr;
  // Describes the settings in a line for people; "": there is nothing to say.
  std::string (*summary)(const SchedulerSettings& settings) = nullptr;

  [[nodiscard]] bool knows(ShareField field) const { return share_fields.has(field); }
  [[nodiscard]] bool knows(std::string_view share_word) const {
    return std::ranges::find(share_words, share_word, &ShareWord::name) != share_words.end();
  }
};

}  // namespace vpfs
