#include "proxy/handover/rest_watch.h"

namespace vpfs::proxy {
namespace {

// A connection that the manager does not have yet has to rest for longer, so that one with much to
// do is never offered.
constexpr Duration kFirstRest = std::chrono::seconds(1);
constexpr Duration kRest = std::chrono::milliseconds(200);

}  // namespace

bool RestWatch::is_due(std::uint64_t moved, TimePoint now) {
  if (keeper_ == nullptr) return false;
  if (std::exchange(moved_, moved) != moved || since_ == TimePoint()) {
    since_ = now;
    is_recorded_ = false;
    return false;
  }
  if (is_recorded_ || now - since_ < (place_ ? kRest : kFirstRest)) return false;
  return place_ || !keeper_->is_full();
}

void RestWatch::record(std::array<int, 2> sockets, SavedState state, TimePoint now) {
  const bool is_new = !place_;
  if (is_new) place_ = keeper_->take_place(now);
  since_ = now;  // if it cannot be done, again after a while
  if (!place_) return;
  is_recorded_ = keeper_->record(*place_, sockets, std::move(state));
  if (is_new) keeper_->offer(sockets);
}

void RestWatch::record_kept(std::array<int, 2> sockets, SavedState state, TimePoint now) {
  if (keeper_ == nullptr) return;
  place_ = keeper_->take_place(now);
  since_ = now;
  is_recorded_ = place_ && keeper_->record(*place_, sockets, std::move(state));
}

void RestWatch::forget(TimePoint now) {
  if (keeper_ != nullptr && place_) keeper_->give_back(*std::exchange(place_, std::nullopt), now);
  keeper_ = nullptr;
}

}  // namespace vpfs::proxy
