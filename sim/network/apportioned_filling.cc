#include "sim/network/apportioned_filling.h"

#include <algorithm>

#include "base/check.h"

namespace vpfs::sim {
namespace {

__extension__ using Wide = unsigned __int128;

}  // namespace

ApportionedFilling::ApportionedFilling(const FlowTable& table, std::uint32_t communication,
                                       std::uint32_t storage)
    : table_(table), filling_(table) {
  VPFS_ASSERT(communication >= 1 && storage >= 1);
  grow();
  const std::uint64_t parts = std::uint64_t{communication} + storage;
  for (LinkId link = 0; link < table.links(); ++link) {
    const Wide share = Wide{table.capacity(link).units} * communication / parts;
    states_[link].share = {static_cast<std::uint64_t>(share)};
  }
}

void ApportionedFilling::grow() {
  touched_.grow(table_.all_links());
  links_.grow(table_.all_links());
  states_.resize(table_.all_links());
  is_collected_.resize(table_.slots());
  filling_.grow();
}

void ApportionedFilling::started(FlowSlot flow) {
  if (is_collected_.size() < table_.slots()) grow();
  for (const LinkId link : table_.route(flow)) touched_.add(link);
}

void ApportionedFilling::ended(FlowSlot flow) {
  for (const LinkId link : table_.route(flow)) {
    if (link < table_.links()) touched_.add(link);
  }
}

std::span<const FlowSlot> ApportionedFilling::refill() {
  for (const FlowSlot flow : collected_) is_collected_[flow] = 0;
  collected_.clear();
  for (const LinkId link : touched_.all()) {
    const std::size_t first = collected_.size();
    links_.clear();
    collect(link);
    if (collected_.size() > first && !fill_in_turn(first)) ++unsettled_;
  }
  touched_.clear();
  return collected_;
}

void ApportionedFilling::collect(LinkId start) {
  links_.add(start);
  for (std::size_t next = 0; next < links_.size(); ++next) {
    const LinkId link = links_.all()[next];
    if (link >= table_.links()) {
      collect_flow(table_.owner(link));
      continue;
    }
    for (const auto traffic_class : {TrafficClass::communication, TrafficClass::storage}) {
      for (const FlowTable::Use& use : table_.users(link, traffic_class)) collect_flow(use.flow);
    }
  }
}

void ApportionedFilling::collect_flow(FlowSlot flow) {
  if (is_collected_[flow] != 0) return;
  is_collected_[flow] = 1;
  collected_.push_back(flow);
  for (const LinkId link : table_.route(flow)) links_.add(link);
}

bool ApportionedFilling::fill_in_turn(std::size_t first) {
  for (std::vector<FlowSlot>& flows : flows_) flows.clear();
  for (const FlowSlot flow : std::span(collected_).subspan(first)) {
    flows_[static_cast<std::size_t>(table_.traffic_class(flow))].push_back(flow);
  }
  for (const LinkId link : links_.all()) {
    const bool has_storage =
        link < table_.links() && !table_.users(link, TrafficClass::storage).empty();
    states_[link].room = has_storage ? states_[link].share : table_.capacity(link);
  }
  bool is_settled = false;
  for (int round = 0; round < kMostRounds && !is_settled; ++round) {
    fill_communication();
    fill_storage();
    is_settled = !update_room();
  }
  fit_storage();
  return is_settled;
}

void ApportionedFilling::fill_communication() {
  for (const LinkId link : links_.all()) filling_.set_room(link, states_[link].room);
  filling_.fill(flows_[0], links_.all());
  for (const LinkId link : links_.all()) {
    states_[link].communication = states_[link].room - filling_.left(link);
    states_[link].limits_communication = filling_.left(link).units < filling_.hops(link);
  }
}

void ApportionedFilling::fill_storage() {
  const auto room_of = [this](LinkId link) {
    return table_.capacity(link) - std::min(states_[link].share, states_[link].communication);
  };
  for (const LinkId link : links_.all()) filling_.set_room(link, room_of(link));
  filling_.fill(flows_[1], links_.all());
  for (const LinkId link : links_.all()) {
    states_[link].storage = room_of(link) - filling_.left(link);
  }
}

bool ApportionedFilling::update_room() {
  bool matters = false;
  for (const LinkId link : links_.all()) {
    LinkState& state = states_[link];
    const Rate slack = slack_of(table_.capacity(link));
    const Rate room = std::max(state.share, table_.capacity(link) - state.storage);
    matters |= states_[link].communication > room + slack ||
               (state.limits_communication && room > state.room + slack);
    state.room = room;
  }
  return matters;
}

void ApportionedFilling::fit_storage() {
  const bool fits = std::ranges::all_of(links_.all(), [this](LinkId link) {
    return states_[link].communication + states_[link].storage <= table_.capacity(link);
  });
  if (fits) return;
  for (const LinkId link : links_.all()) {
    filling_.set_room(link, table_.capacity(link) - states_[link].communication);
  }
  filling_.fill(flows_[1], links_.all());
}

}  // namespace vpfs::sim
