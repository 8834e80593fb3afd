#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/wide.h"
#include "stage/history/measures.h"
#include "stage/history/names.h"
#include "stage/history/small_float.h"

namespace vpfs::stage {

// A stretch of time of a history.
struct HistorySpan {
  [[nodiscard]] std::uint64_t cost_per_second() const {
    const auto time = static_cast<std::uint64_t>(length.count());
    return time == 0 ? 0 : static_cast<std::uint64_t>(Wide{cost} * kNanosecondsPerSecond / time);
  }

  WallTime begin = {};
  WallTime end = {};
  Duration length = {};      // by the monotonic clock; `begin` and `end` may jump
  std::uint64_t second = 0;  // the last one in it, counted from the history's beginning
  std::uint64_t rules = 0;   // the version of the rules at its end
  std::uint64_t cost = 0;    // sent for all
};

// What one virtual PFS did in a span; kNone: all that were not among the busiest.
struct HistoryRow {
  HistoryNames::Number name = HistoryNames::kNone;
  Measures measures = {};
};

// The newest spans of one length, each with rows of the busiest virtual PFSes and one of the
// others. Memory is reserved at once, and touched as far as there are rows. Numbers are kept as
// SmallFloat has them.
class HistoryLevel {
 public:
  static constexpr std::size_t kBusiest = 128;

  explicit HistoryLevel(std::size_t spans);

  // Adds a span, and drops the oldest if there is no room. REQUIRES: at most kBusiest rows.
  void add(const HistorySpan& span, std::span<const HistoryRow> rows, const Measures& others);

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool is_full() const { return size_ == heads_.size(); }
  // The spans, the oldest first.
  [[nodiscard]] const HistorySpan& span(std::size_t index) const { return head(index).span; }
  // Its rows in `rows`; that of the others is the last one.
  void read(std::size_t index, std::vector<HistoryRow>& rows) const;

  // Bytes of so many spans.
  [[nodiscard]] static constexpr std::size_t bytes(std::size_t spans);

 private:
  // Slots are not kept where there are traffic classes (docs/schedulers.md), so one place has the
  // time of either. Where a reload has changed that within a span, it has both.
  struct Packed {
    std::uint16_t name;  // with kIsKeptSlot if the place is of a kept slot
    std::array<SmallFloat, kMeasures - 1> measures;
  };
  static constexpr std::uint16_t kIsKeptSlot = 0x8000;
  static_assert(HistoryNames::kMost < kIsKeptSlot - 1);
  static_assert(sizeof(Packed) == 30);
  // Rows are stored in blocks, so that spans with few rows take little memory.
  static constexpr std::size_t kBlockRows = 8;
  static constexpr std::size_t kBlocks = kBusiest / kBlockRows;
  using Block = std::array<Packed, kBlockRows>;
  using BlockNumber = std::uint16_t;
  struct Head {
    HistorySpan span;
    Packed others;
    std::uint8_t rows = 0;
    std::array<BlockNumber, kBlocks> blocks = {};
  };

  [[nodiscard]] static Packed packed(const HistoryRow& row);
  [[nodiscard]] static HistoryRow unpacked(const Packed& row);
  [[nodiscard]] const Head& head(std::size_t index) const {
    return heads_[(first_ + index) % heads_.size()];
  }
  void drop_oldest();

  std::vector<Head> heads_;  // a ring
  std::size_t first_ = 0;
  std::size_t size_ = 0;
  std::unique_ptr<Block[]> blocks_;
  std::vector<BlockNumber> free_;  // the last one is used first
};

constexpr std::size_t HistoryLevel::bytes(std::size_t spans) {
  return spans * (sizeof(Head) + kBlocks * (sizeof(Block) + sizeof(BlockNumber)));
}

}  // namespace vpfs::stage
