#include "sim/cluster/network/incremental_filling.h"

#include <algorithm>

#include "base/check.h"

namespace vpfs::sim {
namespace {

// Compares two steps, for a heap with the first one in front.
constexpr auto kIsLater = [](const auto& one, const auto& other) { return other < one; };

}  // namespace

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
  ++pending_;
  for (const LinkId link : table_.route(flow)) {
    changed_links_.add(link);
    if (link >= table_.links()) links_[link] = {.room = table_.capacity(link).units};
  }
}

void IncrementalFilling::ended(FlowSlot flow) {
  if (flows_[flow].state == State::waiting) --pending_;
  flows_[flow].state = State::settled;
  for (const LinkId link : table_.route(flow)) {
    links_[link].used -= flows_[flow].step.units();
    if (link < table_.links()) changed_links_.add(link);
  }
}

void IncrementalFilling::set_room(LinkId link, Rate room) {
  if (links_[link].room == room.units) return;
  links_[link].room = room.units;
  changed_links_.add(link);
}

void IncrementalFilling::refill() {
  touched_.clear();
  changed_.clear();
  events_.clear();
  now_ = {};
  for (const LinkId link : changed_links_.all()) touch(link);
  changed_links_.clear();
  while (pending_ > 0) {
    VPFS_DEBUG_ASSERT(!events_.empty() && !(events_.front() < now_));
    std::ranges::pop_heap(events_, kIsLater);
    now_ = events_.back();
    events_.pop_back();
    if (touched_.contains(now_.link())) look_at_level(now_.link());
    if (links_[now_.link()].has_old_step) look_at_old_step(now_.link());
  }
  for (const FlowSlot flow : frozen_) flows_[flow].state = State::settled;
  for (const LinkId link : old_steps_) links_[link].has_old_step = false;
  frozen_.clear();
  old_steps_.clear();
}

// A flow's own link: the flow may have ended, and another be in its place.
bool IncrementalFilling::is_in_use(LinkId link) const {
  const FlowSlot owner = table_.owner(link);
  const std::span<const LinkId> route = table_.route(owner);
  return !route.empty() && route.back() == link &&
         std::ranges::find(classes_, table_.traffic_class(owner)) != classes_.end();
}

template <typename Action>
void IncrementalFilling::for_each_user(LinkId link, const Action& action) const {
  if (link >= table_.links()) {
    if (is_in_use(link)) action(table_.owner(link));
    return;
  }
  for (const TrafficClass traffic_class : classes_) {
    for (const FlowTable::Use& use : table_.users(link, traffic_class)) action(use.flow);
  }
}

void IncrementalFilling::plan(Step step) {
  events_.push_back(step);
  std::ranges::push_heap(events_, kIsLater);
}

void IncrementalFilling::plan_level(LinkId link) {
  LinkState& state = links_[link];
  if (state.waiting == 0) return;
  state.planned = state.left / state.waiting;
  plan({state.planned, link});
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
      state.left -= its.step.units();
      return;
    }
    ++state.waiting;
    if (its.state == State::settled) schedule(flow);
  });
  plan_level(link);
}

void IncrementalFilling::touch_route(FlowSlot flow) {
  for (const LinkId link : table_.route(flow)) touch(link);
}

void IncrementalFilling::schedule(FlowSlot flow) {
  flows_[flow].state = State::scheduled;
  ++pending_;
  LinkState& bottleneck = links_[flows_[flow].step.link()];
  if (bottleneck.has_old_step) return;
  bottleneck.has_old_step = true;
  old_steps_.push_back(flows_[flow].step.link());
  plan(flows_[flow].step);
}

// A touched link may be full now. Its level only rises, so a planned one may be too low.
void IncrementalFilling::look_at_level(LinkId link) {
  const LinkState& state = links_[link];
  if (state.waiting == 0) return;
  if (state.left / state.waiting == now_.units()) {
    freeze_waiting(now_);
  } else if (state.planned == now_.units()) {
    plan_level(link);
  }
}

void IncrementalFilling::freeze_waiting(Step step) {
  // First touch, while all these flows wait, what changes with them.
  for_each_user(step.link(), [&](FlowSlot flow) {
    const FlowState& its = flows_[flow];
    if (its.state == State::scheduled && its.step != step) touch_route(flow);
  });
  for_each_user(step.link(), [&](FlowSlot flow) {
    const State its = flows_[flow].state;
    if (its == State::scheduled || its == State::waiting) freeze(flow, step);
  });
}

// This was a step of the last filling. It is one again if the link is not touched.
void IncrementalFilling::look_at_old_step(LinkId link) {
  const bool is_again = !touched_.contains(link);
  for_each_user(link, [&](FlowSlot flow) {
    FlowState& its = flows_[flow];
    if (its.state != State::scheduled || its.step != now_) return;
    if (is_again) {
      freeze(flow, now_);
    } else {
      its.state = State::waiting;
      touch_route(flow);
    }
  });
}

void IncrementalFilling::freeze(FlowSlot flow, Step step) {
  FlowState& its = flows_[flow];
  const std::uint64_t change = step.units() - its.step.units();  // modulo 2^64
  if (change != 0) changed_.push_back(flow);
  its = {.step = step, .state = State::frozen};
  frozen_.push_back(flow);
  --pending_;
  for (const LinkId link : table_.route(flow)) {
    LinkState& state = links_[link];
    state.used += change;
    if (!touched_.contains(link)) continue;
    state.left -= step.units();
    --state.waiting;
  }
}

}  // namespace vpfs::sim
