#include "base/log/log_config.h"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "base/log/log.h"

namespace vpfs {

Result<void> check_log_target(std::string_view target, std::string_view program) {
  if (target == "stderr" || target == "journal" || target.contains('/')) return {};
  return fail(
      fmt::format("'{}' is not `stderr`, `journal` or a file with its directory, such as "
                  "./{}.log",
                  target, program));
}

void read_log(ConfigReader& reader, std::string_view program, std::string& target,
              std::string& level) {
  if (reader.get("log", &target)) {
    if (const Result<void> known = check_log_target(target, program); !known) {
      reader.report("log", known.error().message);
    }
  }
  reader.choose("log_level", &level, {"trace", "debug", "info", "warn", "error", "off"});
}

void check_log_here(const std::string& target, ConfigErrors& errors, const std::string& key) {
  if (target == "journal") {
    if (const Result<void> found = check_journal(); !found) {
      errors.add(key, found.error().message);
    }
  } else if (target != "stderr") {
    const std::string folder = std::filesystem::path(target).parent_path().string();
    std::error_code unknown;
    if (!folder.empty() && !std::filesystem::is_directory(folder, unknown)) {
      errors.warn(key, fmt::format("the folder '{}' does not exist: messages go to standard error "
                                   "until it does",
                                   folder));
    }
  }
}

}  // namespace vpfs
