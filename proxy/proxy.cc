#include "proxy/proxy.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "base/log.h"
#include "base/system_clock.h"
#include "net/endpoint.h"
#include "net/socket_options.h"
#include "proxy/host_checks.h"
#include "schedulers/registry.h"

namespace vpfs::proxy {
namespace {
constexpr Duration kDrainCheck = std::chrono::milliseconds(20);
// How long the start waits for a silent data server.
constexpr Duration kFirstPatience = std::chrono::seconds(1);
// How often idle virtual PFSes are retired.
constexpr Duration kLeastRetiring = std::chrono::milliseconds(100);
constexpr Duration kMostRetiring = std::chrono::minutes(1);
constexpr Duration kEndsInterval = std::chrono::seconds(1);
}  // namespace

Result<std::unique_ptr<Proxy>> Proxy::make(const Config& config, std::string file,
                                           control::HostNames& names, const Clock& clock) {
  const Result<net::Endpoint> listen = net::resolve_endpoint(config.listen);
  if (!listen) return fail("proxy.listen: " + listen.error().message);
  std::optional<net::Endpoint> upstream;
  if (config.upstream != kOriginal) {
    const Result<net::Endpoint> resolved = net::resolve_endpoint(config.upstream);
    if (!resolved) return fail("proxy.upstream: " + resolved.error().message);
    upstream = *resolved;
  }
  const auto scheduler = make_scheduler(config.policy, config.scheduler);
  if (!scheduler) return fail("scheduler.policy: " + scheduler.error().message);

  Result<Live> live = load_live(config);
  if (!live) return fail("control.journal: " + live.error().message, live.error().code);
  std::unique_ptr<Proxy> proxy(
      new Proxy(std::move(*live), std::move(file), names, clock, std::move(upstream)));
  Result<std::optional<control::StatusLock>> lock = proxy->lock_status(config);
  if (!lock) return std::unexpected(std::move(lock.error()));
  if (*lock) proxy->status_lock_ = std::move(**lock);
  Result<net::Listener> listener = net::Listener::open(proxy->context_, *listen);
  if (!listener) return fail("proxy.listen: " + listener.error().message, listener.error().code);
  proxy->listener_ = std::make_unique<net::Listener>(std::move(*listener));
  proxy->administration_.tick();
  if (Result<void> opened = proxy->control_.open(config, net::to_string(proxy->local_endpoint()));
      !opened) {
    return std::unexpected(std::move(opened.error()));
  }
  proxy->warn_of_silent_upstream();
  return proxy;
}

Proxy::Proxy(Live live, std::string file, control::HostNames& names, const Clock& clock,
             std::optional<net::Endpoint> upstream)
    : shared_(clock, std::move(upstream)),
      file_(std::move(file)),
      names_(names),
      live_(std::move(live)),
      started_(wall_clock_now()),
      settings_(std::make_shared<const Settings>(live_.in_force())),
      lookups_(context_, names),
      signals_(context_, SIGTERM, SIGINT, SIGUSR1),
      status_timer_(context_),
      drain_timer_(context_),
      memory_timer_(context_),
      retire_timer_(context_),
      ends_timer_(context_),
      dispatcher_(
          config(), config().workers, [this](std::size_t worker) { workers_[worker]->wake_up(); },
          clock.now()),
      access_(dispatcher_, clock),
      administration_(*live_.state, *this, wall_clock_now),
      control_(administration_, dispatcher_,
               {.name = std::string(kProgramName.program),
                .not_ready =
                    [this] {
                      return std::string(shared_.draining.load() ? "the proxy is draining" : "");
                    }},
               context_, clock) {
  signals_.add(SIGHUP);
  signals_.add(SIGUSR2);
  shared_.set_configured_hold(config().timeouts.hold, config().timeouts.hold_min);
  dispatcher_.set_hold(shared_.hold.load(), clock.now());
  for (std::size_t i = 0; i < config().workers; ++i) {
    workers_.push_back(std::make_unique<Worker>(i, shared_, dispatcher_, settings_));
  }
}

Proxy::~Proxy() = default;

net::Endpoint Proxy::local_endpoint() const {
  return listener_->local_endpoint();
}

void Proxy::warn_of_silent_upstream() {
  if (!shared_.upstream) return;
  asio::io_context context(1);
  const auto look = [](Proxy& proxy) -> net::Task<> {
    const net::Endpoint server = *proxy.shared_.upstream;
    const Result<net::Socket> socket =
        co_await net::connect(server, std::min(proxy.config().timeouts.connect, kFirstPatience));
    if (socket) co_return;
    proxy.shared_.upstream_health.failed(server, socket.error().message, "",
                                         proxy.shared_.clock.now());
  };
  asio::co_spawn(context, look(*this), asio::detached);
  context.run();
}

void Proxy::run() {
  std::vector<std::jthread> threads;
  threads.reserve(workers_.size());
  for (const std::unique_ptr<Worker>& worker : workers_) {
    threads.emplace_back([&worker] { worker->run(); });
  }
  listener_->start([this](net::Socket socket) { accepted(std::move(socket)); });
  await_signal();
  arm_status();
  arm_memory();
  arm_retiring();
  arm_ends();
  context_.run();
  control_.stop();
  for (const std::unique_ptr<Worker>& worker : workers_) worker->stop();
  threads.clear();
  // A further signal to end has no effect now.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  write_status();
}

void Proxy::accepted(net::Socket socket) {
  Counters& counters = shared_.counters;
  std::error_code error;
  const net::Endpoint client = net::unmapped(socket.remote_endpoint(error));
  if (error) return;  // the client is gone
  if (counters.connections_open >= config().limits.connections) {
    if (counters.connections_refused++ == 0) {
      spdlog::error("limits.connections ({}) reached: client {} and others are refused",
                    config().limits.connections, net::to_string(client));
    }
    return;
  }
  const int descriptor = socket.release(error);
  if (error) return;
  ++counters.connections_open;
  ++counters.connections_total;
  workers_[next_worker_]->adopt(descriptor, client);
  next_worker_ = (next_worker_ + 1) % workers_.size();
}

void Proxy::await_signal() {
  signals_.async_wait([this](std::error_code error, int signal) {
    if (error) return;
    if (signal == SIGUSR1) {
      write_status();
    } else if (signal == SIGUSR2) {
      reopen_log();
    } else if (signal == SIGHUP) {
      reload([](const auto&) {});  // it is in the log
    } else if (shared_.draining.load()) {
      spdlog::warn("second signal: ending without waiting for outstanding requests");
      context_.stop();
      return;
    } else {
      begin_drain(signal == SIGTERM ? "SIGTERM" : "SIGINT");
    }
    await_signal();
  });
}

Result<std::optional<control::StatusLock>> Proxy::lock_status(const Config& config) const {
  if (config.status_file.empty() || status_lock_.is_of(config.status_file)) return std::nullopt;
  Result<control::StatusLock> taken = control::StatusLock::take(config.status_file, kProgramName);
  if (!taken) return fail("proxy.status_file: " + taken.error().message, taken.error().code);
  return std::move(*taken);
}

void Proxy::begin_drain(std::string_view why) {
  if (shared_.draining.load()) return;
  spdlog::info("{}: draining: {} requests held, {} at the data server", why, dispatcher_.queued(),
               dispatcher_.outstanding());
  listener_->close();
  shared_.draining.store(true);
  check_drained(shared_.clock.now() + config().timeouts.drain);
}

void Proxy::check_drained(TimePoint deadline) {
  const bool late = shared_.clock.now() >= deadline;
  if (shared_.counters.connections_open == 0 || late) {
    if (late) {
      spdlog::warn("drain: {} requests were not finished within {}", dispatcher_.outstanding(),
                   to_string(config().timeouts.drain));
    }
    context_.stop();
    return;
  }
  drain_timer_.expires_after(kDrainCheck);
  drain_timer_.async_wait([this, deadline](std::error_code error) {
    if (!error) check_drained(deadline);
  });
}

void Proxy::arm_status() {
  if (config().status_file.empty()) return;
  write_status();
  status_timer_.expires_after(config().status_interval);
  status_timer_.async_wait([this](std::error_code error) {
    if (!error) arm_status();
  });
}

void Proxy::arm_memory() {
  memory_timer_.expires_after(SpareMemory::kInterval);
  memory_timer_.async_wait([this](std::error_code error) {
    if (error) return;
    spare_memory_.look();
    arm_memory();
  });
}

// Idle virtual PFSes are to go soon after their time.
void Proxy::arm_retiring() {
  const Duration often = std::clamp<Duration>(config().idle / 8, kLeastRetiring, kMostRetiring);
  retire_timer_.expires_after(often);
  retire_timer_.async_wait([this](std::error_code error) {
    if (error) return;
    dispatcher_.retire_idle(shared_.clock.now());
    arm_retiring();
  });
}

// Live rules, jobs, confirmations and a bypass end by the time of day.
void Proxy::arm_ends() {
  ends_timer_.expires_after(kEndsInterval);
  ends_timer_.async_wait([this](std::error_code error) {
    if (error) return;
    administration_.tick();
    arm_ends();
  });
}

void Proxy::write_status() {
  const std::string& path = config().status_file;
  if (path.empty()) return;
  const Result<void> written = control::write_status_file(path, status());
  // A full disk is logged once, and once more when it has room.
  if (!written && !status_failed_) spdlog::error("{}", written.error().message);
  if (written && status_failed_) spdlog::info("status file {} is written again", path);
  status_failed_ = !written;
}

}  // namespace vpfs::proxy
