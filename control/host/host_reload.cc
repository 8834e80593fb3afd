// The part of Host that changes the configuration in force.
#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include "base/log/log.h"
#include "control/host/host.h"

namespace vpfs::control {
namespace {

constexpr std::size_t kMostChanges = 50;  // in the log, of one reload

void log_changes(const std::string& file, const std::vector<std::string>& all) {
  spdlog::info("{}: reloaded, {}", file,
               all.empty() ? "nothing changed"
                           : fmt::format("{} change{}:", all.size(), all.size() == 1 ? "" : "s"));
  for (std::size_t i = 0; i < std::min(all.size(), kMostChanges); ++i) {
    spdlog::info("  {}", all[i]);
  }
  if (all.size() > kMostChanges) spdlog::info("  and {} more", all.size() - kMostChanges);
}

}  // namespace

void Host::use(const stage::Config& config) {
  set_log_level(live_.file->log_level);
  program_.use(*live_.file, config);
}

void Host::reload(Reloaded done) {
  lookups_.fetch_anew(names_of_file(),
                      [this, done = std::move(done)](const std::optional<std::string>& problem) {
                        if (problem) log_answer(spdlog::level::warn, "reload: " + *problem);
                        done(reload_now());
                      });
}

WantedNames Host::names_of_file() const {
  const NotedNames noted;
  ConfigErrors errors(file_);
  const auto config = program_.read(errors, *live_.file, noted);
  if (config != nullptr) (void)live_.state->fits(*config);
  return noted.wanted();
}

Result<std::vector<std::string>> Host::reload_now() {
  ++reloads_.tried;
  ConfigErrors errors(file_);
  std::shared_ptr<const HostConfig> config = program_.read(errors, *live_.file, names_);
  for (const std::string& warning : errors.warnings()) {
    log_answer(spdlog::level::warn, warning);
  }
  const Result<void> used = config != nullptr
                                ? take_on(std::move(config))
                                : fail(fmt::format("{}", fmt::join(errors.lines(), "; ")));
  reloads_.last_error = used ? "" : used.error().message;
  std::vector<std::string> changed;
  if (used) {
    changed = program_.changes();
    log_changes(file_, changed);
  } else {
    ++reloads_.failed;
    log_answer(spdlog::level::err,
               "reload failed, the old configuration stays in force: " + reloads_.last_error);
  }
  write_status();
  if (!used) return std::unexpected(used.error());
  return changed;
}

// Steps that can fail come first, so that nothing has changed then.
Result<void> Host::take_on(std::shared_ptr<const HostConfig> config) {
  if (Result<void> fits = live_.state->fits(*config); !fits) return fits;
  Result<std::optional<StatusLock>> lock = lock_status(*config);
  if (!lock) return std::unexpected(std::move(lock.error()));
  if (config->log != live_.file->log) {
    if (Result<void> logs = set_log_target(config->log); !logs) return logs;
  }
  if (Result<void> port = control_.reload(*config); !port) {
    if (config->log != live_.file->log) (void)set_log_target(live_.file->log);
    return port;
  }
  if (*lock || config->status_file.empty()) status_lock_ = std::move(*lock).value_or(StatusLock());
  const auto before = std::exchange(live_.file, std::move(config));
  live_.state->take_on(*live_.file);
  use(live_.state->composed().config);
  control_.introduce(*live_.file, address_);
  arm_status();
  return {};
}

Result<std::optional<StatusLock>> Host::lock_status(const HostConfig& config) const {
  if (config.status_file.empty() || status_lock_.is_of(config.status_file)) return std::nullopt;
  Result<StatusLock> taken = StatusLock::take(config.status_file, name_);
  if (!taken) {
    return fail(fmt::format("{}.status_file: {}", name_.role, taken.error().message),
                taken.error().code);
  }
  return std::move(*taken);
}

}  // namespace vpfs::control
