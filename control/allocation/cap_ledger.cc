#include "control/allocation/cap_ledger.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/wide.h"

namespace vpfs::allocation {

void CapLedger::settle(std::uint32_t pair) {
  rows_[pair].settled = std::exchange(rows_[pair].sent, kNoCap);
}

void CapLedger::leave_open(std::uint32_t pair) {
  Row& row = rows_[pair];
  const bool has_any = row.settled != kNoCap || row.sent != kNoCap;
  row.settled = has_any ? row.own() : kNoCap;
  row.sent = kNoCap;
}

void CapLedger::make_stale(std::uint32_t pair) {
  Row& row = rows_[pair];
  row.stale = add_saturating(row.stale, counted(std::exchange(row.settled, kNoCap)));
}

void CapLedger::release(std::uint32_t pair) {
  rows_[pair].settled = kNoCap;
  rows_[pair].sent = kNoCap;
}

std::uint64_t CapLedger::sum() const {
  Wide sum = 0;
  for (const Row& row : rows_) sum += Wide{row.own()} + row.stale;
  return static_cast<std::uint64_t>(std::min(sum, Wide{~std::uint64_t{0}}));
}

void ration(std::uint64_t free, std::span<const std::uint64_t> wanted,
            std::span<std::uint64_t> given) {
  VPFS_ASSERT(given.size() == wanted.size());
  Wide sum = 0;
  for (const std::uint64_t each : wanted) sum += each;
  if (sum <= free) {
    std::ranges::copy(wanted, given.begin());
    return;
  }
  // Below one, so that each gets less than it wants, and by less than two units too little.
  const Wide ratio = (Wide{free} << 64) / sum;
  std::uint64_t left = free;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    given[i] = static_cast<std::uint64_t>(wanted[i] * ratio >> 64);
    left -= given[i];
  }
  while (left > 0) {
    for (std::size_t i = 0; i < wanted.size() && left > 0; ++i) {
      if (given[i] == wanted[i]) continue;
      ++given[i];
      --left;
    }
  }
}

}  // namespace vpfs::allocation
