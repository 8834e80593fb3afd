#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include <sys/types.h>

#include "fuse/orangefs/open_objects.h"

namespace vpfs::fuse::pvfs {

// The requests of the kernel that one worker has taken and not answered yet. Thread-safe: another
// worker may be told that a process does not wait any more.
class RunningRequests {
 public:
  void add(std::uint64_t unique, pid_t process) {
    const std::lock_guard lock(mutex_);
    all_.emplace(unique, Request{.process = process, .changed = nullptr});
  }
  // The request begins to change the data of the file. False: no process waits for it any more, so
  // it does not begin.
  [[nodiscard]] bool begin_change(std::uint64_t unique, std::shared_ptr<OpenObject> file) {
    const std::lock_guard lock(mutex_);
    const auto found = all_.find(unique);
    if (found == all_.end()) return false;
    found->second.changed = std::move(file);
    return true;
  }
  // False: no process waits for its answer any more.
  bool remove(std::uint64_t unique) {
    const std::lock_guard lock(mutex_);
    return all_.erase(unique) > 0;
  }
  // No process waits for its answer from now on. False: it has one.
  [[nodiscard]] bool abandon(std::uint64_t unique) {
    const std::lock_guard lock(mutex_);
    const auto found = all_.find(unique);
    if (found == all_.end()) return false;
    if (found->second.changed) ++found->second.changed->abandoned_changes;
    all_.erase(found);
    return true;
  }
  // Whose request it is; nothing: it is not here.
  [[nodiscard]] std::optional<pid_t> process_of(std::uint64_t unique) const {
    const std::lock_guard lock(mutex_);
    const auto found = all_.find(unique);
    return found == all_.end() ? std::nullopt : std::optional(found->second.process);
  }
  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return all_.size();
  }

 private:
  struct Request {
    pid_t process = 0;
    std::shared_ptr<OpenObject> changed;  // shared with its openers
  };

  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, Request> all_;
};

}  // namespace vpfs::fuse::pvfs
