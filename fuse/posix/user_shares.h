#pragma once

#include <cstddef>
#include <unordered_map>

#include <sys/types.h>

namespace vpfs::fuse {

// Divides a number of equal places among users so that none can take them all: a user may take one
// more while it has fewer than are free (the dynamic threshold of Choudhury and Hahne 1998, with
// factor 1). Alone it gets half of the places, k users together get 1 / (k + 1) each, and one that
// comes anew always finds a place. Nothing is set aside for users that are not there.
//
// Not thread-safe.
class UserShares {
 public:
  // `shared` false: the mount has one user, which may take all places.
  explicit UserShares(std::size_t places, bool shared = true) : places_(places), shared_(shared) {}

  [[nodiscard]] bool may_take(uid_t user) const {
    return shared_ ? taken_by(user) < free() : free() > 0;
  }
  // REQUIRES: may_take(), or the caller accepts that places are exceeded.
  void take(uid_t user) {
    ++taken_;
    ++by_user_[user];
  }
  void give_back(uid_t user) {
    --taken_;
    const auto place = by_user_.find(user);
    if (--place->second == 0) by_user_.erase(place);
  }

  [[nodiscard]] std::size_t free() const { return places_ > taken_ ? places_ - taken_ : 0; }
  [[nodiscard]] std::size_t taken() const { return taken_; }
  [[nodiscard]] std::size_t taken_by(uid_t user) const {
    const auto place = by_user_.find(user);
    return place == by_user_.end() ? 0 : place->second;
  }

 private:
  std::size_t places_;
  bool shared_;
  std::size_t taken_ = 0;
  std::unordered_map<uid_t, std::size_t> by_user_;
};

}  // namespace vpfs::fuse
