#include "schedulers/flow_tournament.h"

#include <algorithm>
#include <utility>

namespace vpfs {
void FlowTournament::grow(std::size_t flows) {
  if (flows <= flows_) return;
  flows = std::max(flows, flows_ + flows_ / 2);
  const std::size_t inner = (flows - 1 + kChildren - 2) / (kChildren - 1);
  const std::size_t first_leaf = kRoot + inner;
  std::vector<Block> before((first_leaf + flows - 1) / kChildren + 1);
  std::swap(blocks_, before);
  for (std::size_t flow = 0; flow < flows_; ++flow) {
    const std::size_t leaf = first_leaf_ + flow;
    at(first_leaf + flow) = before[leaf / kChildren].entries[leaf % kChildren];
  }
  flows_ = flows;
  first_leaf_ = first_leaf;
  play_all();
}

void FlowTournament::forget_orders(std::uint64_t newest) {
  const std::uint64_t base = newest - kOrders / 2;
  const std::uint64_t passed = base - order_base_;
  for (std::size_t place = first_leaf_; place < first_leaf_ + flows_; ++place) {
    if (at(place).is_nobody()) continue;
    std::uint64_t& both = at(place).order_and_flow;
    const std::uint64_t order = both / kOrders;
    both = (order - std::min(order, passed)) * kOrders + both % kOrders;
  }
  order_base_ = base;
  play_all();
}

void FlowTournament::subtract(std::uint64_t amount) {
  for (Block& block : blocks_) {
    for (Entry& entry : block.entries) {
      if (!entry.is_nobody()) entry.tag -= amount;
    }
  }
  first_ = at(kRoot);
}

// Without a branch, which would be mispredicted.
FlowTournament::Entry FlowTournament::least(Entry one, Entry other) {
  if (__builtin_unpredictable(other.before(one))) one = other;
  // Without it clang joins this branch with the one of the caller, and keeps both.
  asm("" : "+r"(one.tag), "+r"(one.order_and_flow));
  return one;
}

void FlowTournament::play_all() {
  for (std::size_t block = blocks_.size() - 1; block > 0; --block) {
    const Entry(&entries)[kChildren] = blocks_[block].entries;
    at(block + 2) = least(least(entries[0], entries[1]), least(entries[2], entries[3]));
  }
  first_ = at(kRoot);
}

// The entry of the same block whose place differs from that of `entry` in these bits.
const FlowTournament::Entry& FlowTournament::sibling(const Entry& entry, std::uintptr_t bits) {
  static_assert(alignof(Block) == kChildren * sizeof(Entry));
  return *reinterpret_cast<const Entry*>(reinterpret_cast<std::uintptr_t>(&entry) ^
                                         bits * sizeof(Entry));
}

// Nothing changes above the highest node that the flow holds, or will hold. Up to there the other
// three children of each node are compared without waiting for what comes from below.
void FlowTournament::set(std::uint32_t flow, Entry entry) {
  std::size_t place = first_leaf_ + flow;
  for (;;) {
    Entry& node = at(place);
    node = entry;
    if (place == kRoot) break;
    place = parent_of(place);
    if (at(place).flow() == flow) {
      entry = least(entry, least(least(sibling(node, 1), sibling(node, 2)), sibling(node, 3)));
    } else if (!entry.before(at(place))) {
      return;
    }
  }
  first_ = entry;
}

}  // namespace vpfs
