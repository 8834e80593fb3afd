#include "control/coordinator/members/served_part.h"

#include <algorithm>
#include <utility>

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
  members::View view = view_of(told);
  if (view.epoch == view_.epoch && view.members != view_.members) {
    return make_error(control::Error::OUTDATED, "epoch",
                      fmt::format("this member has another view {}: --term of the one that leads "
                                  "has to be above it",
                                  view_.epoch));
  }
  view_ = std::move(view);
  cost_model_ = one_short_line(told.cost_model());
  return std::nullopt;
}

bool ServedPart::takes_part() const {
  return std::ranges::any_of(
      view_.members, [this](const members::Member& each) { return each.name == own_.name; });
}

std::optional<control::Error> ServedPart::why_not(const std::string& stage, bool dials_in) const {
  if (dials_in && is_cut_off_) {
    return make_error(control::Error::UNAVAILABLE, "member",
                      "this member does not reach the one that leads");
  }
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
