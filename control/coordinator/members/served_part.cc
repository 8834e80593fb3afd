#include "control/coordinator/members/served_part.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/one_line.h"
#include "control/coordinator/members/messages.h"
#include "control/store/leadership.h"
#include "control/wire/protocol.h"

namespace vpfs::coordinator {

using control::make_error;

std::optional<control::Error> ServedPart::take(const control::MemberView& told) {
  if (told.epoch() == 0 || told.epoch() > control::kLargestTerm) {
    return make_error(control::Error::INVALID, "epoch",
                      fmt::format("{} cannot be a term", told.epoch()));
  }
  if (told.epoch() < view_.epoch) {
    return make_error(control::Error::OUTDATED, "epoch",
                      fmt::format("this member has the view {}, which is later than {}: --term of "
                                  "the one that leads has to be above it",
                                  view_.epoch, told.epoch()));
  }
  view_ = view_of(told);
  cost_model_ = one_short_line(told.cost_model());
  return std::nullopt;
}

bool ServedPart::takes_part() const {
  return std::ranges::any_of(
      view_.members, [this](const members::Member& each) { return each.name == own_.name; });
}

std::optional<control::Error> ServedPart::why_not(const std::string& stage) const {
  const members::Member* const owner = members::owner_of(stage, view_);
  if (owner == nullptr) {
    return make_error(control::Error::UNAVAILABLE, "member",
                      "this member has not been told yet which stages it serves");
  }
  if (owner->name == own_.name) return std::nullopt;
  control::Error error =
      make_error(control::Error::UNAVAILABLE, "member",
                 fmt::format("{} is served by the member {}", stage, one_short_line(owner->name)));
  error.mutable_addresses()->Add(owner->stage_addresses.begin(), owner->stage_addresses.end());
  return error;
}

}  // namespace vpfs::coordinator
