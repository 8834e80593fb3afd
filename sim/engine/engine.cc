#include "sim/engine/engine.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace vpfs::sim {

Engine::EventId Engine::at(TimePoint time, Action action, Rank rank) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(events_.size()));
    events_.emplace_back();
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  Event& event = events_[index];
  event.time = time;
  event.order = count_++;
  event.action = std::move(action);
  event.rank = rank;
  heap_.push_back(index);
  event.place = static_cast<std::uint32_t>(heap_.size() - 1);
  sift_up(event.place);
  return EventId{std::uint64_t{event.generation} << 32 | index};
}

bool Engine::cancel(EventId id) {
  const auto index = static_cast<std::uint32_t>(std::to_underlying(id));
  const auto generation = static_cast<std::uint32_t>(std::to_underlying(id) >> 32);
  if (index >= events_.size() || events_[index].generation != generation) return false;
  (void)take_out(events_[index].place);
  return true;
}

TimePoint Engine::next() const {
  return heap_.empty() ? kNever : std::max(events_[heap_.front()].time, now_);
}

bool Engine::next_is_now(Rank rank) const {
  return !heap_.empty() && next() == now_ && events_[heap_.front()].rank == rank;
}

bool Engine::step(TimePoint end) {
  if (heap_.empty() || next() > end) return false;
  now_ = next();
  Action action = take_out(0);
  action();
  return true;
}

void Engine::run_until(TimePoint end) {
  while (step(end)) {
  }
  skip_to(end);
}

void Engine::skip_to(TimePoint time) {
  now_ = std::max(now_, time);
}

bool Engine::before(std::uint32_t one, std::uint32_t other) const {
  const auto key = [](const Event& event) { return std::tie(event.time, event.rank, event.order); };
  return key(events_[one]) < key(events_[other]);
}

void Engine::put(std::size_t place, std::uint32_t index) {
  heap_[place] = index;
  events_[index].place = static_cast<std::uint32_t>(place);
}

void Engine::sift_up(std::size_t place) {
  const std::uint32_t index = heap_[place];
  for (; place > 0 && before(index, heap_[(place - 1) / 2]); place = (place - 1) / 2) {
    put(place, heap_[(place - 1) / 2]);
  }
  put(place, index);
}

void Engine::sift_down(std::size_t place) {
  const std::uint32_t index = heap_[place];
  for (std::size_t child = 2 * place + 1; child < heap_.size(); child = 2 * place + 1) {
    if (child + 1 < heap_.size() && before(heap_[child + 1], heap_[child])) ++child;
    if (!before(heap_[child], index)) break;
    put(place, heap_[child]);
    place = child;
  }
  put(place, index);
}

Engine::Action Engine::take_out(std::size_t place) {
  const std::uint32_t index = heap_[place];
  Action action = std::move(events_[index].action);
  events_[index].action = nullptr;
  ++events_[index].generation;
  free_.push_back(index);
  const std::uint32_t last = heap_.back();
  heap_.pop_back();
  if (place < heap_.size()) {
    put(place, last);
    sift_up(place);
    sift_down(events_[last].place);
  }
  return action;
}

}  // namespace vpfs::sim
