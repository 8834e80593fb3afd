#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace vpfs::allocation {

// No cap. It counts as nothing in the sum.
inline constexpr std::uint64_t kNoCap = ~std::uint64_t{0};

// The caps of one resource that may be in force, by pair.
//
// Each pair has up to three. `settled`: the last one that its stage has answered. `sent`: one that
// was sent and is not answered, so that either may be in force. `stale`: of a process of the stage
// that another one has followed; it may still run, so it counts beside them.
class CapLedger {
 public:
  void resize(std::size_t pairs) { rows_.resize(pairs); }

  void send(std::uint32_t pair, std::uint64_t cap) {
    rows_[pair].sent = cap;
    if (cap != kNoCap && !is_used_) is_used_ = true;
  }
  // The stage has applied what was sent.
  void settle(std::uint32_t pair);
  // The stage has refused what was sent.
  void withdraw(std::uint32_t pair) { rows_[pair].sent = kNoCap; }
  // The sent cap may be in force or not, and no answer will say which.
  void leave_open(std::uint32_t pair);
  // Another process of the stage has taken over. REQUIRES: nothing is sent.
  void make_stale(std::uint32_t pair);
  // Neither `settled` nor `sent` is in force.
  void release(std::uint32_t pair);
  void release_stale(std::uint32_t pair) { rows_[pair].stale = 0; }

  // There ever was a cap. Without one nothing needs to be looked up.
  [[nodiscard]] bool is_used() const { return is_used_; }
  [[nodiscard]] std::uint64_t settled(std::uint32_t pair) const { return rows_[pair].settled; }
  // The largest one of the present process that may be in force.
  [[nodiscard]] std::uint64_t own(std::uint32_t pair) const { return rows_[pair].own(); }
  [[nodiscard]] bool has_stale(std::uint32_t pair) const { return rows_[pair].stale > 0; }
  // The sum over all pairs, including those of former processes. Saturates.
  [[nodiscard]] std::uint64_t sum() const;

 private:
  [[nodiscard]] static std::uint64_t counted(std::uint64_t cap) { return cap == kNoCap ? 0 : cap; }

  struct Row {
    std::uint64_t settled = kNoCap;
    std::uint64_t sent = kNoCap;
    std::uint64_t stale = 0;

    [[nodiscard]] std::uint64_t own() const { return std::max(counted(settled), counted(sent)); }
  };

  std::vector<Row> rows_;
  bool is_used_ = false;
};

// The sum, or the largest number if that is too much.
[[nodiscard]] inline std::uint64_t add_saturating(std::uint64_t a, std::uint64_t b) {
  return a + std::min(b, ~std::uint64_t{0} - a);
}

// Divides what is free among raises. Each gets all that it wants if there is enough; else a share
// in proportion to it, rounded down, and the units that are left go to the first ones, one each.
// REQUIRES: `given` is as long as `wanted`.
void ration(std::uint64_t free, std::span<const std::uint64_t> wanted,
            std::span<std::uint64_t> given);

}  // namespace vpfs::allocation
