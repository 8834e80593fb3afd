#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "control/store/site_store.h"

namespace vpfs::election {

// A standby's view of the office: which coordinator leads, and when to claim it. A pure state
// machine; `now` never goes back.
//
// It claims when the office is vacant; when the leader has not confirmed it for a lease, where the
// store shows that; and as soon as the process of a leader that has answered is gone: its host says
// that none listens on its port, or another one does. That may be wrong, since a firewall can say
// so too. So it decides only when to claim, never from when on caps are safe, and a standby that
// has just led waits before it believes it again.
class Candidacy {
 public:
  explicit Candidacy(const control::SiteStore::Traits& traits) : traits_(traits) {}

  // What the store has answered to a look() that began at `asked`.
  void saw(control::SiteStore::Seen seen, TimePoint asked, TimePoint now);
  // The process of that term's leader answers.
  void found_alive(std::uint64_t term);
  // It is not where it should be. A leader that has not answered yet may be about to listen.
  void found_gone(std::uint64_t term, TimePoint now);
  // This process has lost the office, or another one was quicker.
  void lost(TimePoint now) { lost_at_ = now; }

  // Whether to claim the office as it was seen last.
  [[nodiscard]] bool claims(TimePoint now) const;
  // What was seen last; nothing: nothing was.
  [[nodiscard]] const std::optional<control::SiteStore::Seen>& seen() const { return seen_; }
  // The leader, as far as is known; null: there is none.
  [[nodiscard]] const control::Leadership* leader() const;
  // The process of the leader that was seen last has ended, as far as is known.
  [[nodiscard]] bool leader_is_gone() const {
    return gone_since_.has_value() || (seen_ && seen_->leader && seen_->leader->has_resigned);
  }
  // From when on no caps of any leader before are in force, if the office was claimed as it was
  // seen by `now`.
  [[nodiscard]] TimePoint clear_from(const control::SiteStore::Seen& claimed, TimePoint now) const;

 private:
  [[nodiscard]] bool has_stopped_beating(TimePoint now) const;

  const control::SiteStore::Traits traits_;
  std::optional<control::SiteStore::Seen> seen_;
  TimePoint beat_at_ = {};  // when it was seen first
  TimePoint asked_at_ = {};
  std::uint64_t answered_ = 0;  // the term of a leader that has answered
  std::optional<TimePoint> gone_since_;
  std::optional<TimePoint> lost_at_;
};

}  // namespace vpfs::election
