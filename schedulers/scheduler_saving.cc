// The part of Scheduler for a successor.
#include "schedulers/scheduler.h"

namespace vpfs {

void Scheduler::save_all(TimePoint now, SavedState& to) {
  if (controller_) to.set("depth", std::uint64_t{controller_->base_depth()});
  StateWriter mine(to);
  mine("class_time", class_time_);
  SavedState::Values classes;
  for (Class& each : classes_) {
    SavedState& one = classes.emplace_back();
    StateWriter out(one);
    out("tag", each.start.tag);
    out("credit", each.start.credit);
    out("served", each.served);
    SavedState policy;
    each.policy->save_all(now, policy);
    one.add_list("policy").push_back(std::move(policy));
  }
  to.set("classes", std::move(classes));
}

void Scheduler::restore_all(const SavedState& from, TimePoint now) {
  if (controller_ && from.find<std::uint64_t>("depth") != nullptr) {
    controller_->begin_with(static_cast<std::uint32_t>(from.number("depth")));
    gate_.set_requests(controller_->depth());
  }
  const SavedState::Values& classes = from.list("classes");
  if (classes.size() != classes_.size()) return;
  StateReader mine(from);
  mine("class_time", class_time_);
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    StateReader in(classes[i]);
    in("tag", classes_[i].start.tag);
    if (classes_[i].policy->queued() > 0) in("credit", classes_[i].start.credit);
    in("served", classes_[i].served);
    classes_[i].policy->restore_all(classes[i].child("policy"), now);
  }
}

void Scheduler::save(AppId app, TimePoint now, SavedState& to) {
  if (own_limits_ != nullptr) limits_.save(app, to.add_list("limits").emplace_back());
  SavedState::Values classes;
  for (Class& each : classes_) each.policy->save(app, now, classes.emplace_back());
  to.set("classes", std::move(classes));
  const auto flow = std::to_underlying(app);
  if (flow < last_class_.size()) to.set("last_class", std::uint64_t{last_class_[flow]});
}

void Scheduler::restore(AppId app, const SavedState& from, TimePoint now) {
  if (own_limits_ != nullptr) limits_.restore(app, from.child("limits"), now);
  const SavedState::Values& classes = from.list("classes");
  if (classes.size() != classes_.size()) return;
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    classes_[i].policy->restore(app, classes[i], now);
  }
  const auto flow = std::to_underlying(app);
  const std::uint64_t last = from.number("last_class");
  if (flow < last_class_.size() && last <= last_index_) {
    last_class_[flow] = static_cast<std::uint8_t>(last);
  }
}

}  // namespace vpfs
