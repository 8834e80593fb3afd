// The part of Host that changes the configuration in force.
#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/joined.h"
#include "base/log/log.h"
#include "base/result.h"
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

// As the place of an error.
std::string first_of(const WantedNames& names) {
  if (!names.hosts.empty()) return "host " + *names.hosts.begin();
  if (!names.users.empty()) return "user " + *names.users.begin();
  return "group " + *names.groups.begin();
}

}  // namespace

// A reload looks all names up anew. What was read with the names that were kept counts if their
// meaning is still the same. Otherwise, and if a later reload has begun, the file is read again.
void Host::reload(Reloaded then) {
  heartbeat_.reloading(clock_.now());
  const Reloaded done = [this, then = std::move(then)](const auto& changed) {
    heartbeat_.reloaded();
    then(changed);
  };
  const std::shared_ptr<ReadFile> read = read_file();
  auto reload_it = [this, read, done](const std::optional<std::string>& problem) {
    if (problem) log_answer(spdlog::level::warn, "reload: " + *problem);
    const bool is_latest = read->number == last_reading_;
    if (!problem && is_latest && read->names.hold(names_)) return done(reload_now(*read));
    // To look names up here would stop this thread, and the service manager would end the program.
    const WantedNames unknown = names_.not_kept(read->names.names());
    lookups_.fetch(unknown, [this, done](const std::optional<std::string>&) {
      run_or_defer([this, done] { done(reload_with_known_names()); });
    });
  };
  lookups_.fetch_anew(read->names.names(), [this, reload_it = std::move(reload_it)](
                                               const std::optional<std::string>& problem) {
    run_or_defer([reload_it, problem] { reload_it(problem); });
  });
}

Result<std::vector<std::string>> Host::reload_with_known_names() {
  const std::shared_ptr<ReadFile> read = read_file();
  if (const auto unknown = names_.not_kept(read->names.names()); !unknown.empty()) {
    ReadFile refused(file_);
    refused.errors.add(first_of(unknown), "the name service has not answered: reload again");
    return reload_now(refused);
  }
  if (read->names.hold(names_)) return reload_now(*read);
  ReadFile with_unknown(file_);
  with_unknown.config = program_.read(with_unknown.errors, *live_.file, names_);
  return reload_now(with_unknown);
}

std::shared_ptr<Host::ReadFile> Host::read_file() {
  auto read = std::make_shared<ReadFile>(file_);  // shared with the look-up of its names
  read->number = ++last_reading_;
  const NotedNames noted(names_);
  read->config = program_.read(read->errors, *live_.file, names_);
  if (read->config != nullptr) (void)live_.state->fits(*read->config);
  read->names = noted.answers();
  return read;
}

Result<std::vector<std::string>> Host::reload_now(ReadFile& read) {
  ++reloads_.tried;
  for (const std::string& warning : read.errors.warnings()) {
    log_answer(spdlog::level::warn, warning);
  }
  const Result<std::vector<std::string>> changed = read.config != nullptr
                                                       ? take_on(std::move(read.config))
                                                       : fail(joined(read.errors.lines(), "; "));
  reloads_.last_error = changed ? "" : changed.error().message;
  if (changed) {
    log_changes(file_, *changed);
  } else {
    ++reloads_.failed;
    log_answer(spdlog::level::err,
               "reload failed, the old configuration stays in force: " + reloads_.last_error);
  }
  write_status();
  return changed;
}

// Steps that can fail come first, so that nothing has changed then.
Result<std::vector<std::string>> Host::take_on(std::shared_ptr<const HostConfig> config) {
  VPFS_TRY(live_.state->fits(*config));
  Result<std::optional<StatusLock>> lock = lock_status(*config);
  VPFS_TRY(lock);
  if (config->log != live_.file->log) {
    VPFS_TRY(set_log_target(config->log));
  }
  if (Result<void> port = control_.reload(*config); !port) {
    if (config->log != live_.file->log) (void)set_log_target(live_.file->log);
    return std::unexpected(port.error());
  }
  if (*lock || config->status_file.empty()) status_lock_ = std::move(*lock).value_or(StatusLock());
  const auto before = std::exchange(live_.file, std::move(config));
  live_.state->take_on(*live_.file);
  set_log_level(live_.file->log_level);
  set_log_name(shown_name());
  std::vector<std::string> changed = program_.use(*live_.file, live_.state->composed().config);
  control_.introduce(*live_.file, address_);
  arm_status();
  return changed;
}

Result<std::optional<StatusLock>> Host::lock_status(const HostConfig& config) const {
  if (config.status_file.empty() || status_lock_.is_of(config.status_file)) return std::nullopt;
  Result<StatusLock> taken =
      StatusLock::take(config.status_file, name_, handed_ ? &handed_->inherited : nullptr);
  if (!taken) {
    return fail(fmt::format("{}.status_file: {}", name_.role, taken.error().message),
                taken.error().code);
  }
  return std::move(*taken);
}

}  // namespace vpfs::control
