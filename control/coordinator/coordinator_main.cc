#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <future>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <spdlog/spdlog.h>
#include <unistd.h>

#include "base/command_line.h"
#include "base/log/log.h"
#include "base/result.h"
#include "base/system_clock.h"
#include "control/coordinator/config/config.h"
#include "control/coordinator/coordinator.h"
#include "control/coordinator/office/addresses.h"
#include "control/coordinator/office/elected.h"
#include "control/coordinator/office/standby.h"
#include "control/coordinator/open_store.h"
#include "control/store/store_thread.h"
#include "control/wire/protocol.h"
#include "net/endpoint.h"
#include "net/signal_queue.h"
#include "net/socket_options.h"

namespace {

using vpfs::kBadUsage;
using vpfs::Result;
using vpfs::TimePoint;
using vpfs::control::SiteStore;
using vpfs::control::StoreThread;
using vpfs::coordinator::Config;
using vpfs::coordinator::Coordinator;
using vpfs::coordinator::Elected;
using vpfs::coordinator::Standby;
using vpfs::net::SignalQueue;

constexpr const char* kName = "vpfs-coordinator";

struct Options {
  Coordinator::Options leader;
  std::uint64_t least_term = 0;
};

void say_ready(const Config& config, const Coordinator& coordinator) {
  const auto tcp = coordinator.tcp_endpoint();
  std::cout << kName << ": ready, policy " << config.policy << ", term " << coordinator.term()
            << ", " << config.dial.size() << " stages to dial"
            << (tcp ? ", stages may dial " + vpfs::net::to_string(*tcp) : "") << ", pid "
            << ::getpid() << std::endl;
}

vpfs::control::Leadership own_leadership(const Config& config) {
  vpfs::control::Leadership own = {.lease = config.lease,
                                   .transit = config.transit,
                                   .incarnation = vpfs::control::new_incarnation()};
  own.addresses = vpfs::coordinator::addresses_of(config);
  return own;
}

// Leads until a signal, or until it has lost the office.
Result<Coordinator::Ending> lead(const Config& config, const vpfs::Clock& clock,
                                 const Options& options, Elected elected, StoreThread& store,
                                 const SignalQueue& signals) {
  const auto coordinator =
      Coordinator::make(config, clock, options.leader, elected, store, signals);
  VPFS_TRY(coordinator);
  elected.records = {};  // they may be large
  say_ready(config, **coordinator);
  return (*coordinator)->run();
}

Result<void> lead_alone(const Config& config, const vpfs::Clock& clock, const Options& options,
                        std::unique_ptr<SiteStore> opened, const SignalQueue& signals) {
  auto elected =
      vpfs::coordinator::claim_at_once(*opened, clock, own_leadership(config), options.least_term);
  VPFS_TRY(elected);
  StoreThread store(std::move(opened));
  VPFS_TRY(lead(config, clock, options, std::move(*elected), store, signals));
  return {};
}

// So that the next leader need not wait for the lease to end. A store that hangs is left behind:
// its thread may never end.
void resign(StoreThread& store) {
  auto done = std::make_shared<std::promise<void>>();
  store.post([done](SiteStore& each) {
    (void)each.resign();
    done->set_value();
  });
  if (done->get_future().wait_for(std::chrono::seconds(2)) == std::future_status::ready) return;
  spdlog::warn("store: it does not answer; the next leader waits for the lease to end");
  spdlog::default_logger()->flush();
  std::_Exit(0);
}

// Waits until it can lead, and leads, again and again.
Result<void> take_turns(const Config& config, const vpfs::Clock& clock, const Options& options,
                        std::unique_ptr<SiteStore> opened, const SignalQueue& signals) {
  auto opened_again = vpfs::coordinator::open_store(config, clock);
  VPFS_TRY(opened_again);
  StoreThread store(std::move(opened));
  StoreThread watch(std::move(*opened_again));
  bool has_led = false;
  for (;;) {
    auto standby = Standby::open({.clock = clock,
                                  .config = config,
                                  .store = store,
                                  .watch = watch,
                                  .signals = signals,
                                  .own = own_leadership(config),
                                  .least_term = options.least_term});
    VPFS_TRY(standby);
    if (has_led) (*standby)->has_lost();
    std::cout << kName << ": ready, standby, policy " << config.policy << ", pid " << ::getpid()
              << std::endl;
    std::optional<Elected> elected = (*standby)->run();
    standby->reset();  // its ports are the leader's now
    if (!elected) return {};
    const TimePoint clear_from = elected->clear_from;
    auto ending = lead(config, clock, options, std::move(*elected), store, signals);
    if (!ending || *ending == Coordinator::Ending::signal) {
      // Until then caps of others may be in force, which the next leader could not know of.
      if (clock.now() >= clear_from) resign(store);
      VPFS_TRY(ending);
      return {};
    }
    has_led = true;
  }
}

int serve(const Config& config, const vpfs::ConfigErrors& errors, const Options& options) {
  // Before there are other threads.
  const auto signals = SignalQueue::open({SIGTERM, SIGINT, SIGUSR2});
  if (!signals) {
    std::cerr << kName << ": " << signals.error().message << "\n";
    return 1;
  }
  if (const auto logging = vpfs::set_up_logging(kName, config.log_level, config.log); !logging) {
    std::cerr << kName << ": " << logging.error().message << "\n";
    return kBadUsage;
  }
  for (const std::string& warning : errors.warnings()) {
    vpfs::log_answer(spdlog::level::warn, warning);
  }
  (void)vpfs::net::raise_open_file_limit();
  vpfs::net::ignore_broken_pipes();
  const vpfs::SystemClock clock;
  auto store = vpfs::coordinator::open_store(config, clock);
  Result<void> served = {};
  if (!store) {
    served = std::unexpected(store.error());
  } else if ((*store)->traits().has_standbys) {
    served = take_turns(config, clock, options, std::move(*store), *signals);
  } else {
    served = lead_alone(config, clock, options, std::move(*store), *signals);
  }
  if (served) return 0;
  std::cerr << kName << ": " << served.error().message << "\n";
  return 1;
}

int run(int argc, char** argv) {
  vpfs::OptionParser app("Divides what a site has among its applications.");
  std::string path;
  bool only_check = false;
  Options options;
  app.add_option("--config", path, "configuration file (YAML); required").value_name("FILE");
  app.add_flag("--check-config", only_check, "look at the configuration, and exit");
  app.add_option("--cycle-log", options.leader.cycle_log, "write a line of CSV for each cycle")
      .value_name("FILE");
  app.add_option("--term", options.least_term,
                 "begin with this term at least: when stages know a later one than the journal")
      .value_name("NUMBER");
  app.add_flag("--plain-tcp-for-measurements", options.leader.links.plain_tcp).hidden();
  if (const auto code = app.parse(kName, argc, argv)) return *code;
  if (path.empty()) return app.missing("--config");
  if (options.least_term > vpfs::control::kLargestTerm) {
    std::cerr << kName << ": --term: " << options.least_term << " is too large: expected at most "
              << vpfs::control::kLargestTerm << "\n";
    return kBadUsage;
  }
  vpfs::ConfigErrors errors(path);
  const auto config = vpfs::coordinator::load_config_file(errors);
  if (!config) {
    std::cerr << errors.to_string();
    return kBadUsage;
  }
  if (!only_check) return serve(*config, errors, options);
  if (config->store) {
    // It is not connected to.
    const vpfs::SystemClock clock;
    if (const auto store = vpfs::coordinator::open_store(*config, clock); !store) {
      std::cerr << path << ": " << store.error().message << "\n";
      return kBadUsage;
    }
  }
  for (const std::string& warning : errors.warnings()) std::cerr << "warning: " << warning << "\n";
  std::cout << path << ": ok\n";
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", kName, error.what());
    return 1;
  }
}
