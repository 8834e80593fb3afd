#include "base/log.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <spdlog/sinks/stdout_sinks.h>

namespace vpfs {
namespace {

constexpr std::array<std::pair<std::string_view, spdlog::level::level_enum>, 6> kLevels = {
    {{"trace", spdlog::level::trace},
     {"debug", spdlog::level::debug},
     {"info", spdlog::level::info},
     {"warn", spdlog::level::warn},
     {"error", spdlog::level::err},
     {"off", spdlog::level::off}}};

std::optional<spdlog::level::level_enum> level_of(std::string_view name) {
  const auto* known = std::ranges::find(kLevels, name, [](const auto& l) { return l.first; });
  if (known == kLevels.end()) return std::nullopt;
  return known->second;
}

}  // namespace

Result<void> set_up_logging(const std::string& program, const std::string& level) {
  const auto known = level_of(level);
  if (!known) {
    return fail("unknown log level \"" + level +
                "\" (known: trace, debug, info, warn, error, off)");
  }
  auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  auto logger = std::make_shared<spdlog::logger>(program, std::move(sink));
  logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %n %l: %v");
  logger->set_level(*known);
  logger->flush_on(spdlog::level::trace);
  spdlog::set_default_logger(std::move(logger));
  return {};
}

void set_log_level(const std::string& level) {
  if (const auto known = level_of(level)) spdlog::set_level(*known);
}

}  // namespace vpfs
