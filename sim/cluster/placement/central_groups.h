#pragma once

#include <cstdint>

namespace vpfs::sim {

// Which I/O task accesses the central servers for a task. There are so many groups of consecutive
// tasks, the last one with the rest; the first task of each is its I/O task.
class CentralGroups {
 public:
  // REQUIRES: 1 <= io_tasks <= tasks.
  CentralGroups(std::uint32_t tasks, std::uint32_t io_tasks);

  [[nodiscard]] std::uint32_t leader(std::uint32_t task) const;
  // Behind the last task of the group of an I/O task.
  [[nodiscard]] std::uint32_t end(std::uint32_t leader) const;

 private:
  std::uint32_t tasks_;
  std::uint32_t groups_;
  std::uint32_t size_;
};

}  // namespace vpfs::sim
