#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "control/election/tenure.h"
#include "control/store/leadership.h"
#include "control/store/site_store.h"
#include "control/store/state_store.h"

namespace vpfs::coordinator {

// What a coordinator begins its time in office with.
struct Elected {
  control::Leadership own;
  election::Tenure tenure;
  TimePoint clear_from;  // no caps of any leader before are in force from then on
  control::StateStore::Loaded records;
  std::string gone_member = {};  // the leader before, if its process has ended
};

// Takes the office of a store without standbys. `own` has no term yet; it gets the next one, and
// `least_term` at least. The error names the place of what is damaged.
[[nodiscard]] Result<Elected> claim_at_once(control::SiteStore& store, const Clock& clock,
                                            control::Leadership own, std::uint64_t least_term);

}  // namespace vpfs::coordinator
