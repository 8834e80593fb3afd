#include "schedulers/flow_heap.h"

#include <algorithm>

namespace vpfs {

void FlowHeap::grow(std::size_t flows) {
  if (flows <= places_.size()) return;
  places_.resize(flows);
  // With the growth of places_, so that adding flows one by one stays linear.
  entries_.reserve(places_.capacity());
}

void FlowHeap::push(std::uint32_t flow, Key key) {
  const std::size_t place = entries_.size();
  entries_.emplace_back();
  sift_up(place, {.tag = key.tag, .order = key.order, .flow = flow});
}

void FlowHeap::update(std::uint32_t flow, Key key) {
  settle(places_[flow], {.tag = key.tag, .order = key.order, .flow = flow});
}

void FlowHeap::erase(std::uint32_t flow) {
  const std::size_t place = places_[flow];
  const Entry last = entries_.back();
  entries_.pop_back();
  if (place < entries_.size()) settle(place, last);
}

void FlowHeap::subtract(std::uint64_t amount) {
  for (Entry& entry : entries_) entry.tag -= amount;
}

void FlowHeap::settle(std::size_t place, const Entry& entry) {
  if (place > 0 && entry.before(entries_[parent_of(place)])) {
    sift_up(place, entry);
  } else {
    sift_down(place, entry);
  }
}

void FlowHeap::sift_up(std::size_t place, const Entry& entry) {
  while (place > 0 && entry.before(entries_[parent_of(place)])) {
    put(place, entries_[parent_of(place)]);
    place = parent_of(place);
  }
  put(place, entry);
}

void FlowHeap::sift_down(std::size_t place, const Entry& entry) {
  for (;;) {
    const std::size_t first = place * kChildren + 1;
    if (first >= entries_.size()) break;
    const std::size_t end = std::min(first + kChildren, entries_.size());
    std::size_t least = first;
    for (std::size_t child = first + 1; child < end; ++child) {
      if (entries_[child].before(entries_[least])) least = child;
    }
    if (!entries_[least].before(entry)) break;
    put(place, entries_[least]);
    place = least;
  }
  put(place, entry);
}

}  // namespace vpfs
