#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <future>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "base/command_line.h"
#include "base/log/log.h"
#include "base/result.h"
#include "base/signal_block.h"
#include "base/system_clock.h"
#include "control/coordinator/config/config.h"
#include "control/coordinator/coordinator.h"
#include "control/coordinator/leader.h"
#include "control/coordinator/members/member.h"
#include "control/coordinator/members/members_port.h"
#include "control/coordinator/office/addresses.h"
#include "control/coordinator/office/elected.h"
#include "control/coordinator/office/signals.h"
#include "control/coordinator/office/standby.h"
#include "control/coordinator/open_store.h"
#include "control/members/view.h"
#include "control/store/store_thread.h"
#include "control/wire/protocol.h"
#include "net/endpoint.h"
#include "net/manager/heartbeat.h"
#include "net/manager/manager_socket.h"
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
using vpfs::coordinator::Leader;
using vpfs::coordinator::Standby;
using vpfs::net::SignalQueue;

constexpr const char* kName = "vpfs-coordinator";
constexpr vpfs::Duration kFirstTermPause = std::chrono::milliseconds(500);
constexpr vpfs::Duration kLastTermPause = std::chrono::minutes(10);
constexpr vpfs::Duration kClaimAgain = std::chrono::seconds(5);
constexpr int kManagerWaits = 50;

struct Options {
  Coordinator::Options leader;
  std::uint64_t least_term = 0;
};

// Where stages may dial: `endpoint`, if it is there.
std::string stages_of(const Config& config, const std::optional<vpfs::net::Endpoint>& endpoint) {
  std::string text = fmt::format("{} stages to dial", config.dial.size());
  if (endpoint) text += ", stages may dial " + vpfs::net::to_string(*endpoint);
  return text;
}

void say_ready(const std::string& role, const Config& config, const std::string& more) {
  if (const auto manager = vpfs::net::ManagerSocket::of_environment()) {
    int waits = kManagerWaits;
    (void)manager->tell(vpfs::net::ready_words(), {}, waits, {});
  }
  std::cout << kName << ": ready, " << role << "policy " << config.policy << more << ", pid "
            << ::getpid() << std::endl;
}

// What a process has for its members, beside the office.
class MemberSide {
 public:
  // Nothing without the key `members`.
  static Result<std::unique_ptr<MemberSide>> start(const Config& config, const vpfs::Clock& clock,
                                                   const Options& options, StoreThread& store) {
    if (!config.members) return nullptr;
    auto port = vpfs::coordinator::MembersPort::reserve(config);
    VPFS_TRY(port);
    auto member =
        vpfs::coordinator::Member::start({.clock = clock,
                                          .config = config,
                                          .options = options.leader,
                                          .store = store,
                                          .name = vpfs::coordinator::addresses_of(config).front(),
                                          .incarnation = vpfs::control::new_incarnation()});
    VPFS_TRY(member);
    std::unique_ptr<MemberSide> side(new MemberSide(std::move(*port), std::move(*member)));
    return side;
  }

  [[nodiscard]] Config leader_config(const Config& config) const {
    return port_.leader_config(config);
  }
  [[nodiscard]] std::vector<std::string> addresses() const { return {port_.address()}; }
  [[nodiscard]] vpfs::coordinator::Member& member() const { return *member_; }

 private:
  MemberSide(vpfs::coordinator::MembersPort port, std::unique_ptr<vpfs::coordinator::Member> member)
      : port_(std::move(port)), member_(std::move(member)) {}

  const vpfs::coordinator::MembersPort port_;
  const std::unique_ptr<vpfs::coordinator::Member> member_;
};

vpfs::control::Leadership own_leadership(const Config& config, const MemberSide* side) {
  vpfs::control::Leadership own = {.lease = config.lease,
                                   .transit = config.transit,
                                   .incarnation = vpfs::control::new_incarnation()};
  own.addresses = vpfs::coordinator::addresses_of(config);
  if (side != nullptr) own.members = side->addresses();
  return own;
}

struct Ended {
  Leader::Ending how;
  std::uint64_t least_term = 0;  // of the next term
};

// Leads until a signal, until it has lost the office, or until it needs a later term.
Result<Ended> lead(const Config& config, const vpfs::Clock& clock, const Options& options,
                   Elected elected, StoreThread& store, const SignalQueue& signals,
                   MemberSide* side, std::optional<vpfs::Duration> later_term_after) {
  const Config own = side == nullptr ? config : side->leader_config(config);
  Leader::Parts parts = {.config = own,
                         .clock = clock,
                         .options = options.leader,
                         .elected = elected,
                         .store = store,
                         .signals = signals,
                         .later_term_after = later_term_after};
  if (side != nullptr) parts.own_part = &side->member();
  const auto leader = Leader::make(parts);
  VPFS_TRY(leader);
  elected.records = {};  // they may be large
  const auto endpoint =
      side == nullptr ? (*leader)->coordinator().tcp_endpoint() : side->member().tcp_endpoint();
  say_ready("", config,
            fmt::format(", term {}, {}", elected.own.term, stages_of(config, endpoint)));
  if (side != nullptr) side->member().follow(side->addresses());
  const Leader::Ending how = (*leader)->run();
  return Ended{.how = how, .least_term = (*leader)->least_term()};
}

Result<Elected> claim(StoreThread& store, const Config& config, const vpfs::Clock& clock,
                      std::uint64_t least_term) {
  std::promise<Result<Elected>> claimed;
  store.post([&](SiteStore& each) {
    claimed.set_value(
        vpfs::coordinator::claim_at_once(each, clock, own_leadership(config, nullptr), least_term));
  });
  return claimed.get_future().get();
}

// The next term of one that has led. What keeps it from that, such as a full disk, may pass.
// Nothing: it was told to end.
std::optional<Elected> claim_again(StoreThread& store, const Config& config,
                                   const vpfs::Clock& clock, std::uint64_t least_term,
                                   const SignalQueue& signals) {
  for (;;) {
    auto elected = claim(store, config, clock, least_term);
    if (elected) return *std::move(elected);
    spdlog::error("the next term cannot begin: {}; it is tried again every {}",
                  elected.error().message, vpfs::to_string(kClaimAgain));
    asio::io_context context;
    vpfs::net::SignalReader reader(context, signals);
    vpfs::net::Heartbeat heartbeat(context, [] { return true; });
    bool is_told_to_end = false;
    reader.start([&](int signal) {
      if (vpfs::coordinator::goes_on_after(signal)) return;
      is_told_to_end = true;
      context.stop();
    });
    asio::steady_timer timer(context, kClaimAgain);
    timer.async_wait([&](std::error_code) { context.stop(); });
    heartbeat.start();
    context.run();
    if (is_told_to_end) return std::nullopt;
  }
}

Result<void> lead_alone(const Config& config, const vpfs::Clock& clock, const Options& options,
                        std::unique_ptr<SiteStore> opened, const SignalQueue& signals) {
  StoreThread store(std::move(opened));
  auto claimed = claim(store, config, clock, options.least_term);
  VPFS_TRY(claimed);
  std::optional<Elected> elected = std::move(*claimed);
  // Two aggregators of one stage, by mistake, outdo each other less and less often.
  for (vpfs::Duration pause = kFirstTermPause;;) {
    const TimePoint began = clock.now();
    const auto ended =
        lead(config, clock, options, std::move(*elected), store, signals, nullptr, pause);
    VPFS_TRY(ended);
    if (ended->how != Leader::Ending::later) return {};
    const bool was_in_peace = clock.now() - began > kLastTermPause + pause;
    pause = was_in_peace ? kFirstTermPause : std::min(2 * pause, kLastTermPause);
    auto next = claim_again(store, config, clock, ended->least_term, signals);
    if (!next) return {};
    elected.emplace(std::move(*next));
  }
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

// Waits until it can lead.
Result<std::optional<Elected>> stand_by(const Standby::Parts& parts, bool has_led,
                                        const MemberSide* side) {
  auto standby = Standby::open(parts);
  VPFS_TRY(standby);
  if (has_led) (*standby)->has_lost();
  say_ready("standby, ", parts.config,
            side == nullptr ? "" : ", " + stages_of(parts.config, side->member().tcp_endpoint()));
  return (*standby)->run();
}

// Waits until it can lead, and leads, again and again.
Result<void> take_turns(const Config& config, const vpfs::Clock& clock, const Options& options,
                        std::unique_ptr<SiteStore> opened, const SignalQueue& signals) {
  auto opened_again = vpfs::coordinator::open_store(config, clock);
  VPFS_TRY(opened_again);
  StoreThread store(std::move(opened));
  StoreThread watch(std::move(*opened_again));
  const auto side = MemberSide::start(config, clock, options, store);
  VPFS_TRY(side);
  MemberSide* const members = side->get();
  bool has_led = false;
  for (;;) {
    Standby::Parts parts = {.clock = clock,
                            .config = config,
                            .store = store,
                            .watch = watch,
                            .signals = signals,
                            .own = own_leadership(config, members),
                            .least_term = options.least_term};
    if (members != nullptr) {
      parts.follow = [members](const vpfs::control::Leadership* leader) {
        if (leader == nullptr) return members->member().follow_none();
        members->member().follow(leader->members);
      };
      parts.own_part = &members->member();
    }
    auto elected = stand_by(parts, has_led, members);
    VPFS_TRY(elected);
    if (!*elected) return {};
    const TimePoint clear_from = (*elected)->clear_from;
    auto ending =
        lead(config, clock, options, std::move(**elected), store, signals, members, std::nullopt);
    if (!ending || ending->how == Leader::Ending::signal) {
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
  const auto signals = SignalQueue::open({SIGTERM, SIGINT, SIGUSR2, SIGHUP, SIGUSR1});
  if (!signals) {
    std::cerr << kName << ": " << signals.error().message << "\n";
    return 1;
  }
  if (const auto logging = vpfs::set_up_logging(kName, config.log_level, config.log); !logging) {
    std::cerr << kName << ": " << logging.error().message << "\n";
    return kBadUsage;
  }
  vpfs::set_log_name(config.name);
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
  if (options.least_term > vpfs::members::kLargestFirstTerm) {
    std::cerr << kName << ": --term: " << options.least_term << " is too large: expected at most "
              << vpfs::members::kLargestFirstTerm << "\n";
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
  vpfs::hold_back_asking_signals();  // for good: a SignalQueue takes them
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", kName, error.what());
    return 1;
  }
}
