#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "schedulers/limits.h"
#include "schedulers/policy.h"
#include "stage/config/fallback.h"
#include "stage/held.h"

namespace vpfs::stage {

// Orders the cycles of all coordinators that there ever were.
struct Epoch {
  std::uint64_t term = 0;
  std::uint64_t sequence = 0;

  auto operator<=>(const Epoch&) const = default;
};

// What a coordinator allows one virtual PFS.
struct Allocation {
  VirtualPfsId id;
  Limits limits;
  // The cost that all other stages ever did for it. Nothing: not told.
  std::optional<Cost> elsewhere_total = std::nullopt;
};

// A cycle of a coordinator, without its allocations.
struct Cycle {
  Epoch epoch;
  // From when the stage gets it. Zero takes back what was allocated: the lease ends at once.
  Duration lease = {};
  bool complete = false;  // virtual PFSes that are not in it lose their limits
};

// What became of a cycle. One that is not applied changes nothing.
enum class CycleResult : std::uint8_t {
  applied,
  outdated,     // a cycle of this epoch or a later one was applied before
  unsupported,  // the policy cannot do something that it asks for
};

// What coordinators have allocated to the virtual PFSes of a stage, and for how long. Stage gives
// it to the schedulers.
//
// The lease counts from the last applied cycle. When it has ended, later cycles with a newer epoch
// are applied as before, and those that are not complete leave what the fallback has set.
//
// Service elsewhere comes as totals. The difference to the total before counts, so a cycle that got
// lost costs nothing. The first total of a virtual PFS in a term is the base and counts as nothing.
// So is the first one after a lease has ended: until then the stage was on its own, which is not a
// debt. A total that is smaller than the one before is ignored.
class Allocations {
 public:
  // Counts that only grow.
  struct Counts {
    std::uint64_t applied = 0;
    std::uint64_t outdated = 0;
    std::uint64_t unsupported = 0;
    std::uint64_t unknown = 0;           // allocations to virtual PFSes that are not there
    std::uint64_t lease_ends = 0;        // by time, not taken back
    std::uint64_t totals_decreased = 0;  // and were ignored
    std::uint64_t totals_cut = 0;        // differences above kMaxCost, of which that much counted
  };

  // Whether a cycle of that epoch is outdated; counts it.
  [[nodiscard]] bool refuses(Epoch epoch);
  void refuse_unsupported() { ++counts_.unsupported; }
  void begin(const Cycle& cycle, TimePoint now);
  // Whether the cycle is the last one and its lease has not ended.
  [[nodiscard]] bool is_current(Epoch epoch) const { return in_force() && epoch_ == epoch; }

  // Marks the virtual PFS as part of this cycle. Returns whether its limits changed.
  bool set_limits(AppId app, const Limits& limits);
  // Fetches what set_limits() will need into the cache.
  void prefetch(AppId app) const {
    if (index(app) < rows_.size()) __builtin_prefetch(&rows_[index(app)]);
  }
  void count_unknown() { ++counts_.unknown; }
  // What a total adds to the service elsewhere. Nothing: it is ignored.
  [[nodiscard]] std::optional<Cost> elsewhere(AppId app, Cost total);
  // The sum of what elsewhere() has returned for a virtual PFS.
  [[nodiscard]] Cost served_elsewhere(AppId app) const {
    return index(app) < rows_.size() ? rows_[index(app)].elsewhere : 0;
  }
  [[nodiscard]] bool was_mentioned(AppId app) const { return rows_[index(app)].cycle == cycle_; }

  // The lease has ended: its time is over, or the coordinator has taken it back.
  void end();
  void count_lease_end() { ++counts_.lease_ends; }
  // Drops all that is known of a virtual PFS that is removed or retired.
  void forget(AppId app);

  // The last applied cycle's.
  [[nodiscard]] std::optional<Epoch> epoch() const { return epoch_; }
  [[nodiscard]] bool in_force() const { return lease_end_ != kNever; }
  // When the lease ends; kNever when none is in force.
  [[nodiscard]] TimePoint lease_end() const { return lease_end_; }
  // The limits of a virtual PFS, those of the fallback among them.
  [[nodiscard]] Limits limits(AppId app) const;
  // All virtual PFSes that have limits, in any order.
  [[nodiscard]] const std::vector<AppId>& limited() const { return limited_; }
  [[nodiscard]] const Counts& counts() const { return counts_; }

  // For a successor: the lease, and the row of one virtual PFS, whose limits are set apart.
  template <typename Archive>
  void archive(Archive& fields) {
    Epoch epoch = epoch_.value_or(Epoch{});
    bool has_epoch = epoch_.has_value();
    fields("has_epoch", has_epoch);
    fields("term", epoch.term);
    fields("sequence", epoch.sequence);
    if constexpr (Archive::kReads) epoch_ = has_epoch ? std::optional(epoch) : std::nullopt;
    fields("lease_end", lease_end_);
    fields("cycle", cycle_);
    fields("base", base_);
    fields("applied", counts_.applied);
    fields("outdated", counts_.outdated);
    fields("unsupported", counts_.unsupported);
    fields("unknown", counts_.unknown);
    fields("lease_ends", counts_.lease_ends);
    fields("totals_decreased", counts_.totals_decreased);
    fields("totals_cut", counts_.totals_cut);
  }
  template <typename Archive>
  void archive_row(AppId app, Archive& fields) {
    Row& of = row(app);
    fields("mentioned_in", of.cycle);
    fields("base", of.base);
    fields("total", of.total);
  }

 private:
  static constexpr std::uint32_t kNowhere = 0xffffffff;
  struct Row {
    Limits limits;
    std::uint64_t cycle = 0;         // number of the last one that it was part of
    std::uint64_t base = 0;          // number of the base of `total`; zero: none
    Cost total = 0;                  // the last one that was told
    Cost elsewhere = 0;              // the sum of the differences
    std::uint32_t place = kNowhere;  // in limited_
  };

  static std::size_t index(AppId app) { return std::to_underlying(app); }
  Row& row(AppId app);
  void list(AppId app);
  void unlist(AppId app);

  std::optional<Epoch> epoch_;
  TimePoint lease_end_ = kNever;
  std::uint64_t cycle_ = 0;  // number of the last applied one
  std::uint64_t base_ = 1;   // number of the present base of totals
  std::vector<Row> rows_;    // by AppId
  std::vector<AppId> limited_;
  Counts counts_;
};

}  // namespace vpfs::stage
