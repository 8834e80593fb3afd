#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "control/store/site_store.h"

namespace vpfs::election {

// The office of a store in virtual time, as the calls of several coordinators reach it. A lease
// ends by the store's own clock, or shows itself by beats that stop.
class ModelStore {
 public:
  using SiteStore = control::SiteStore;

  // `compares`: false lets the last claimant win, as a store without compare-and-swap would.
  ModelStore(const SiteStore::Traits& traits, bool compares)
      : traits_(traits), compares_(compares) {}

  [[nodiscard]] SiteStore::Seen look(TimePoint now) const {
    SiteStore::Seen seen;
    if (!leader_) return seen;
    seen.leader = leader_;
    seen.is_vacant =
        leader_->has_resigned || (!traits_.shows_beats && now >= confirmed_ + traits_.lease);
    seen.beat = traits_.shows_beats ? beat_ : 0;
    seen.version = std::to_string(version_);
    seen.least_term = leader_->term + 1;
    return seen;
  }
  [[nodiscard]] bool claim(const SiteStore::Seen& seen, const control::Leadership& own,
                           TimePoint now) {
    const std::string version = leader_ ? std::to_string(version_) : "";
    if (compares_ && seen.version != version) return false;
    leader_ = own;
    ++version_;
    confirmed_ = now;
    return true;
  }
  // By the incarnation: a store without compare-and-swap would not know terms apart either.
  [[nodiscard]] bool confirm(std::uint64_t incarnation, TimePoint now) {
    if (!leader_ || leader_->incarnation != incarnation) return false;
    if (!traits_.shows_beats && now >= confirmed_ + traits_.lease) return false;
    ++beat_;
    confirmed_ = now;
    return true;
  }
  void resign(std::uint64_t incarnation) {
    if (!leader_ || leader_->incarnation != incarnation) return;
    leader_->has_resigned = true;
    ++version_;
  }

 private:
  const SiteStore::Traits traits_;
  const bool compares_;
  std::optional<control::Leadership> leader_;
  std::uint64_t version_ = 0;
  std::uint64_t beat_ = 0;
  TimePoint confirmed_ = {};
};

}  // namespace vpfs::election
