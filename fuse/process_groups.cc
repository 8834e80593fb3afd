#include "fuse/process_groups.h"

#include <charconv>
#include <fstream>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace vpfs::fuse {
namespace {

constexpr Duration kGroupsStay = std::chrono::seconds(1);
constexpr std::size_t kMostProcessesWithGroups = 4096;

std::vector<gid_t> read_groups(pid_t process) {
  std::ifstream status(fmt::format("/proc/{}/status", process));
  constexpr std::string_view kGroups = "Groups:";
  std::vector<gid_t> groups;
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(kGroups)) continue;
    const char* at = line.data() + kGroups.size();
    const char* const end = line.data() + line.size();
    while (at < end) {
      gid_t group = 0;
      const auto [next, error] = std::from_chars(at, end, group);
      if (error == std::errc()) groups.push_back(group);
      at = next == at ? at + 1 : next;
    }
    break;
  }
  return groups;
}

}  // namespace

std::vector<gid_t> ProcessGroups::of(pid_t process, uid_t uid, gid_t gid) {
  const TimePoint now = clock_.now();
  {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(process);
    if (found != known_.end() && now < found->second.until && found->second.uid == uid &&
        found->second.gid == gid) {
      return found->second.groups;
    }
  }
  std::vector<gid_t> groups = read_groups(process);
  const std::lock_guard lock(mutex_);
  if (known_.size() >= kMostProcessesWithGroups) known_.clear();
  known_[process] = {.uid = uid, .gid = gid, .groups = groups, .until = now + kGroupsStay};
  return groups;
}

}  // namespace vpfs::fuse
