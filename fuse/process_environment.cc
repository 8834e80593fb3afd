#include "fuse/process_environment.h"

#include <algorithm>
#include <cstddef>
#include <fstream>

#include <fmt/format.h>

#include "fuse/layout/host_list.h"

namespace vpfs::fuse {
namespace {

// Environments are as long as their owners make them.
constexpr std::size_t kMostRead = std::size_t{1} << 20;
constexpr std::size_t kMostNodes = 65536;

// One name a line; a node is there as often as it has processors.
std::vector<std::string> nodes_in_file(const std::string& path) {
  std::vector<std::string> nodes;
  std::ifstream file(path);
  for (std::string line; nodes.size() < kMostNodes && std::getline(file, line);) {
    if (!line.empty() && (nodes.empty() || nodes.back() != line)) nodes.push_back(line);
  }
  return nodes;
}

}  // namespace

std::string environment_of(pid_t process) {
  std::ifstream in(fmt::format("/proc/{}/environ", process), std::ios::binary);
  std::string text(kMostRead, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
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
  if (const auto list = variable_in(environment, "SLURM_JOB_NODELIST")) return hosts_in(*list);
  if (const auto file = variable_in(environment, "PBS_NODEFILE")) {
    return nodes_in_file(std::string(*file));
  }
  return {};
}

}  // namespace vpfs::fuse
