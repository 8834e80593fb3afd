#include "sim/network/incremental_filling.h"

#include <algorithm>
#include <functional>

#include "base/check.h"

namespace vpfs::sim {

IncrementalFilling::IncrementalFilling(const FlowTable& table,
                                       std::span<const TrafficClass> classes)
    : table_(table), classes_(classes) {
  grow();
  for (LinkId link = 0; link < table.links(); ++link)
    links_[link].room = table.capacity(link).units;
}

void IncrementalFilling::grow() {
  links_.resize(table_.all_links());
  flows_.resize(table_.slots());
  changed_links_.grow(table_.all_links());
  touched_.grow(table_.all_links());
}

void IncrementalFilling::started(FlowSlot flow) {
  if (flows_.size() < table_.slots()) grow();
  flows_[flow] = {.step = {}, .state = State::waiting};
  looked_at_.push_back(flow);
  ++pending_;
  for (const LinkId link : table_.route(flow)) {
    changed_links_.add(link);
    if (link >= table_.links()) links_[link] = {.room = table_.capacity(link).units};
  }
}

void IncrementalFilling::ended(FlowSlot flow) {
  VPFS_DEBUG_ASSERT(flows_[flow].state == State::settled);
  for (const LinkId link : table_.route(flow)) {
    links_[link].used -= flows_[flow].step.units;
    if (link < table_.links()) changed_links_.add(link);
  }
}

void IncrementalFilling::set_room(LinkId link, Rate room) {
  if (links_[link].room == room.units) return;
  links_[link].room = room.units;
  changed_links_.add(link);
}

std::span<const FlowSlot> IncrementalFilling::refill() {
  touched_.clear();
  changed_.clear();
  events_.clear();
  now_ = {};
  for (const LinkId link : changed_links_.all()) touch(link);
  changed_links_.clear();
  while (pending_ > 0) {
    VPFS_DEBUG_ASSERT(!events_.empty());
    std::ranges::pop_heap(events_, std::greater());
    const Event event = events_.back();
    events_.pop_back();
    VPFS_DEBUG_ASSERT(now_ <= event.step);
    now_ = event.step;
    if (event.what == Event::kLink) {
      look_at_link(now_.link);
    } else {
      look_at_flow(event.what - 1);
    }
  }
  for (const FlowSlot flow : looked_at_) flows_[flow].state = State::settled;
  looked_at_.clear();
  return changed_;
}

template <typename Action>
void IncrementalFilling::for_each_user(LinkId link, const Action& action) const {
  if (link >= table_.links()) return action(table_.owner(link));
  for (const TrafficClass traffic_class : classes_) {
    for (const FlowTable::Use& use : table_.users(link, traffic_class)) action(use.flow);
  }
}

void IncrementalFilling::plan(const Event& event) {
  events_.push_back(event);
  std::ranges::push_heap(events_, std::greater());
}

void IncrementalFilling::touch(LinkId link) {
  if (!touched_.add(link)) return;
  LinkState& state = links_[link];
  state.left = state.room;
  state.waiting = 0;
  for_each_user(link, [&](FlowSlot flow) {
    const FlowState& its = flows_[flow];
    // A settled flow whose bottleneck is not touched got its old rate at its old step.
    if (its.state == State::frozen || (its.state == State::settled && its.step < now_)) {
      state.left -= its.step.units;
      return;
    }
    ++state.waiting;
    if (its.state == State::settled) schedule(flow);
  });
  if (state.waiting == 0) return;
  plan({.step = {.units = state.left / state.waiting, .link = link}});
}

void IncrementalFilling::touch_route(FlowSlot flow) {
  for (const LinkId link : table_.route(flow)) touch(link);
}

void IncrementalFilling::schedule(FlowSlot flow) {
  flows_[flow].state = State::scheduled;
  looked_at_.push_back(flow);
  ++pending_;
  plan({.step = flows_[flow].step, .what = flow + 1});
}

// A touched link may be full now. Its level only rises, so an older one was too early.
void IncrementalFilling::look_at_link(LinkId link) {
  const LinkState& state = links_[link];
  if (state.waiting == 0) return;
  const Step step = {.units = state.left / state.waiting, .link = link};
  if (step != now_) return plan({.step = step});
  // First touch, while all these flows wait, what changes with them.
  for_each_user(link, [&](FlowSlot flow) {
    const FlowState& its = flows_[flow];
    if (its.state == State::scheduled && its.step != step) touch_route(flow);
  });
  for_each_user(link, [&](FlowSlot flow) {
    const State its = flows_[flow].state;
    if (its == State::scheduled || its == State::waiting) freeze(flow, step);
  });
}

void IncrementalFilling::look_at_flow(FlowSlot flow) {
  FlowState& its = flows_[flow];
  if (its.state != State::scheduled) return;
  if (touched_.contains(its.step.link)) {
    its.state = State::waiting;  // its bottleneck was to be full before this event
    touch_route(flow);
  } else {
    freeze(flow, its.step);
  }
}

void IncrementalFilling::freeze(FlowSlot flow, Step step) {
  FlowState& its = flows_[flow];
  const std::uint64_t change = step.units - its.step.units;  // modulo 2^64
  if (change != 0) changed_.push_back(flow);
  its = {.step = step, .state = State::frozen};
  --pending_;
  for (const LinkId link : table_.route(flow)) {
    LinkState& state = links_[link];
    state.used += change;
    if (!touched_.contains(link)) continue;
    state.left -= step.units;
    --state.waiting;
  }
}

}  // namespace vpfs::sim
