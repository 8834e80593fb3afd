#include "fuse/slurm_cgroup.h"

#include <algorithm>
#include <cstddef>

namespace vpfs::fuse {
namespace {

constexpr std::string_view kSlice = "system.slice";
constexpr std::string_view kScope = "slurmstepd.scope";
constexpr std::size_t kMostDigits = 10;  // job ids have 32 bits

// Takes the first component of a path off. Nothing: the path has no slash at its beginning.
std::optional<std::string_view> take_component(std::string_view& path) {
  if (!path.starts_with('/')) return std::nullopt;
  path.remove_prefix(1);
  const std::string_view component = path.substr(0, path.find('/'));
  path.remove_prefix(component.size());
  return component;
}

// "123" of "job_123".
std::optional<std::string_view> number_behind(std::string_view prefix, std::string_view component) {
  if (!component.starts_with(prefix)) return std::nullopt;
  const std::string_view number = component.substr(prefix.size());
  const bool is_number = !number.empty() && number.size() <= kMostDigits &&
                         (number.front() != '0' || number.size() == 1) &&
                         std::ranges::all_of(number, [](char c) { return c >= '0' && c <= '9'; });
  return is_number ? std::optional(number) : std::nullopt;
}

// "job_0" is not a job.
std::optional<std::string_view> job_of(std::string_view component) {
  const auto number = number_behind("job_", component);
  return number && *number != "0" ? number : std::nullopt;
}

std::optional<std::string_view> job_in_v1(std::string_view path) {
  const auto root = take_component(path);
  if (!root || !is_slurm_root_v1(*root)) return std::nullopt;
  const auto user = take_component(path);
  if (!user || !number_behind("uid_", *user)) return std::nullopt;
  const auto job = take_component(path);
  return job ? job_of(*job) : std::nullopt;
}

std::optional<std::string_view> job_in_v2(std::string_view path) {
  const auto slice = take_component(path);
  if (!slice || *slice != kSlice) return std::nullopt;
  const auto scope = take_component(path);
  if (!scope || !is_slurm_root_v2(*scope)) return std::nullopt;
  const auto job = take_component(path);
  return job ? job_of(*job) : std::nullopt;
}

// HIERARCHY:CONTROLLERS:PATH, where v2 is hierarchy 0 without controllers.
std::optional<std::string_view> job_in_line(std::string_view line) {
  const std::size_t first = line.find(':');
  if (first == line.npos) return std::nullopt;
  const std::size_t second = line.find(':', first + 1);
  if (second == line.npos) return std::nullopt;
  const std::string_view path = line.substr(second + 1);
  return line.starts_with("0::") ? job_in_v2(path) : job_in_v1(path);
}

}  // namespace

std::optional<std::string_view> slurm_job_in(std::string_view text) {
  for (std::size_t end = text.find('\n'); end != text.npos; end = text.find('\n')) {
    if (const auto job = job_in_line(text.substr(0, end))) return job;
    text.remove_prefix(end + 1);
  }
  return std::nullopt;
}

bool is_slurm_root_v1(std::string_view name) {
  constexpr std::string_view kOfNode = "slurm_";
  return name == "slurm" || (name.starts_with(kOfNode) && name.size() > kOfNode.size());
}

bool is_slurm_root_v2(std::string_view name) {
  if (!name.ends_with(kScope)) return false;
  name.remove_suffix(kScope.size());
  return name.empty() || (name.ends_with('_') && name.size() > 1);
}

}  // namespace vpfs::fuse
