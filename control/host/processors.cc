#include "control/host/processors.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <sched.h>

namespace vpfs::control {
namespace {

constexpr int kMostProcessors = 8192;  // of Linux

std::size_t by_affinity() {
  const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(kMostProcessors),
                                                             [](cpu_set_t* all) { CPU_FREE(all); });
  const std::size_t size = CPU_ALLOC_SIZE(kMostProcessors);
  if (set == nullptr || ::sched_getaffinity(0, size, set.get()) != 0) {
    return std::thread::hardware_concurrency();
  }
  return static_cast<std::size_t>(CPU_COUNT_S(size, set.get()));
}

// "QUOTA PERIOD" in microseconds; "max PERIOD": there is none.
std::optional<double> quota_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  double quota = 0;
  double period = 0;
  if (!(in >> quota >> period) || quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

// The line "0::/PATH" has the group of version 2.
std::optional<std::string> own_group(const std::filesystem::path& root) {
  std::ifstream in(root / "proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("0::/")) return line.substr(4);
  }
  return std::nullopt;
}

}  // namespace

Processors Processors::here(const std::filesystem::path& root) {
  Processors found = {.count = std::max<std::size_t>(by_affinity(), 1), .has_quota = false};
  const std::optional<std::string> group = own_group(root);
  if (!group) return found;
  std::filesystem::path folder = root / "sys/fs/cgroup";
  const auto take = [&] {
    const std::optional<double> quota = quota_of(folder / "cpu.max");
    if (!quota || *quota >= static_cast<double>(found.count)) return;
    found = {.count = static_cast<std::size_t>(std::max(std::ceil(*quota), 1.0)),
             .has_quota = true};
  };
  take();
  for (const std::filesystem::path& part : std::filesystem::path(*group)) {
    folder /= part;
    take();
  }
  return found;
}

}  // namespace vpfs::control
