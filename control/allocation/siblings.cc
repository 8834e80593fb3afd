#include "control/allocation/siblings.h"

#include "base/check.h"
#include "control/allocation/cap_ledger.h"

namespace vpfs::allocation {

void Siblings::add(std::span<const Pair> pairs, Cost more, std::span<Grant> grants) {
  VPFS_ASSERT(grants.size() == pairs.size());
  Cost of_job = more;
  for (const Pair& pair : pairs) of_job = add_saturating(of_job, service_in_cycle(pair));
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    Known& known = known_[pairs[i].id];
    known.elsewhere = add_saturating(known.elsewhere, of_job - known.in_cycle);
    grants[i].elsewhere_total = known.elsewhere;
  }
}

Cost Siblings::service_in_cycle(const Pair& pair) {
  if (pair.id >= known_.size()) known_.resize(std::size_t{pair.id} + 1);
  Known& known = known_[pair.id];
  if (known.cycle == 0 || known.cycle + 1 != cycle_) {
    known = {.done = pair.done, .elsewhere = known.elsewhere};
  }
  known.cycle = cycle_;
  known.in_cycle = pair.done > known.done ? pair.done - known.done : 0;
  known.done = pair.done;
  return known.in_cycle;
}

}  // namespace vpfs::allocation
