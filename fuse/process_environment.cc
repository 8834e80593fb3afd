#include "fuse/process_environment.h"

#include <algorithm>
#include <cstddef>

#include "fuse/layout/host_list.h"

namespace vpfs::fuse {
namespace {

// Environments are as long as their owners make them.
constexpr std::size_t kMostRead = std::size_t{1} << 20;

}  // namespace

std::string environment_of(pid_t process, std::string_view processes) {
  return read_process_file(processes, process, "environ", kMostRead);
}

std::optional<std::string_view> variable_in(std::string_view environment, std::string_view name) {
  for (std::string_view rest = environment; !rest.empty();) {
    const std::string_view text = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(std::min(text.size() + 1, rest.size()));
    if (text.starts_with(name) && text.size() > name.size() && text[name.size()] == '=') {
      return text.substr(name.size() + 1);
    }
  }
  return std::nullopt;
}

std::vector<std::string> job_nodes_in(std::string_view environment) {
  const auto list = variable_in(environment, "SLURM_JOB_NODELIST");
  return list ? hosts_in(*list) : std::vector<std::string>();
}

}  // namespace vpfs::fuse
