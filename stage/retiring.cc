// Retiring: the part of Stage that frees the numbers of what is idle.
#include <algorithm>

#include "base/check.h"
#include "stage/stage.h"

namespace vpfs::stage {

// Virtual PFSes of the configuration stay while they are in it.
bool Stage::is_idle(AppId app, TimePoint now) const {
  const VirtualPfs& pfs = table_[app];
  return table_.is_there(app) && (pfs.from_template || pfs.info->removed) && pfs.requests == 0 &&
         now - pfs.last_used >= idle_for_;
}

void Stage::find_idle(std::size_t rows, TimePoint now) {
  for (std::size_t looked = 0; looked < std::min(rows, table_.size()); ++looked) {
    if (next_row_ >= table_.size()) next_row_ = 0;
    const AppId app{static_cast<std::uint32_t>(next_row_++)};
    if (table_[app].in_idle_list || !is_idle(app, now)) continue;
    table_[app].retiring = table_[app].in_idle_list = true;
    idle_.push_back(app);
  }
  shadows_.find_idle(rows, idle_for_, now);
}

void Stage::retire(std::size_t most, TimePoint now) {
  for (; most > 0 && shadows_.has_idle(); --most) shadows_.retire_one(now);
  for (; most > 0 && !idle_.empty(); --most) {
    const AppId app = idle_.back();
    idle_.pop_back();
    table_[app].in_idle_list = false;
    if (table_[app].retiring) retire(app, now);
  }
}

void Stage::retire(AppId app, TimePoint now) {
  VPFS_ASSERT(table_[app].requests == 0);
  for (Lanes::Lane& lane : lanes_) {
    keep_hold_times(lane, app, now);
    lane.scheduler->remove(app, now);
  }
  allocations_.forget(app);
  table_.retire(app);
}

}  // namespace vpfs::stage
