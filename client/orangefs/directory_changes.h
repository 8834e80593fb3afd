#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "base/clock.h"
#include "protocols/orangefs/basic_types.h"

namespace vpfs::client {

// When the sessions of one mount changed entries of directories last. Changes older than `kept` are
// forgotten. Any thread may call.
class DirectoryChanges {
 public:
  explicit DirectoryChanges(Duration kept) : kept_(kept) {}

  // `seconds`: the same time, since the epoch.
  void note(orangefs::Handle directory, std::uint64_t seconds, TimePoint now) {
    const std::lock_guard lock(mutex_);
    if (all_.size() >= room_) {
      std::erase_if(all_, [&](const auto& each) { return each.second.at + kept_ < now; });
      room_ = std::max(kRoom, 2 * all_.size());
    }
    all_.insert_or_assign(directory, Change{.at = now, .seconds = seconds});
  }
  // Since the epoch; nothing: there was no change at that time or later.
  [[nodiscard]] std::optional<std::uint64_t> since(orangefs::Handle directory,
                                                   TimePoint time) const {
    const std::lock_guard lock(mutex_);
    const auto found = all_.find(directory);
    if (found == all_.end() || found->second.at < time) return std::nullopt;
    return found->second.seconds;
  }
  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return all_.size();
  }

 private:
  static constexpr std::size_t kRoom = 64;
  struct Change {
    TimePoint at;
    std::uint64_t seconds = 0;
  };

  const Duration kept_;
  mutable std::mutex mutex_;
  std::unordered_map<orangefs::Handle, Change> all_;
  std::size_t room_ = kRoom;
};

}  // namespace vpfs::client
