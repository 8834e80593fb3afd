#include "stage/history/level.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace vpfs::stage {
namespace {
constexpr std::size_t kKeptSlot = std::to_underlying(Measure::held_by_kept_slot);
}

HistoryLevel::HistoryLevel(std::size_t spans)
    : heads_(spans),
      blocks_(std::make_unique_for_overwrite<Block[]>(spans * kBlocks)),
      free_(spans * kBlocks) {
  VPFS_ASSERT(free_.size() <= std::size_t{UINT16_MAX} + 1);
  // The first block is the last here.
  for (std::size_t i = 0; i < free_.size(); ++i) {
    free_[i] = static_cast<BlockNumber>(free_.size() - 1 - i);
  }
}

HistoryLevel::Packed HistoryLevel::packed(const HistoryRow& row) {
  Measures measures = row.measures;
  std::uint64_t& by_class = measures.of(Measure::held_by_class);
  const std::uint64_t by_kept_slot = measures.of(Measure::held_by_kept_slot);
  const bool is_kept_slot = by_kept_slot > by_class;
  by_class += by_kept_slot;
  Packed made;
  made.name = row.name & ~kIsKeptSlot;
  if (is_kept_slot) made.name |= kIsKeptSlot;
  std::size_t place = 0;
  for (std::size_t i = 0; i < kMeasures; ++i) {
    if (i != kKeptSlot) made.measures[place++] = SmallFloat(measures[i]);
  }
  return made;
}

HistoryRow HistoryLevel::unpacked(const Packed& row) {
  const std::uint16_t number = row.name & ~kIsKeptSlot;
  constexpr std::uint16_t kNone = HistoryNames::kNone & ~kIsKeptSlot;
  HistoryRow made = {.name = number == kNone ? HistoryNames::kNone : number, .measures = {}};
  std::size_t place = 0;
  for (std::size_t i = 0; i < kMeasures; ++i) {
    if (i != kKeptSlot) made.measures[i] = row.measures[place++].value();
  }
  if ((row.name & kIsKeptSlot) != 0) {
    std::swap(made.measures[kKeptSlot], made.measures.of(Measure::held_by_class));
  }
  return made;
}

void HistoryLevel::drop_oldest() {
  const Head& oldest = heads_[first_];
  for (std::size_t block = 0; block * kBlockRows < oldest.rows; ++block) {
    free_.push_back(oldest.blocks[block]);
  }
  first_ = (first_ + 1) % heads_.size();
  --size_;
}

void HistoryLevel::add(const HistorySpan& span, std::span<const HistoryRow> rows,
                       const Measures& others) {
  VPFS_ASSERT(rows.size() <= kBusiest);
  if (is_full()) drop_oldest();
  Head& head = heads_[(first_ + size_++) % heads_.size()];
  head.span = span;
  head.others = packed({.name = HistoryNames::kNone, .measures = others});
  head.rows = static_cast<std::uint8_t>(rows.size());
  for (std::size_t row = 0; row < rows.size(); ++row) {
    BlockNumber& block = head.blocks[row / kBlockRows];
    if (row % kBlockRows == 0) {
      block = free_.back();
      free_.pop_back();
    }
    blocks_[block][row % kBlockRows] = packed(rows[row]);
  }
}

void HistoryLevel::read(std::size_t index, std::vector<HistoryRow>& rows) const {
  const Head& head = this->head(index);
  rows.clear();
  for (std::size_t row = 0; row < head.rows; ++row) {
    const Block& block = blocks_[head.blocks[row / kBlockRows]];
    rows.push_back(unpacked(block[row % kBlockRows]));
  }
  rows.push_back(unpacked(head.others));
}

}  // namespace vpfs::stage
