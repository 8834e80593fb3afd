#pragma once

#include "base/saved/saved_state.h"
#include "net/inherited.h"

namespace vpfs::control {

// What a host has from the process whose place it takes: descriptors, which are used up, and what
// Host::offer() told there. Both outlive the host's start.
struct Handed {
  net::Inherited& inherited;
  const SavedState& offered;
};

}  // namespace vpfs::control
