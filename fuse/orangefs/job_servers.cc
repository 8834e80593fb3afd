#include "fuse/orangefs/job_servers.h"

#include <optional>
#include <utility>

#include <spdlog/spdlog.h>

#include "fuse/process_environment.h"

namespace vpfs::fuse::pvfs {
namespace {

constexpr std::string_view kVariable = "SLURM_JOB_NODELIST";
constexpr Duration kAnswerStays = std::chrono::milliseconds(100);
constexpr std::size_t kMostProcesses = 4096;
constexpr std::size_t kMostLists = 256;
constexpr std::size_t kMostListBytes = std::size_t{1} << 20;

}  // namespace

JobServers::Answer JobServers::of(pid_t process, uid_t uid, gid_t gid) {
  const TimePoint now = clock_.now();
  {
    const std::lock_guard lock(mutex_);
    const auto found = processes_.find(process);
    if (found != processes_.end() && now < found->second.until) return found->second.answer;
  }
  const std::optional<std::string> environment = environments_.read(process, uid, gid);
  const auto list = environment ? variable_in(*environment, kVariable) : std::nullopt;
  Answer answer = list ? of_list(*list, process) : nullptr;
  const std::lock_guard lock(mutex_);
  if (processes_.size() >= kMostProcesses) processes_.clear();
  processes_.insert_or_assign(process, Known{.answer = answer, .until = now + kAnswerStays});
  return answer;
}

JobServers::Answer JobServers::of_list(std::string_view list, pid_t process) {
  if (list.empty()) return nullptr;
  std::string text(list);
  {
    const std::lock_guard lock(mutex_);
    const auto found = lists_.find(text);
    if (found != lists_.end()) return found->second;
  }
  Answer answer;
  Result<std::vector<bool>> read = servers_.on_nodes(list);
  if (read) {
    answer = std::make_shared<const std::vector<bool>>(std::move(*read));
  } else {
    // Lines that differ in their numbers only are counted, not written, when they are many.
    spdlog::warn(
        "{} of process {} does not say where its job runs, {}. Where that matters, its new files "
        "get the layout 'disperse'",
        kVariable, process, read.error().message);
  }
  const std::lock_guard lock(mutex_);
  if (lists_.size() >= kMostLists || list_bytes_ + text.size() > kMostListBytes) {
    lists_.clear();
    list_bytes_ = 0;
  }
  list_bytes_ += text.size();
  if (!lists_.emplace(std::move(text), answer).second) list_bytes_ -= list.size();
  return answer;
}

}  // namespace vpfs::fuse::pvfs
