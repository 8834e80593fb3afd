#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace vpfs::fuse {

// What the kernel has open. It need not release everything when a mount ends. Thread-safe.
template <typename Object>
class Handles {
 public:
  using Pointer = std::shared_ptr<Object>;  // I/O under way shares it with the kernel

  [[nodiscard]] std::uint64_t add(Pointer object) {
    Object* const handle = object.get();
    const std::lock_guard lock(mutex_);
    open_.emplace(handle, std::move(object));
    return reinterpret_cast<std::uint64_t>(handle);  // NOLINT: the kernel gives it back as it is
  }
  // REQUIRES: add() gave the handle, and it is not closed.
  [[nodiscard]] static Object& at(std::uint64_t handle) {
    return *reinterpret_cast<Object*>(handle);  // NOLINT
  }
  void close(std::uint64_t handle) {
    Pointer gone;  // without the lock
    const std::lock_guard lock(mutex_);
    const auto found = open_.find(&at(handle));
    gone = std::move(found->second);
    open_.erase(found);
  }
  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return open_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<const Object*, Pointer> open_;
};

}  // namespace vpfs::fuse
