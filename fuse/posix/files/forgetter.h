#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <sys/types.h>

#include "fuse/channel.h"
#include "fuse/posix/files/inodes.h"
#include "fuse/user_shares.h"

namespace vpfs::fuse {

// Asks the kernel to forget the oldest files of users that make the mount keep many objects open
// (see Inodes). Directories stay: the kernel would detach what is mounted on them. It has threads
// of its own: the kernel takes such a question only when no other request is under way in the
// directory, so a thread that asks may wait for those that serve. It takes those that have come
// meanwhile together, and then the requests that have. So several threads keep up with several
// processes that walk one directory. Users share the threads: one whose directories are locked for
// long takes half of them.
class Forgetter {
 public:
  // Asks through the channel. The table outlives it.
  Forgetter(Inodes& inodes, std::unique_ptr<Channel> channel);
  ~Forgetter();
  Forgetter(const Forgetter&) = delete;
  Forgetter& operator=(const Forgetter&) = delete;

  // The user has many. Any thread; returns at once.
  void look_at(uid_t user);

 private:
  struct Turn {
    uid_t user = 0;
    std::size_t left = 0;  // objects to look at
  };

  void run();
  // REQUIRES: mutex_ is locked.
  [[nodiscard]] bool has_turn(uid_t user) const;
  // The first one whose user may have one more thread.
  [[nodiscard]] std::deque<Turn>::iterator next_turn();

  static constexpr std::size_t kThreads = 16;

  Inodes& inodes_;
  const std::unique_ptr<Channel> channel_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Turn> turns_;
  UserShares busy_{kThreads};  // threads that ask
  bool stops_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace vpfs::fuse
