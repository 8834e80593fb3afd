#include "schedulers/flow_heap.h"

namespace vpfs {

void FlowHeap::grow(std::size_t flows) {
  if (flows <= places_.size()) return;
  places_.resize(flows, kNowhere);
  // Grows with places_, so adding flows one by one stays linear.
  blocks_.resize((kRoot + places_.capacity()) / kChildren + 1);
}

void FlowHeap::put(std::uint32_t flow, std::uint64_t tag) {
  const Entry entry = {.tag = tag, .flow = flow};
  if (contains(flow)) return settle(places_[flow], entry);
  ++size_;
  sift_up(end() - 1, entry);
}

void FlowHeap::erase(std::uint32_t flow) {
  if (!contains(flow)) return;
  const std::size_t place = places_[flow];
  places_[flow] = kNowhere;
  const Entry last = at(end() - 1);
  --size_;
  if (place < end()) settle(place, last);
}

// The place of the smallest of the four from `first` on, without a branch.
std::size_t FlowHeap::least_of(std::size_t first) {
  const auto& block = blocks_[first / kChildren].entries;
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
    put_at(place, at(least));
    place = least;
  }
  const std::size_t first = first_child_of(place);
  if (first < end()) {
    std::size_t least = first;
    for (std::size_t child = first + 1; child < end(); ++child) {
      if (at(child).before(at(least))) least = child;
    }
    put_at(place, at(least));
    place = least;
  }
  sift_up(place, entry);
}

void FlowHeap::sift_up(std::size_t place, const Entry& entry) {
  while (place > kRoot && entry.before(at(parent_of(place)))) {
    put_at(place, at(parent_of(place)));
    place = parent_of(place);
  }
  put_at(place, entry);
}

}  // namespace vpfs
