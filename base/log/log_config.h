#pragma once

#include <string>
#include <string_view>

#include "base/config_reader.h"
#include "base/result.h"

// What configurations and options say about a log (see base/log/log.h).
namespace vpfs {

// An error unless the target is "stderr", "journal" or a file with its directory: a misspelt
// "journal" is not taken for a file. `program` gives the error its example.
[[nodiscard]] Result<void> check_log_target(std::string_view target, std::string_view program);

// Reads the keys `log` and `log_level`. Looks at the text only.
void read_log(ConfigReader& reader, std::string_view program, std::string& target,
              std::string& level);

// Looks at the host: an error under `key` where there is no journal, and a warning where the file's
// directory is missing. A log that cannot be written is not worth a program that does not start.
void check_log_here(const std::string& target, ConfigErrors& errors, const std::string& key);

}  // namespace vpfs
