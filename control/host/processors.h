#pragma once

#include <cstddef>
#include <filesystem>

namespace vpfs::control {

// The processors that this process may use.
struct Processors {
  std::size_t count = 1;   // by its affinity, and no more than the quota, rounded up
  bool has_quota = false;  // a control group (version 2) stops it when it has used its share

  // `root` is where /proc and /sys are; tests have their own.
  [[nodiscard]] static Processors here(const std::filesystem::path& root = "/");
};

}  // namespace vpfs::control
