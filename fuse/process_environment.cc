#include "fuse/process_environment.h"

#include <algorithm>
#include <cstddef>

namespace vpfs::fuse {

// No file that the process names is opened: it might be a pipe, or be on the mount itself.
std::string environment_of(pid_t process, std::string_view processes) {
  // One byte more says that there is more.
  std::string text = read_process_file(processes, process, "environ", kMostEnvironment + 1);
  if (text.size() > kMostEnvironment) {
    text.resize(kMostEnvironment);
    // Half a value must not count.
    text.resize(text.rfind('\0') + 1);  // npos + 1 is 0
  }
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

}  // namespace vpfs::fuse
