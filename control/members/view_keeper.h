#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "control/members/view.h"

namespace vpfs::members {

// A leader's view of the members: decides which there are, so that no stage changes its member
// without need. A pure state machine; `now` never goes back.
//
// A leader that begins takes over the last view, which members tell it when they join. It waits for
// those in it, but not for long, and then makes its own. Afterwards a member that leaves has a
// moment to come back, and members that join together come into one view.
class ViewKeeper {
 public:
  struct Limits {
    // For the members of the last view to join.
    Duration settle = std::chrono::milliseconds(800);
    // From when a member joins until the view has it.
    Duration join = std::chrono::milliseconds(200);
    // From when a member leaves until the view is without it.
    Duration leave = std::chrono::milliseconds(300);
    // From one view to the next, at least.
    Duration between = std::chrono::milliseconds(100);
    // One that leaves for a third time within so long waits longer to join, twice as long each
    // time.
    Duration calm = std::chrono::seconds(60);
    Duration most_join = std::chrono::seconds(30);
  };

  // `term`: of the leader, by term_of_members().
  ViewKeeper(std::uint64_t term, TimePoint now) : ViewKeeper(term, now, Limits()) {}
  ViewKeeper(std::uint64_t term, TimePoint now, const Limits& limits)
      : limits_(limits), term_(term), settled_at_(now + limits.settle) {}

  // That member has ended, and does not join soon.
  void is_gone(std::string name) { gone_.insert(std::move(name)); }
  // A member is connected. `told`: the last view that it has.
  void joined(const Member& member, const View& told, TimePoint now);
  void left(std::string_view name, TimePoint now);

  // The next view, if it is time for one.
  [[nodiscard]] std::optional<View> next(TimePoint now);
  // When to call next() again, besides after a member has joined or left.
  [[nodiscard]] std::optional<TimePoint> due() const;

  // The last one; its epoch is zero before the first.
  [[nodiscard]] const View& view() const { return view_; }
  // No epoch is left: the leader needs another term.
  [[nodiscard]] bool is_used_up() const { return epochs_ + 1 >= kEpochsOfATerm; }

 private:
  struct Known {
    Member member;
    bool is_connected = false;
    TimePoint since;  // it is so
  };
  // How often a member has left lately.
  struct Leaving {
    std::uint32_t times = 0;
    TimePoint last;
  };

  [[nodiscard]] bool is_settled(TimePoint now) const;
  [[nodiscard]] bool has(std::string_view name) const;
  void forget_leaving(TimePoint now);
  [[nodiscard]] Duration join_after(const std::string& name) const;
  // When the view changes because of it; nothing: it does not.
  [[nodiscard]] std::optional<TimePoint> changes_at(const Known& known) const;

  const Limits limits_;
  const std::uint64_t term_;
  const TimePoint settled_at_;
  std::uint64_t epochs_ = 0;  // used so far
  std::map<std::string, Known, std::less<>> known_;
  std::set<std::string, std::less<>> gone_;
  std::map<std::string, Leaving, std::less<>> leaving_;
  View last_;  // of the leader before
  View view_;
  TimePoint made_at_;
};

}  // namespace vpfs::members
