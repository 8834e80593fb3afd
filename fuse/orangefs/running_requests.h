#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>

#include <sys/types.h>

namespace vpfs::fuse::pvfs {

// The requests of the kernel that one worker has taken and not answered yet. Thread-safe: another
// worker may be told that a process does not wait any more.
class RunningRequests {
 public:
  void add(std::uint64_t unique, pid_t process) {
    const std::lock_guard lock(mutex_);
    all_.emplace(unique, process);
  }
  void remove(std::uint64_t unique) {
    const std::lock_guard lock(mutex_);
    all_.erase(unique);
  }
  // Whose request it is; nothing: it is not here.
  [[nodiscard]] std::optional<pid_t> process_of(std::uint64_t unique) const {
    const std::lock_guard lock(mutex_);
    const auto found = all_.find(unique);
    return found == all_.end() ? std::nullopt : std::optional(found->second);
  }
  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return all_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, pid_t> all_;
};

}  // namespace vpfs::fuse::pvfs
