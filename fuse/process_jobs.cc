#include "fuse/process_jobs.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "fuse/process_environment.h"

namespace vpfs::fuse {
namespace {

constexpr Duration kKept = std::chrono::seconds(10);
// Numbers of processes come again after thousands of others.
constexpr Duration kBelieved = std::chrono::milliseconds(100);
constexpr std::size_t kMostKnown = 4096;
constexpr std::size_t kLongestJob = 128;

std::string read_start_of(const std::string& path, std::size_t most) {
  std::ifstream in(path, std::ios::binary);
  std::string text(most, '\0');
  in.read(text.data(), static_cast<std::streamsize>(most));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

// When the process began; 0: it is gone. The name before it may hold anything, ") " too.
std::uint64_t start_of(pid_t process) {
  const std::string text = read_start_of(fmt::format("/proc/{}/stat", process), 1024);
  std::size_t at = text.rfind(") ");
  if (at == std::string::npos) return 0;
  constexpr int kFieldsBefore = 20;  // of field 22 from the state on, which is field 3
  for (int i = 0; i < kFieldsBefore && at != std::string::npos; ++i) at = text.find(' ', at + 1);
  if (at == std::string::npos) return 0;
  std::uint64_t start = 0;
  (void)std::from_chars(text.data() + at + 1, text.data() + text.size(), start);
  return start;
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

std::string ProcessJobs::job_of(pid_t process) {
  if (options_.always) return *options_.always;
  if (options_.variables.empty() || process <= 0) return "";
  const TimePoint now = clock_.now();
  {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(process);
    if (found != known_.end() && now < found->second.believed_until) return found->second.job;
  }
  const std::uint64_t started = start_of(process);
  if (started == 0) return "";
  {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(process);
    if (found != known_.end() && found->second.started == started && now < found->second.until) {
      found->second.believed_until = now + kBelieved;
      return found->second.job;
    }
  }
  std::string job = job_in(environment_of(process), options_.variables);
  const std::lock_guard lock(mutex_);
  if (known_.size() >= kMostKnown) known_.clear();
  known_[process] = {
      .started = started, .job = job, .until = now + kKept, .believed_until = now + kBelieved};
  return job;
}

}  // namespace vpfs::fuse
