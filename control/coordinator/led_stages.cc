#include "control/coordinator/led_stages.h"

#include "base/check.h"

namespace vpfs::coordinator {

void LedStages::joined(std::uint64_t incarnation) {
  Led& led = all_[incarnation];
  ++led.connections;
  gone_.erase(led.left_as);
  led.left_as = 0;
}

void LedStages::left(std::uint64_t incarnation, bool was_sent_cycle) {
  const auto place = all_.find(incarnation);
  VPFS_ASSERT(place != all_.end() && place->second.connections > 0);
  Led& led = place->second;
  led.was_sent_cycle |= was_sent_cycle;
  if (--led.connections > 0) return;
  if (!led.was_sent_cycle) {
    all_.erase(place);
    return;
  }
  led.left_as = ++last_;
  gone_.emplace(led.left_as, incarnation);
  if (gone_.size() <= most_gone_) return;
  all_.erase(gone_.begin()->second);
  gone_.erase(gone_.begin());
}

}  // namespace vpfs::coordinator
