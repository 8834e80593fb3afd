#include "sim/cluster/network/end_queue.h"

namespace vpfs::sim {

void EndQueue::set(const End& end) {
  if (places_.size() <= end.flow) places_.resize(end.flow + std::size_t{1}, kNowhere);
  if (places_[end.flow] == kNowhere) {
    heap_.emplace_back();
    sift(heap_.size() - 1, end);
  } else {
    sift(places_[end.flow], end);
  }
}

void EndQueue::remove(FlowSlot flow) {
  if (flow >= places_.size() || places_[flow] == kNowhere) return;
  const std::size_t place = places_[flow];
  places_[flow] = kNowhere;
  const End last = heap_.back();
  heap_.pop_back();
  if (place < heap_.size()) sift(place, last);
}

void EndQueue::put(std::size_t place, const End& end) {
  heap_[place] = end;
  places_[end.flow] = static_cast<std::uint32_t>(place);
}

void EndQueue::sift(std::size_t place, const End& end) {
  for (; place > 0 && before(end, heap_[(place - 1) / 2]); place = (place - 1) / 2) {
    put(place, heap_[(place - 1) / 2]);
  }
  for (std::size_t child = 2 * place + 1; child < heap_.size(); child = 2 * place + 1) {
    if (child + 1 < heap_.size() && before(heap_[child + 1], heap_[child])) ++child;
    if (!before(heap_[child], end)) break;
    put(place, heap_[child]);
    place = child;
  }
  put(place, end);
}

}  // namespace vpfs::sim
