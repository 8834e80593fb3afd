#include "sim/network/allocation.h"

#include <algorithm>

#include "base/check.h"

namespace vpfs::sim {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::array kCommunication = {TrafficClass::communication};
constexpr std::array kStorage = {TrafficClass::storage};
constexpr std::array kBoth = {TrafficClass::communication, TrafficClass::storage};

}  // namespace

void Allocation::LinkSet::add(LinkId link) {
  if (is_in_[link] != 0) return;
  is_in_[link] = 1;
  all_.push_back(link);
}

void Allocation::LinkSet::clear() {
  for (const LinkId link : all_) is_in_[link] = 0;
  all_.clear();
}

Allocation::Allocation(const FlowTable& table, ClassPolicy policy)
    : table_(table), policy_(policy), filling_(table) {
  VPFS_ASSERT(policy.communication >= 1 && policy.storage >= 1);
  grow();
  if (policy.kind != ClassPolicy::Kind::apportioned) return;
  for (LinkId link = 0; link < table.links(); ++link) {
    const Wide all = table.capacity(link).units;
    const std::uint64_t parts = std::uint64_t{policy.communication} + policy.storage;
    turns_[link].share = {static_cast<std::uint64_t>(all * policy.communication / parts)};
  }
}

void Allocation::grow() {
  const std::size_t links = table_.all_links();
  for (LinkSet* const set : {&touched_[0], &touched_[1], &links_}) set->grow(links);
  communication_.resize(links);
  if (policy_.kind == ClassPolicy::Kind::apportioned) turns_.resize(links);
  is_collected_.resize(table_.slots());
  filling_.grow();
}

Allocation::LinkSet& Allocation::touched(FlowSlot flow) {
  const bool by_class = policy_.kind == ClassPolicy::Kind::priority;
  return touched_[by_class ? static_cast<std::size_t>(table_.traffic_class(flow)) : 0];
}

void Allocation::started(FlowSlot flow) {
  if (is_collected_.size() < table_.slots()) grow();
  for (const LinkId link : table_.route(flow)) touched(flow).add(link);
}

void Allocation::ended(FlowSlot flow) {
  for (const LinkId link : table_.route(flow)) {
    if (link < table_.links()) touched(flow).add(link);
  }
}

std::span<const FlowSlot> Allocation::settle() {
  for (const FlowSlot flow : collected_) is_collected_[flow] = 0;
  collected_.clear();
  switch (policy_.kind) {
    case ClassPolicy::Kind::none:
      settle_equally();
      break;
    case ClassPolicy::Kind::apportioned:
      settle_in_shares();
      break;
    case ClassPolicy::Kind::priority:
      settle_by_priority();
      break;
  }
  for (LinkSet& touched : touched_) touched.clear();
  return collected_;
}

void Allocation::collect(LinkId start, std::span<const TrafficClass> classes) {
  std::size_t next = links_.size();
  links_.add(start);
  for (; next < links_.size(); ++next) {
    const LinkId link = links_.all()[next];
    if (link >= table_.links()) {
      collect(table_.owner(link));
      continue;
    }
    for (const TrafficClass traffic_class : classes) {
      for (const FlowTable::Use& use : table_.users(link, traffic_class)) collect(use.flow);
    }
  }
}

void Allocation::collect(FlowSlot flow) {
  if (is_collected_[flow] != 0) return;
  is_collected_[flow] = 1;
  collected_.push_back(flow);
  for (const LinkId link : table_.route(flow)) links_.add(link);
}

void Allocation::settle_equally() {
  links_.clear();
  for (const LinkId link : touched_[0].all()) collect(link, kBoth);
  for (const LinkId link : links_.all()) filling_.set_room(link, table_.capacity(link));
  filling_.fill(collected_, links_.all());
}

void Allocation::settle_by_priority() {
  auto& [touched_by_communication, touched_by_storage] = touched_;
  links_.clear();
  for (const LinkId link : touched_by_communication.all()) collect(link, kCommunication);
  for (const LinkId link : links_.all()) filling_.set_room(link, table_.capacity(link));
  filling_.fill(collected_, links_.all());
  for (const LinkId link : links_.all()) {
    const Rate used = table_.capacity(link) - filling_.left(link);
    if (used == communication_[link] || link >= table_.links()) continue;
    communication_[link] = used;
    touched_by_storage.add(link);
  }
  const std::size_t first = collected_.size();
  links_.clear();
  for (const LinkId link : touched_by_storage.all()) collect(link, kStorage);
  for (const LinkId link : links_.all()) {
    filling_.set_room(link, table_.capacity(link) - communication_[link]);
  }
  filling_.fill(std::span(collected_).subspan(first), links_.all());
}

void Allocation::settle_in_shares() {
  for (const LinkId link : touched_[0].all()) {
    const std::size_t first = collected_.size();
    links_.clear();
    collect(link, kBoth);
    if (collected_.size() > first && !fill_in_turn(first)) ++unsettled_;
  }
}

bool Allocation::fill_in_turn(std::size_t first) {
  for (std::vector<FlowSlot>& flows : flows_) flows.clear();
  for (const FlowSlot flow : std::span(collected_).subspan(first)) {
    flows_[static_cast<std::size_t>(table_.traffic_class(flow))].push_back(flow);
  }
  for (const LinkId link : links_.all()) {
    const bool has_storage =
        link < table_.links() && !table_.users(link, TrafficClass::storage).empty();
    turns_[link].room = has_storage ? turns_[link].share : table_.capacity(link);
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

void Allocation::fill_communication() {
  for (const LinkId link : links_.all()) filling_.set_room(link, turns_[link].room);
  filling_.fill(flows_[0], links_.all());
  for (const LinkId link : links_.all()) {
    communication_[link] = turns_[link].room - filling_.left(link);
    turns_[link].limits_communication = filling_.left(link).units < filling_.hops(link);
  }
}

void Allocation::fill_storage() {
  const auto room_of = [this](LinkId link) {
    return table_.capacity(link) - std::min(turns_[link].share, communication_[link]);
  };
  for (const LinkId link : links_.all()) filling_.set_room(link, room_of(link));
  filling_.fill(flows_[1], links_.all());
  for (const LinkId link : links_.all()) {
    turns_[link].storage = room_of(link) - filling_.left(link);
  }
}

bool Allocation::update_room() {
  bool matters = false;
  for (const LinkId link : links_.all()) {
    Turn& turn = turns_[link];
    const Rate slack = slack_of(table_.capacity(link));
    const Rate room = std::max(turn.share, table_.capacity(link) - turn.storage);
    matters |= communication_[link] > room + slack ||
               (turn.limits_communication && room > turn.room + slack);
    turn.room = room;
  }
  return matters;
}

void Allocation::fit_storage() {
  const bool fits = std::ranges::all_of(links_.all(), [this](LinkId link) {
    return communication_[link] + turns_[link].storage <= table_.capacity(link);
  });
  if (fits) return;
  for (const LinkId link : links_.all()) {
    filling_.set_room(link, table_.capacity(link) - communication_[link]);
  }
  filling_.fill(flows_[1], links_.all());
}

}  // namespace vpfs::sim
