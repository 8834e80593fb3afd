#include "control/wire/dialler.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <asio/experimental/awaitable_operators.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/one_line.h"
#include "base/result.h"
#include "base/system_clock.h"
#include "control/wire/port_state.h"

namespace vpfs::control {
namespace {

using namespace std::chrono_literals;

constexpr Duration kConnectWithin = 5s;
// How far apart lines of the log are about other problems, and about the same one.
constexpr Duration kBetweenLines = 5s;
constexpr Duration kBetweenRepetitions = 1h;
// A connection that lasted for this long was a good one.
constexpr Duration kGood = 10s;

std::int64_t seconds(WallTime at) {
  return at.time_since_epoch().count();
}

}  // namespace

StatsReply::Coordinator to_message(const DialledCoordinator& coordinator) {
  StatsReply::Coordinator message;
  message.set_address(coordinator.address);
  message.set_connected(coordinator.connected);
  message.set_name(coordinator.name);
  message.set_since_at(seconds(coordinator.since));
  message.set_problem(coordinator.problem);
  if (!coordinator.problem.empty()) message.set_problem_at(seconds(coordinator.problem_at));
  message.set_dials(coordinator.dials);
  return message;
}

Dialler::Dialler(PortState& port)
    : port_(port),
      wake_(port.context()),
      pause_(port.limits().first_redial),
      random_(std::random_device()()) {}

void Dialler::use(const std::optional<Target>& target) {
  if (target && target_ && target->address == target_->address) {
    target_->tls = target->tls;
    return;
  }
  if (!target && !target_) return;
  ++round_;
  target_ = target;
  logged_.clear();
  logged_at_.reset();
  tells_success_ = true;
  pause_ = port_.limits().first_redial;
  {
    const std::lock_guard lock(mutex_);
    status_.reset();
    if (target_) {
      status_ =
          DialledCoordinator{.address = to_string(target_->address), .since = wall_clock_now()};
    }
  }
  if (connection_) connection_->close();
  wake_up();
  if (target_ && !running_ && !stopped_) start();
}

void Dialler::stop() {
  stopped_ = true;
  if (connection_) connection_->close_when_sent();
  wake_up();
}

void Dialler::check(TimePoint now) {
  const std::shared_ptr<PortConnection> connection = connection_;
  if (connection) connection->check(now);
}

std::optional<DialledCoordinator> Dialler::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

// Ends a wait, and those to come until the timer is set again.
void Dialler::wake_up() {
  wake_.expires_at(asio::steady_timer::time_point::min());
}

void Dialler::start() {
  running_ = true;
  asio::co_spawn(port_.context(), run(), [this](const std::exception_ptr& problem) {
    running_ = false;
    if (problem) spdlog::error("control.coordinator: an exception ended the dialling");
  });
}

net::Task<> Dialler::run() {
  while (!stopped_ && target_) {
    const Target target = *target_;
    const std::uint64_t round = round_;
    wake_.expires_at(asio::steady_timer::time_point::max());
    const std::string problem = co_await attempt(target);
    connection_.reset();
    if (stopped_ || round != round_) {
      connected_at_.reset();
      continue;
    }
    note_problem(problem);
    co_await pause();
  }
}

net::Task<std::string> Dialler::attempt(Target target) {
  std::string problem;
  try {
    problem = co_await serve(target);
  } catch (const std::exception& thrown) {
    // An exception of a library, such as for want of memory, costs this connection only.
    problem = thrown.what();
    if (connection_) connection_->close();
  }
  co_return problem;
}

net::Task<std::string> Dialler::serve(Target target) {
  using asio::experimental::awaitable_operators::operator||;
  const std::uint64_t round = round_;
  note_dial();
  auto outcome = co_await (connect(target) || wake_.async_wait(net::kUseTask));
  if (outcome.index() == 1) co_return "";
  Connected channel = std::move(std::get<0>(outcome));
  if (!channel) co_return channel.error();
  if (stopped_ || round != round_) {
    (*channel)->close();
    co_return "";
  }
  const std::string address = to_string(target.address);
  Caller caller = {.name = "coordinator " + address,
                   .from = target.address.is_unix() ? "unix" : target.address.host,
                   .rights = Rights::change,
                   .uid = std::nullopt};
  connection_ = std::make_shared<PortConnection>(port_, port_.next_number(), std::move(caller),
                                                 std::move(*channel), [this] { note_connected(); });
  const std::shared_ptr<PortConnection> connection = connection_;
  co_await PortConnection::serve(connection);
  co_return one_short_line(connection->why_ended());
}

net::Task<Connected> Dialler::connect(Target target) {
  ClientOptions options;
  options.role = Hello::STAGE;
  options.tls = target.tls;
  options.connect_within = kConnectWithin;
  options.peer = "coordinator";
  options.key = "stages.listen.socket";
  options.names_users = false;
  if (target.address.is_unix()) co_return co_await connect_port(target.address, options);
  // One that hangs is waited for again, so that there are never many.
  if (lookup_ == nullptr || lookup_->address() != target.address) {
    lookup_ = std::make_unique<HostLookup>(port_.context(), target.address);
  }
  HostLookup::Found found = co_await lookup_->wait(kConnectWithin);
  if (lookup_->is_done()) lookup_.reset();
  VPFS_CO_TRY(found);
  co_return co_await connect_host(target.address.host, std::move(*found), options);
}

net::Task<> Dialler::pause() {
  std::uniform_real_distribution<double> factor(0.5, 1.5);
  wake_.expires_after(std::chrono::duration_cast<Duration>(pause_ * factor(random_)));
  pause_ = std::min(2 * pause_, port_.limits().slowest_redial);
  (void)co_await wake_.async_wait(net::kUseTask);
}

void Dialler::note_dial() {
  const std::lock_guard lock(mutex_);
  if (status_) ++status_->dials;
}

void Dialler::note_connected() {
  connected_at_ = port_.now();
  const std::lock_guard lock(mutex_);
  status_->connected = true;
  status_->since = wall_clock_now();
  status_->name = one_short_line(connection_->coordinator().name());
  if (!std::exchange(tells_success_, false)) return;
  spdlog::info("control.coordinator: connected to {} ({})", status_->address, status_->name);
}

void Dialler::note_problem(const std::string& problem) {
  const std::optional<TimePoint> connected_at = std::exchange(connected_at_, std::nullopt);
  const Duration lasted = connected_at ? port_.now() - *connected_at : Duration::zero();
  if (lasted >= port_.limits().slowest_redial) pause_ = port_.limits().first_redial;
  if (lasted >= kGood) logged_.clear();
  {
    const std::lock_guard lock(mutex_);
    const WallTime now = wall_clock_now();
    if (std::exchange(status_->connected, false)) status_->since = now;
    status_->problem = problem;
    status_->problem_at = now;
  }
  log_problem(problem);
}

void Dialler::log_problem(const std::string& problem) {
  const TimePoint now = port_.now();
  const Duration quiet = problem == logged_ ? kBetweenRepetitions : kBetweenLines;
  if (logged_at_ && now - *logged_at_ < quiet) return;
  logged_ = problem;
  logged_at_ = now;
  tells_success_ = true;
  spdlog::warn("control.coordinator: {}: {} (this stage goes on without it, and tries again)",
               to_string(target_->address), problem);
}

}  // namespace vpfs::control
