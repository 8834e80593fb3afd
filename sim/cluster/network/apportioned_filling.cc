#include "sim/cluster/network/apportioned_filling.h"

#include <algorithm>

#include "base/check.h"
#include "base/wide.h"

namespace vpfs::sim {

ApportionedFilling::Round::Round(const FlowTable& table)
    : communication(table, kCommunicationOnly),
      storage(table, kStorageOnly),
      matters(table.links()) {}

IncrementalFilling& ApportionedFilling::Round::of(TrafficClass traffic_class) {
  return traffic_class == TrafficClass::communication ? communication : storage;
}

ApportionedFilling::ApportionedFilling(const FlowTable& table, std::uint32_t communication,
                                       std::uint32_t storage)
    : table_(table), equal_(table, kAllClasses), fitted_storage_(table, kStorageOnly) {
  VPFS_ASSERT(communication >= 1 && storage >= 1);
  const std::uint64_t parts = std::uint64_t{communication} + storage;
  for (LinkId link = 0; link < table.links(); ++link) {
    const Wide share = Wide{table.capacity(link).units} * communication / parts;
    share_.push_back({static_cast<std::uint64_t>(share)});
  }
  add_round();
}

void ApportionedFilling::started(FlowSlot flow) {
  const TrafficClass its_class = table_.traffic_class(flow);
  if (is_running_.size() <= flow) is_running_.resize(flow + std::size_t{1});
  is_running_[flow] = 1;
  equal_.started(flow);
  for (Round& round : rounds_) round.of(its_class).started(flow);
  if (its_class == TrafficClass::storage) fitted_storage_.started(flow);
}

void ApportionedFilling::ended(FlowSlot flow) {
  const TrafficClass its_class = table_.traffic_class(flow);
  is_running_[flow] = 0;
  equal_.ended(flow);
  for (Round& round : rounds_) round.of(its_class).ended(flow);
  if (its_class == TrafficClass::storage) fitted_storage_.ended(flow);
}

Rate ApportionedFilling::rate(FlowSlot flow) const {
  return table_.traffic_class(flow) == TrafficClass::communication
             ? rounds_[last_].communication.rate(flow)
             : fitted_storage_.rate(flow);
}

void ApportionedFilling::refill() {
  update_first_round();
  std::size_t round = 0;
  for (fill(0); rounds_[round].mattering > 0; fill(++round)) {
    if (round + 1 == kMostRounds) {
      ++unsettled_;
      break;
    }
    if (round + 1 == rounds_.size()) add_round();
  }
  const bool is_other_round = round != last_;
  last_ = round;
  fit_storage(is_other_round);
}

void ApportionedFilling::update_first_round() {
  equal_.refill();
  for (const LinkId link : equal_.touched()) {
    if (link >= table_.links()) continue;
    Rate storage;
    for (const FlowTable::Use& use : table_.users(link, TrafficClass::storage)) {
      storage += equal_.rate(use.flow);
    }
    rounds_[0].communication.set_room(link,
                                      std::max(share_[link], table_.capacity(link) - storage));
  }
}

void ApportionedFilling::add_round() {
  Round& round = rounds_.emplace_back(table_);
  for (FlowSlot flow = 0; flow < is_running_.size(); ++flow) {
    if (is_running_[flow] != 0) round.of(table_.traffic_class(flow)).started(flow);
  }
  if (rounds_.size() == 1) return;
  const Round& last = rounds_[rounds_.size() - 2];
  for (LinkId link = 0; link < table_.links(); ++link) {
    round.communication.set_room(link, next_room(last, link));
  }
}

void ApportionedFilling::fill(std::size_t number) {
  Round& round = rounds_[number];
  round.communication.refill();
  for (const LinkId link : round.communication.touched()) {
    if (link >= table_.links()) continue;
    const Rate used = std::min(share_[link], round.communication.used(link));
    round.storage.set_room(link, table_.capacity(link) - used);
  }
  round.storage.refill();
  Round* const next = number + 1 < rounds_.size() ? &rounds_[number + 1] : nullptr;
  for (const IncrementalFilling* const filling : {&round.communication, &round.storage}) {
    for (const LinkId link : filling->touched()) {
      if (link >= table_.links()) continue;
      update_matters(round, link);
      if (next != nullptr) next->communication.set_room(link, next_room(round, link));
    }
  }
}

// What storage leaves to communication.
Rate ApportionedFilling::left_by_storage(const Round& round, LinkId link) const {
  return std::max(share_[link], table_.capacity(link) - round.storage.used(link));
}

Rate ApportionedFilling::next_room(const Round& round, LinkId link) const {
  return round.matters[link] != 0 ? left_by_storage(round, link) : round.communication.room(link);
}

// A smaller room matters if more is used of it, a larger one if this one limits flows.
void ApportionedFilling::update_matters(Round& round, LinkId link) {
  const Rate room = round.communication.room(link);
  const Rate used = round.communication.used(link);
  const Rate next = left_by_storage(round, link);
  const Rate slack = slack_of(table_.capacity(link));
  const bool is_full = (room - used).units < table_.users(link, TrafficClass::communication).size();
  const bool matters = used > next + slack || (is_full && next > room + slack);
  round.mattering -= round.matters[link];
  round.matters[link] = matters ? 1 : 0;
  round.mattering += round.matters[link];
}

void ApportionedFilling::fit_storage(bool is_other_round) {
  const IncrementalFilling& communication = rounds_[last_].communication;
  const auto fit = [&](LinkId link) {
    if (link >= table_.links()) return;
    fitted_storage_.set_room(link, table_.capacity(link) - communication.used(link));
  };
  changed_.clear();
  if (is_other_round) {
    for (LinkId link = 0; link < table_.links(); ++link) fit(link);
    fitted_storage_.refill();
    for (FlowSlot flow = 0; flow < is_running_.size(); ++flow) {
      if (is_running_[flow] != 0) changed_.push_back(flow);
    }
    return;
  }
  for (const LinkId link : communication.touched()) fit(link);
  fitted_storage_.refill();
  for (const IncrementalFilling* const filling :
       {&communication, &std::as_const(fitted_storage_)}) {
    changed_.insert(changed_.end(), filling->changed().begin(), filling->changed().end());
  }
}

}  // namespace vpfs::sim
