#include "control/members/view_keeper.h"

#include <algorithm>
#include <utility>

namespace vpfs::members {

void ViewKeeper::joined(const Member& member, const View& told, TimePoint now) {
  if (told.epoch > last_.epoch && told.epoch < term_) last_ = told;
  gone_.erase(member.name);
  forget_leaving(now);
  Known& known = known_[member.name];
  if (!known.is_connected || known.member.incarnation != member.incarnation) known.since = now;
  known.is_connected = true;
  known.member = member;
}

void ViewKeeper::left(std::string_view name, TimePoint now) {
  const auto place = known_.find(name);
  if (place == known_.end()) return;
  place->second.is_connected = false;
  place->second.since = now;
  forget_leaving(now);
  Leaving& leaving = leaving_[place->first];
  ++leaving.times;
  leaving.last = now;
}

void ViewKeeper::forget_leaving(TimePoint now) {
  std::erase_if(leaving_, [&](const auto& each) { return now - each.second.last >= limits_.calm; });
}

Duration ViewKeeper::join_after(const std::string& name) const {
  const auto place = leaving_.find(name);
  Duration after = limits_.join;
  for (std::uint32_t i = 2; place != leaving_.end() && i < place->second.times; ++i) {
    after = std::min(2 * after, limits_.most_join);
    if (after == limits_.most_join) break;
  }
  return after;
}

bool ViewKeeper::has(std::string_view name) const {
  return std::ranges::any_of(view_.members,
                             [name](const Member& each) { return each.name == name; });
}

bool ViewKeeper::is_settled(TimePoint now) const {
  if (now >= settled_at_) return true;
  // Without a last view others may be about to start.
  if (last_.epoch == 0) return false;
  return std::ranges::all_of(last_.members, [this](const Member& each) {
    if (gone_.contains(each.name)) return true;
    const auto place = known_.find(each.name);
    return place != known_.end() && place->second.is_connected;
  });
}

std::optional<TimePoint> ViewKeeper::changes_at(const Known& known) const {
  const auto in_view = std::ranges::find(
      view_.members, known.member.name,
      [](const Member& each) -> const auto& { return each.name; });
  if (in_view == view_.members.end()) {
    if (!known.is_connected) return std::nullopt;
    return known.since + join_after(known.member.name);
  }
  if (!known.is_connected) return known.since + limits_.leave;
  // Its addresses are other ones, or its process is: that one has no cycles of the view's term.
  if (*in_view != known.member) return std::max(known.since, made_at_ + limits_.between);
  return std::nullopt;
}

std::optional<View> ViewKeeper::next(TimePoint now) {
  const bool is_first = view_.epoch == 0;
  const auto is_due = [&](const auto& each) {
    const auto at = changes_at(each.second);
    return at && *at <= now;
  };
  if (is_used_up()) return std::nullopt;
  if (is_first ? !is_settled(now) : std::ranges::none_of(known_, is_due)) return std::nullopt;
  View made;
  for (const auto& [name, known] : known_) {
    const bool may_come_back = !is_first && has(name) && now < known.since + limits_.leave;
    // Those that wait for no other reason come along.
    const Duration wait = join_after(name);
    const bool has_joined =
        is_first || has(name) || wait == limits_.join || now >= known.since + wait;
    if ((known.is_connected && has_joined) || may_come_back) made.members.push_back(known.member);
  }
  if (made.members.empty()) return std::nullopt;  // it could be told to none
  made.epoch = term_ + ++epochs_;
  std::erase_if(known_, [now, this](const auto& each) {
    return !each.second.is_connected && now >= each.second.since + limits_.leave;
  });
  view_ = made;
  made_at_ = now;
  return made;
}

std::optional<TimePoint> ViewKeeper::due() const {
  const auto is_connected = [](const auto& each) { return each.second.is_connected; };
  if (is_used_up() || std::ranges::none_of(known_, is_connected)) return std::nullopt;
  if (view_.epoch == 0) return settled_at_;
  std::optional<TimePoint> first;
  for (const auto& [name, known] : known_) {
    const auto at = changes_at(known);
    if (at && (!first || *at < *first)) first = at;
  }
  return first;
}

}  // namespace vpfs::members
