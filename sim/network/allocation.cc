#include "sim/network/allocation.h"

#include <array>

namespace vpfs::sim {
namespace {

constexpr std::array kBoth = {TrafficClass::communication, TrafficClass::storage};
constexpr std::span<const TrafficClass> kCommunication = std::span(kBoth).first(1);
constexpr std::span<const TrafficClass> kStorage = std::span(kBoth).last(1);

}  // namespace

Allocation::Allocation(const FlowTable& table, ClassPolicy policy) : table_(table) {
  switch (policy.kind) {
    case ClassPolicy::Kind::none:
      fillings_.emplace_back(table, kBoth);
      break;
    case ClassPolicy::Kind::priority:
      fillings_.emplace_back(table, kCommunication);
      fillings_.emplace_back(table, kStorage);
      break;
    case ClassPolicy::Kind::apportioned:
      apportioned_.emplace(table, policy.communication, policy.storage);
      break;
  }
}

std::size_t Allocation::filling_of(FlowSlot flow) const {
  return fillings_.size() == 1 ? 0 : static_cast<std::size_t>(table_.traffic_class(flow));
}

void Allocation::started(FlowSlot flow) {
  if (apportioned_) {
    apportioned_->started(flow);
  } else {
    fillings_[filling_of(flow)].started(flow);
  }
}

void Allocation::ended(FlowSlot flow) {
  if (apportioned_) {
    apportioned_->ended(flow);
  } else {
    fillings_[filling_of(flow)].ended(flow);
  }
}

std::span<const FlowSlot> Allocation::settle() {
  if (apportioned_) return apportioned_->refill();
  if (fillings_.size() == 1) return fillings_[0].refill();
  IncrementalFilling& communication = fillings_[0];
  IncrementalFilling& storage = fillings_[1];
  const std::span<const FlowSlot> first = communication.refill();
  changed_.assign(first.begin(), first.end());
  for (const LinkId link : communication.touched()) {
    if (link < table_.links()) {
      storage.set_room(link, table_.capacity(link) - communication.used(link));
    }
  }
  const std::span<const FlowSlot> then = storage.refill();
  changed_.insert(changed_.end(), then.begin(), then.end());
  return changed_;
}

Rate Allocation::rate(FlowSlot flow) const {
  if (apportioned_) return apportioned_->rate(flow);
  return fillings_[filling_of(flow)].rate(flow);
}

}  // namespace vpfs::sim
