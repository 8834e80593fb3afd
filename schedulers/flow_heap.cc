#include "schedulers/flow_heap.h"

#include <algorithm>
#include <limits>

namespace vpfs {
namespace {
constexpr std::uint64_t kOrders = std::uint64_t{1} << 32;
constexpr std::uint64_t kKeptOrders = kOrders / 2;
}  // namespace

void FlowHeap::grow(std::size_t flows) {
  if (flows <= places_.size()) return;
  places_.resize(flows, kNowhere);
  // Grows with places_, so adding flows one by one stays linear.
  blocks_.resize((kRoot + places_.capacity()) / kChildren + 1);
}

FlowHeap::Entry FlowHeap::make_entry(std::uint32_t flow, Key key) {
  if (key.order >= order_base_ + kOrders) {
    const std::uint64_t base = key.order - kKeptOrders;
    const std::uint64_t passed = base - order_base_;
    for (std::size_t place = kRoot; place < end(); ++place) {
      std::uint64_t& both = at(place).order_and_flow;
      const std::uint64_t order = both / kOrders;
      both = (order - std::min(order, passed)) * kOrders + both % kOrders;
    }
    order_base_ = base;
  }
  const std::uint64_t order = key.order - std::min(key.order, order_base_);
  return {.tag = key.tag, .order_and_flow = order * kOrders + flow};
}

void FlowHeap::push(std::uint32_t flow, Key key) {
  const Entry entry = make_entry(flow, key);
  ++size_;
  sift_up(end() - 1, entry);
}

void FlowHeap::update(std::uint32_t flow, Key key) {
  settle(places_[flow], make_entry(flow, key));
}

void FlowHeap::erase(std::uint32_t flow) {
  const std::size_t place = places_[flow];
  places_[flow] = kNowhere;
  const Entry last = at(end() - 1);
  --size_;
  if (place < end()) settle(place, last);
}

void FlowHeap::subtract(std::uint64_t amount) {
  for (std::size_t place = kRoot; place < end(); ++place) at(place).tag -= amount;
}

// The place of the smallest of the four from `first` on, without a branch.
std::size_t FlowHeap::least_of(std::size_t first) {
  const Block& block = blocks_[first / kChildren];
  const auto left = static_cast<std::size_t>(block[1].before(block[0]));
  const std::size_t right = 2 + static_cast<std::size_t>(block[3].before(block[2]));
  return first + (block[right].before(block[left]) ? right : left);
}

// A new tag usually belongs near the bottom. So the hole goes all the way down first, without
// comparing (and mispredicting) against `entry`, and then up to where `entry` fits.
void FlowHeap::settle(std::size_t place, const Entry& entry) {
  if (place > kRoot && entry.before(at(parent_of(place)))) return sift_up(place, entry);
  for (;;) {
    const std::size_t first = first_child_of(place);
    if (first + kChildren > end()) break;
    const std::size_t least = least_of(first);
    put(place, at(least));
    place = least;
  }
  const std::size_t first = first_child_of(place);
  if (first < end()) {
    std::size_t least = first;
    for (std::size_t child = first + 1; child < end(); ++child) {
      if (at(child).before(at(least))) least = child;
    }
    put(place, at(least));
    place = least;
  }
  sift_up(place, entry);
}

void FlowHeap::sift_up(std::size_t place, const Entry& entry) {
  while (place > kRoot && entry.before(at(parent_of(place)))) {
    put(place, at(parent_of(place)));
    place = parent_of(place);
  }
  put(place, entry);
}

}  // namespace vpfs
