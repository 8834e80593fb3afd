#include "base/log/log.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/log/log_sink.h"
#include "base/signal_block.h"

namespace vpfs {
namespace {

constexpr std::array<std::pair<std::string_view, spdlog::level::level_enum>, 6> kLevels = {
    {{"trace", spdlog::level::trace},
     {"debug", spdlog::level::debug},
     {"info", spdlog::level::info},
     {"warn", spdlog::level::warn},
     {"error", spdlog::level::err},
     {"off", spdlog::level::off}}};

// How often summaries of repeated messages are looked for.
constexpr std::chrono::seconds kSummaries(1);

std::optional<spdlog::level::level_enum> level_of(std::string_view name) {
  const auto* known = std::ranges::find(kLevels, name, [](const auto& l) { return l.first; });
  if (known == kLevels.end()) return std::nullopt;
  return known->second;
}

Result<void> check_target(const std::string& target) {
  if (target.empty()) return fail("a log needs a target: stderr, journal or the path of a file");
  return target == "journal" ? check_journal() : Result<void>();
}

// Nothing before set_up_logging(), and in tests with a logger of their own.
std::shared_ptr<LogSink> sink() {
  const auto logger = spdlog::default_logger();
  if (logger == nullptr || logger->sinks().empty()) return nullptr;
  return std::dynamic_pointer_cast<LogSink>(logger->sinks().front());
}

}  // namespace

Result<void> check_log_level(const std::string& level) {
  if (level_of(level)) return {};
  return fail("unknown log level \"" + level + "\" (known: trace, debug, info, warn, error, off)");
}

Result<void> set_up_logging(const std::string& program, const std::string& level,
                            const std::string& target) {
  VPFS_TRY(check_log_level(level));
  if (Result<void> good = check_target(target); !good) return good;
  auto logger =
      std::make_shared<spdlog::logger>(program, std::make_shared<LogSink>(program, target));
  logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %n %l: %v");
  logger->set_level(*level_of(level));
  spdlog::set_default_logger(std::move(logger));
  const SignalBlock block;
  spdlog::flush_every(kSummaries);  // starts a thread
  return {};
}

void set_log_level(const std::string& level) {
  if (const auto known = level_of(level)) spdlog::set_level(*known);
}

Result<void> set_log_target(const std::string& target) {
  if (Result<void> good = check_target(target); !good) return good;
  if (const auto ours = sink()) ours->use(target);
  return {};
}

void reopen_log() {
  if (const auto ours = sink()) ours->reopen();
}

void log_answer(spdlog::level::level_enum level, const std::string& text) {
  const auto ours = sink();
  if (ours == nullptr) return spdlog::log(level, "{}", text);
  const auto logger = spdlog::default_logger();
  if (!logger->should_log(level)) return;
  ours->answer(spdlog::details::log_msg(logger->name(), level, text));
}

void log_about(const LogSubject& subject, spdlog::level::level_enum level,
               const std::string& text) {
  const auto ours = sink();
  if (ours == nullptr) return spdlog::log(level, "{}", text);
  const auto logger = spdlog::default_logger();
  if (!logger->should_log(level)) return;
  ours->about(subject, spdlog::details::log_msg(logger->name(), level, text));
}

void set_log_name(const std::string& name) {
  if (const auto ours = sink()) ours->set_name(name);
}

Result<void> check_journal(const std::string& socket) {
  std::error_code unknown;
  if (std::filesystem::is_socket(socket, unknown)) return {};
  return fail("the log cannot go to the journal: this host has none (" + socket + ")");
}

}  // namespace vpfs
