#include "sim/cluster/network/allocation.h"

namespace vpfs::sim {

Allocation::Allocation(const FlowTable& table, ClassPolicy policy) : table_(table) {
  if (policy.sharing != Sharing::max_min) {
    equal_.emplace(table, policy);
    return;
  }
  switch (policy.kind) {
    case ClassPolicy::Kind::none:
      fillings_.emplace_back(table, kAllClasses);
      break;
    case ClassPolicy::Kind::priority:
      fillings_.emplace_back(table, kCommunicationOnly);
      fillings_.emplace_back(table, kStorageOnly);
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
  if (equal_) {
    equal_->started(flow);
  } else if (apportioned_) {
    apportioned_->started(flow);
  } else {
    fillings_[filling_of(flow)].started(flow);
  }
}

void Allocation::ended(FlowSlot flow) {
  if (equal_) {
    equal_->ended(flow);
  } else if (apportioned_) {
    apportioned_->ended(flow);
  } else {
    fillings_[filling_of(flow)].ended(flow);
  }
}

std::span<const FlowSlot> Allocation::settle() {
  if (equal_) {
    equal_->refill();
    return equal_->changed();
  }
  if (apportioned_) {
    apportioned_->refill();
    return apportioned_->changed();
  }
  fillings_[0].refill();
  if (fillings_.size() == 1) return fillings_[0].changed();
  const IncrementalFilling& communication = fillings_[0];
  IncrementalFilling& storage = fillings_[1];
  for (const LinkId link : communication.touched()) {
    if (link >= table_.links()) continue;
    storage.set_room(link, table_.capacity(link) - communication.used(link));
  }
  storage.refill();
  changed_.assign(communication.changed().begin(), communication.changed().end());
  changed_.insert(changed_.end(), storage.changed().begin(), storage.changed().end());
  return changed_;
}

Rate Allocation::rate(FlowSlot flow) const {
  if (equal_) return equal_->rate(flow);
  if (apportioned_) return apportioned_->rate(flow);
  return fillings_[filling_of(flow)].rate(flow);
}

}  // namespace vpfs::sim
