#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>

#include "base/result.h"

namespace vpfs::fuse {

// Starts a server's threads when others ask for them. A thread inherits the user, the groups and
// the umask of the one that starts it, and /dev/fuse is opened as the user of the moment. So both
// are done by one thread that never acts for a user, touches no file below and waits for no answer
// of the mount. Thread-safe.
class ThreadKeeper {
 public:
  // Starts one thread, or says why it cannot. It may throw what the library throws.
  using Start = std::function<Result<void>()>;

  explicit ThreadKeeper(Start start_one);
  ~ThreadKeeper();
  ThreadKeeper(const ThreadKeeper&) = delete;
  ThreadKeeper& operator=(const ThreadKeeper&) = delete;

  // Starts it, and the first thread. REQUIRES: the calling thread has never acted for a user.
  [[nodiscard]] Result<void> start();
  // Nothing is started after it. Waits for what is being started.
  void stop();

  // So many more threads. What cannot be started now is tried again ten times a second, and the log
  // says why at most once a minute.
  void want(std::size_t count);

 private:
  void keep();

  const Start start_one_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t wanted_ = 0;
  bool stops_ = false;
  std::thread thread_;
};

}  // namespace vpfs::fuse
