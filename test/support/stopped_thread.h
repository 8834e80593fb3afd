#pragma once

#include <optional>
#include <string>

#include <sys/types.h>

namespace vpfs::test {

// One thread of another program, stopped while this object lives; its other threads go on.
class StoppedThread {
 public:
  // The thread with this name. Nothing if there is none, or if this test may not stop it.
  [[nodiscard]] static std::optional<StoppedThread> stop(pid_t process, const std::string& name);
  ~StoppedThread();
  StoppedThread(StoppedThread&& other) noexcept;
  StoppedThread& operator=(StoppedThread&&) = delete;

 private:
  explicit StoppedThread(pid_t thread) : thread_(thread) {}
  pid_t thread_;
};

}  // namespace vpfs::test
