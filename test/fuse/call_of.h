#pragma once

#include <chrono>
#include <csignal>
#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

namespace vpfs::test {

// A user's process that does one thing, and returns what `act` does. Its destructor waits for it.
class CallOf {
 public:
  CallOf(uid_t uid, const std::function<int()>& act) : process_(::fork()) {
    if (process_ != 0) return;
    ::_exit(::setgid(uid) == 0 && ::setuid(uid) == 0 ? act() : 111);
  }
  ~CallOf() {
    if (process_ > 0) ::waitpid(process_, nullptr, 0);
  }
  CallOf(CallOf&& other) noexcept : process_(std::exchange(other.process_, -1)) {}
  CallOf& operator=(CallOf&&) = delete;

  // What it returned, if it ends within that time; -1 after kill().
  [[nodiscard]] std::optional<int> result(std::chrono::milliseconds within) {
    const auto deadline = std::chrono::steady_clock::now() + within;
    for (;;) {
      int status = 0;
      if (::waitpid(process_, &status, WNOHANG) == process_) {
        process_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
      }
      if (std::chrono::steady_clock::now() > deadline) return std::nullopt;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  [[nodiscard]] pid_t process() const { return process_; }
  void kill() const { ::kill(process_, SIGKILL); }

 private:
  pid_t process_;
};

}  // namespace vpfs::test
