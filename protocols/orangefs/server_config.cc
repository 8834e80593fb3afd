#include "protocols/orangefs/server_config.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace vpfs::orangefs {
namespace {

constexpr std::string_view kBlanks = " \t\r";

// The next word of a line; empty at its end.
std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(kBlanks));
  line.remove_prefix(word.size());
  return word;
}

std::optional<std::int32_t> number(std::string_view text) {
  std::int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

ServerConfig parse_server_config(std::string_view text) {
  ServerConfig config;
  bool in_file_system = false;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::string_view key = take_word(line);
    if (key == "<FileSystem>") in_file_system = true;
    if (key == "</FileSystem>") in_file_system = false;
    const std::optional<std::int32_t> value = number(take_word(line));
    if (!value) continue;
    if (key == "ID" && in_file_system) config.file_systems.push_back(*value);
    if (key == "ClientJobBMITimeoutSecs" && *value > 0) {
      config.client_job_timeout = std::chrono::seconds(*value);
    }
  }
  return config;
}

}  // namespace vpfs::orangefs
