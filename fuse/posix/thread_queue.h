#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

#include "fuse/posix/io_request.h"
#include "fuse/user_shares.h"

namespace vpfs::fuse {

// Which requests may occupy a thread with a call that may wait in the file system below, and which
// wait for one: a queue for each user, which take turns. A request counts for the user `charged`.
// It decides only; threads are its owner's. Not thread-safe.
class ThreadQueue {
 public:
  // `threads` are shared by UserShares.
  explicit ThreadQueue(std::size_t threads) : shares_(threads) {}

  // The user occupies one more thread, if that is possible now.
  [[nodiscard]] bool enter(uid_t uid);
  // As enter(); if it is not possible, the request waits here. REQUIRES: `charged` is set.
  [[nodiscard]] bool enter_or_wait(IoRequest& request);
  // The request waits here, whether that is possible or not.
  void wait(IoRequest& request);
  // Whether the user occupies many threads while others come too, so that its calls should leave
  // the processor to theirs.
  [[nodiscard]] bool yields(uid_t uid) const;
  // A user has one thread less. Appends to `go` those that have entered instead: mostly one.
  void leave(uid_t uid, std::vector<IoRequest*>& go) {
    leave(uid);
    admit(go);
  }
  // The same in parts: none enters before admit().
  void leave(uid_t uid) { shares_.give_back(uid, 1); }
  void admit(std::vector<IoRequest*>& go);

  // The holder of a request that waits here under the kernel's number.
  [[nodiscard]] std::optional<Holder> holder_of(std::uint64_t unique) const;
  // Takes a waiting request out. Null: it does not wait any more.
  [[nodiscard]] IoRequest* withdraw(std::uint64_t unique);
  [[nodiscard]] std::vector<IoRequest*> withdraw_all();
  // Those that wait here; they go on waiting.
  [[nodiscard]] std::vector<IoRequest*> all() const;

  [[nodiscard]] std::size_t busy() const { return shares_.taken(); }
  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }
  struct User {
    uid_t uid = 0;
    std::size_t busy = 0;
    std::size_t waiting = 0;
  };
  // Users whose requests wait.
  [[nodiscard]] std::vector<User> users_that_wait() const;

 private:
  // The last two users that have come, and when.
  struct Seen {
    uid_t uid = 0;
    std::uint64_t at = 0;  // calls; 0: never
  };

  void come(uid_t uid);

  UserShares shares_;
  std::uint64_t calls_ = 0;
  Seen last_, before_;
  std::unordered_map<uid_t, std::deque<IoRequest*>> queues_;  // none is empty
  std::deque<uid_t> turns_;                                   // of the users of queues_
  std::unordered_map<std::uint64_t, IoRequest*> waiting_;
};

}  // namespace vpfs::fuse
