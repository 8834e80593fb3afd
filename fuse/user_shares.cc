#include "fuse/user_shares.h"

#include "base/check.h"

namespace vpfs::fuse {
namespace {

// Users who have nothing are remembered, since they come again soon, but no more than so many.
constexpr std::size_t kMostIdle = 1024;

}  // namespace

std::uint64_t UserShares::taken_by(uid_t uid) const {
  const auto found = by_user_.find(uid);
  return found == by_user_.end() ? 0 : found->second;
}

std::uint64_t UserShares::room_for(uid_t uid) const {
  const std::uint64_t used = taken_by(uid) + taken_;
  return used >= bound_ ? 0 : bound_ - used;
}

void UserShares::take(uid_t uid, std::uint64_t amount) {
  by_user_[uid] += amount;
  taken_ += amount;
}

void UserShares::give_back(uid_t uid, std::uint64_t amount) {
  const auto found = by_user_.find(uid);
  VPFS_ASSERT(found != by_user_.end() && found->second >= amount);
  found->second -= amount;
  taken_ -= amount;
  if (by_user_.size() <= kMostIdle) return;
  std::erase_if(by_user_, [](const auto& each) { return each.second == 0; });
}

}  // namespace vpfs::fuse
