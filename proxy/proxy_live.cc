// The part of Proxy that changes while it runs: its configuration, live rules, and what
// administrators ask about.
#include <algorithm>
#include <utility>

#include <asio/post.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include "base/log.h"
#include "base/system_clock.h"
#include "control/store/journal.h"
#include "net/endpoint.h"
#include "proxy/client_list.h"
#include "proxy/config_changes.h"
#include "proxy/host_checks.h"
#include "proxy/proxy.h"
#include "schedulers/registry.h"

namespace vpfs::proxy {
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

Config Proxy::Live::in_force() const {
  Config config = *file;
  static_cast<stage::Config&>(config) = state->composed().config;
  return config;
}

Result<Proxy::Live> Proxy::load_live(const Config& config) {
  Live live;
  live.file = std::make_shared<const Config>(config);  // shared with nobody; replaced by reloads
  live.calls = std::make_unique<control::FileCalls>();
  std::unique_ptr<control::StateStore> store;
  if (!config.journal.empty()) {
    auto journal = control::Journal::open(config.journal, *live.calls);
    if (!journal) return std::unexpected(std::move(journal.error()));
    store = std::move(*journal);
  }
  std::vector<std::string> notes;
  auto state = control::LiveState::load(std::move(store), *live.file, wall_clock_now(), notes);
  if (!state) return std::unexpected(std::move(state.error()));
  live.state = std::move(*state);
  for (const std::string& note : notes) log_answer(spdlog::level::warn, note);
  return live;
}

void Proxy::use(const stage::Config& config) {
  Config next = *live_.file;
  static_cast<stage::Config&>(next) = config;
  put_into_force(std::move(next));
}

void Proxy::put_into_force(Config config) {
  auto settings = std::make_shared<const Settings>(std::move(config), settings_.get());
  settings_before_ = std::exchange(settings_, std::move(settings));
  set_log_level(settings_->config.log_level);
  const Timeouts& timeouts = settings_->config.timeouts;
  shared_.set_configured_hold(timeouts.hold, timeouts.hold_min);
  dispatcher_.reconfigure(settings_->config, shared_.clock.now());
  for (const std::unique_ptr<Worker>& worker : workers_) worker->use(settings_);
}

void Proxy::set_bypass(bool on) {
  dispatcher_.bypass(on, shared_.clock.now());
}

void Proxy::reload(Reloaded done) {
  lookups_.fetch_anew(names_of_file(),
                      [this, done = std::move(done)](const std::optional<std::string>& problem) {
                        if (problem) log_answer(spdlog::level::warn, "reload: " + *problem);
                        done(reload_now());
                      });
}

control::WantedNames Proxy::names_of_file() const {
  const control::NotedNames noted;
  ConfigErrors errors(file_);
  std::optional<Config> config = load_config_file(errors, live_.file.get(), &noted);
  if (config) (void)live_.state->fits(*config);
  return noted.wanted();
}

Result<std::vector<std::string>> Proxy::reload_now() {
  ++reloads_.tried;
  ConfigErrors errors(file_);
  const std::optional<Config> config = load_config_file(errors, live_.file.get(), &names_);
  for (const std::string& warning : errors.warnings()) {
    log_answer(spdlog::level::warn, warning);
  }
  const SettingsPtr before = settings_;
  const Result<void> used =
      config ? take_on(*config) : fail(fmt::format("{}", fmt::join(errors.lines(), "; ")));
  reloads_.last_error = used ? "" : used.error().message;
  std::vector<std::string> changed;
  if (used) {
    changed = changes(before->config, settings_->config);
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

// What can fail comes first, so that nothing has changed then.
Result<void> Proxy::take_on(const Config& config) {
  if (Result<void> fits = live_.state->fits(config); !fits) return fits;
  Result<std::optional<control::StatusLock>> lock = lock_status(config);
  if (!lock) return std::unexpected(std::move(lock.error()));
  if (config.log != live_.file->log) {
    if (Result<void> logs = set_log_target(config.log); !logs) return logs;
  }
  if (Result<void> port = control_.reload(config); !port) {
    if (config.log != live_.file->log) (void)set_log_target(live_.file->log);
    return port;
  }
  if (*lock || config.status_file.empty())
    status_lock_ = std::move(*lock).value_or(control::StatusLock());
  const auto before = std::exchange(live_.file, std::make_shared<const Config>(config));
  live_.state->take_on(*live_.file);
  put_into_force(live_.in_force());
  control_.introduce(settings_->config, net::to_string(local_endpoint()));
  arm_status();
  return {};
}

std::string Proxy::status() {
  return status_text(*settings_, shared_,
                     {.reloads = reloads_,
                      .snapshot = snapshot_reader_.read(access_),
                      .coordinator = control_.coordinator()});
}

void Proxy::describe(control::StatsReply& reply) {
  reply.set_name(config().name.empty() ? net::to_string(local_endpoint()) : config().name);
  reply.set_connections(shared_.counters.connections_open);
  reply.set_started_at(started_.time_since_epoch().count());
  reply.set_upstream(config().upstream);
  reply.set_draining(shared_.draining.load());
  const std::optional<control::DialledCoordinator> coordinator = control_.coordinator();
  if (coordinator) *reply.mutable_coordinator() = control::to_message(*coordinator);
}

void Proxy::list_clients(std::function<void(std::vector<control::Client>)> done) {
  struct Gathered {
    ClientList clients;
    std::size_t missing;
  };
  auto gathered = std::make_shared<Gathered>();  // shared by the answers of the workers
  gathered->missing = workers_.size();
  for (const std::unique_ptr<Worker>& worker : workers_) {
    worker->list_connections([this, gathered, done](std::vector<ShownConnection> connections) {
      asio::post(context_, [this, gathered, done, connections = std::move(connections)]() mutable {
        gathered->clients.add(std::move(connections));
        if (--gathered->missing > 0) return;
        done(gathered->clients.messages(access_, config()));
      });
    });
  }
}

}  // namespace vpfs::proxy
