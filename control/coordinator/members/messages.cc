#include "control/coordinator/members/messages.h"

namespace vpfs::coordinator {

control::MemberView to_message(const members::View& view) {
  control::MemberView message;
  message.set_epoch(view.epoch);
  for (const members::Member& each : view.members) {
    control::MemberView::Member& member = *message.add_members();
    member.set_name(each.name);
    member.mutable_stage_addresses()->Add(each.stage_addresses.begin(), each.stage_addresses.end());
  }
  return message;
}

members::View view_of(const control::MemberView& message) {
  members::View view{.epoch = message.epoch()};
  for (const control::MemberView::Member& each : message.members()) {
    view.members.push_back(
        {.name = each.name(),
         .stage_addresses = {each.stage_addresses().begin(), each.stage_addresses().end()}});
  }
  return view;
}

}  // namespace vpfs::coordinator
