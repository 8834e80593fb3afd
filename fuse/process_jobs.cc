#include "fuse/process_jobs.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "fuse/process_environment.h"
#include "fuse/slurm_cgroup.h"

namespace vpfs::fuse {
namespace {

constexpr Duration kKept = std::chrono::seconds(10);
// Numbers of processes come again after thousands of others.
constexpr Duration kNumberIsTheSame = std::chrono::milliseconds(100);
// How often a node without Slurm's control groups is searched for them.
constexpr Duration kLookedFor = std::chrono::seconds(10);
constexpr std::size_t kMostProcesses = 4096;
constexpr std::size_t kLongestJob = 128;

// When the process began; 0: it is gone. The name before it may hold anything, ") " too.
std::uint64_t start_of(std::string_view processes, pid_t process) {
  std::array<char, 1024> buffer;
  const std::string_view text = read_process_file(processes, process, "stat", buffer);
  std::size_t at = text.rfind(") ");
  if (at == std::string_view::npos) return 0;
  constexpr int kFieldsBefore = 20;  // of field 22 from the state on, which is field 3
  for (int i = 0; i < kFieldsBefore && at != text.npos; ++i) at = text.find(' ', at + 1);
  if (at == text.npos) return 0;
  std::uint64_t start = 0;
  (void)std::from_chars(text.data() + at + 1, text.data() + text.size(), start);
  return start;
}

// A group that a user nests deeply may have lines that do not fit. What is behind them is not
// found, so the process has no job.
std::string job_of_cgroup(std::string_view processes, pid_t process) {
  std::array<char, std::size_t{8} * 1024> buffer;
  const auto job = slurm_job_in(read_process_file(processes, process, "cgroup", buffer));
  return std::string(job.value_or(""));
}

bool has_entry(const std::filesystem::path& directory, bool (*is_wanted)(std::string_view)) {
  std::error_code error;
  std::filesystem::directory_iterator each(directory, error);
  for (; !error && each != std::filesystem::directory_iterator(); each.increment(error)) {
    if (is_wanted(each->path().filename().string())) return true;
  }
  return false;
}

// v2 has one hierarchy, which is in `unified` beside those of v1, each of which has a directory.
bool finds_slurm(const std::filesystem::path& cgroups) {
  constexpr const char* kSlice = "system.slice";
  if (has_entry(cgroups / kSlice, is_slurm_root_v2)) return true;
  if (has_entry(cgroups / "unified" / kSlice, is_slurm_root_v2)) return true;
  std::error_code error;
  std::filesystem::directory_iterator each(cgroups, error);
  for (; !error && each != std::filesystem::directory_iterator(); each.increment(error)) {
    if (has_entry(each->path(), is_slurm_root_v1)) return true;
  }
  return false;
}

bool is_good_job(std::string_view job) {
  return !job.empty() && job.size() <= kLongestJob &&
         std::ranges::all_of(job, [](char each) { return each > ' ' && each <= '~'; });
}

}  // namespace

std::string job_in(std::string_view environment, const std::vector<std::string>& variables) {
  for (const std::string& variable : variables) {
    const std::optional<std::string_view> value = variable_in(environment, variable);
    if (value && is_good_job(*value)) return std::string(*value);
  }
  return "";
}

std::string ProcessJobs::job_of(pid_t process, uid_t uid, gid_t gid) {
  if (options_.always) return *options_.always;
  if (process <= 0) return "";
  const TimePoint now = clock_.now();
  bool may_be_kept = false;  // what its environment said
  {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(process);
    if (found != known_.end()) {
      const Known& known = found->second;
      if (now < known.believed_until) return known.job;
      may_be_kept = known.started != 0 && now < known.until;
    }
  }
  if (options_.source == JobSource::environment) return job_of_environment(process, uid, gid, now);
  if (may_be_kept && !has_slurm_) return job_of_environment(process, uid, gid, now);
  std::string job = job_of_cgroup(options_.processes, process);
  if (!job.empty()) has_slurm_ = true;
  if (options_.source == JobSource::automatic && !has_slurm(now)) {
    return job_of_environment(process, uid, gid, now);
  }
  keep(process, 0, job, now);
  return job;
}

std::string ProcessJobs::job_of_environment(pid_t process, uid_t uid, gid_t gid, TimePoint now) {
  if (options_.variables.empty()) return "";
  const std::uint64_t started = start_of(options_.processes, process);
  if (started == 0) return "";
  {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(process);
    if (found != known_.end() && found->second.started == started && now < found->second.until) {
      found->second.believed_until = now + kNumberIsTheSame;
      return found->second.job;
    }
  }
  const std::optional<std::string> environment = environments_.read(process, uid, gid);
  // One that could not be read now may be readable later.
  if (!environment) return "";
  std::string job = job_in(*environment, options_.variables);
  if (!environment->empty()) keep(process, started, job, now);
  return job;
}

void ProcessJobs::keep(pid_t process, std::uint64_t started, std::string_view job, TimePoint now) {
  const std::lock_guard lock(mutex_);
  if (known_.size() >= kMostProcesses) known_.clear();
  known_[process] = {.started = started,
                     .job = std::string(job),
                     .until = now + kKept,
                     .believed_until = now + kNumberIsTheSame};
}

bool ProcessJobs::has_slurm(TimePoint now) {
  if (has_slurm_) return true;
  {
    const std::lock_guard lock(mutex_);
    if (slurm_looked_for_ && now < *slurm_looked_for_ + kLookedFor) return false;
    slurm_looked_for_ = now;
  }
  if (finds_slurm(options_.cgroups)) has_slurm_ = true;
  return has_slurm_;
}

std::string_view ProcessJobs::source() {
  if (options_.always) return "option";
  if (options_.source == JobSource::environment) return "environment";
  if (options_.source == JobSource::cgroup || has_slurm(clock_.now())) return "cgroup";
  return "environment";
}

}  // namespace vpfs::fuse
