#pragma once

#include <chrono>
#include <csignal>
#include <thread>
#include <vector>

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

namespace vpfs::test {

// A process of a user whose threads each do something once.
class ThreadsOf {
 public:
  template <typename Act>
  ThreadsOf(uid_t uid, unsigned count, Act act) : process_(::fork()) {
    if (process_ != 0) return;
    if (::setgid(uid) != 0 || ::setuid(uid) != 0) ::_exit(111);
    std::vector<std::thread> all;
    for (unsigned i = 0; i < count; ++i) all.emplace_back([act, i] { act(i); });
    for (std::thread& each : all) each.join();
    ::_exit(0);
  }
  ~ThreadsOf() {
    if (process_ > 0) (void)end();
  }
  ThreadsOf(const ThreadsOf&) = delete;
  ThreadsOf& operator=(const ThreadsOf&) = delete;

  // Kills it. Whether it was gone within five seconds.
  [[nodiscard]] bool end() {
    ::kill(process_, SIGKILL);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (::waitpid(process_, nullptr, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    process_ = -1;
    return true;
  }
  [[nodiscard]] pid_t process() const { return process_; }
  // Waits until all threads have done it.
  void wait() {
    ::waitpid(process_, nullptr, 0);
    process_ = -1;
  }

 private:
  pid_t process_;
};

}  // namespace vpfs::test
