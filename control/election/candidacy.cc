#include "control/election/candidacy.h"

#include <utility>

namespace vpfs::election {
namespace {

using control::Leadership;
using control::SiteStore;

bool is_same_office(const SiteStore::Seen& a, const SiteStore::Seen& b) {
  const auto term = [](const SiteStore::Seen& seen) { return seen.leader ? seen.leader->term : 0; };
  return term(a) == term(b);
}

}  // namespace

void Candidacy::saw(SiteStore::Seen seen, TimePoint asked, TimePoint now) {
  const bool is_same = seen_ && is_same_office(*seen_, seen);
  if (!is_same) gone_since_.reset();
  // It was written at some time before it was seen: a lease from now on is long enough.
  if (!is_same || seen_->beat != seen.beat) beat_at_ = now;
  asked_at_ = asked;
  seen_ = std::move(seen);
}

void Candidacy::found_alive(std::uint64_t term) {
  answered_ = term;
  gone_since_.reset();
}

void Candidacy::found_gone(std::uint64_t term, TimePoint now) {
  if (answered_ != term || !seen_ || !seen_->leader || seen_->leader->term != term) return;
  if (!gone_since_) gone_since_ = now;
}

bool Candidacy::has_stopped_beating(TimePoint now) const {
  // Clocks of two hosts do not run equally fast.
  const Duration lease = traits_.lease + traits_.lease / 8;
  // A store that was not read meanwhile has shown nothing.
  return traits_.shows_beats && now - beat_at_ >= lease && asked_at_ - beat_at_ >= lease;
}

bool Candidacy::claims(TimePoint now) const {
  if (!traits_.has_standbys) return seen_.has_value();
  if (!seen_) return false;
  if (seen_->is_vacant || has_stopped_beating(now)) return true;
  // It was looked at after that, so no other standby was quicker.
  if (!gone_since_ || asked_at_ < *gone_since_) return false;
  return !lost_at_ || now - *lost_at_ >= traits_.lease;
}

const Leadership* Candidacy::leader() const {
  if (!seen_ || !seen_->leader || seen_->is_vacant) return nullptr;
  return &*seen_->leader;
}

TimePoint Candidacy::clear_from(const SiteStore::Seen& claimed, TimePoint now) const {
  if (!claimed.leader) return TimePoint::min();
  const Leadership& before = *claimed.leader;
  // A leader of a store for one process has ended, since its store could be opened.
  const bool has_ended = !traits_.has_standbys || before.has_resigned ||
                         (traits_.vacancy_is_certain && claimed.is_vacant);
  const TimePoint last_cycle = has_ended ? now : now + traits_.lease;
  return last_cycle + before.lease + before.transit;
}

}  // namespace vpfs::election
