#include "test/support/stopped_thread.h"

#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "test/support/process.h"

namespace vpfs::test {

std::optional<StoppedThread> StoppedThread::stop(pid_t process, const std::string& name) {
  for (const auto& task :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/task", process))) {
    if (read_text(task.path() / "comm") != name + "\n") continue;
    // A signal stops all threads of a process, a debugger stops one.
    const pid_t thread = std::stoi(task.path().filename());
    if (::ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) != 0) return std::nullopt;
    StoppedThread stopped(thread);
    int status = 0;
    if (::ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) != 0 ||
        ::waitpid(thread, &status, __WALL) != thread || !WIFSTOPPED(status)) {
      return std::nullopt;
    }
    return stopped;
  }
  return std::nullopt;
}

StoppedThread::StoppedThread(StoppedThread&& other) noexcept
    : thread_(std::exchange(other.thread_, 0)) {}

StoppedThread::~StoppedThread() {
  if (thread_ != 0) ::ptrace(PTRACE_DETACH, thread_, nullptr, nullptr);
}

}  // namespace vpfs::test
