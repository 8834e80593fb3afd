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
#include "base/units.h"
#include "control/wire/port_state.h"

namespace vpfs::control {
namespace {

using namespace std::chrono_literals;

// How far apart lines of the log are about other problems, and about the same one.
constexpr Duration kBetweenLines = 5s;
constexpr Duration kBetweenRepetitions = 1h;
// A connection that lasted for this long was a good one.
constexpr Duration kGood = 10s;

std::int64_t seconds(WallTime at) {
  return at.time_since_epoch().count();
}

std::vector<std::string> texts_of(const std::vector<PortAddress>& addresses) {
  std::vector<std::string> texts;
  for (const PortAddress& address : addresses) texts.push_back(to_string(address));
  return texts;
}

bool has(const std::vector<PortAddress>& addresses, const PortAddress& address) {
  return std::ranges::find(addresses, address) != addresses.end();
}

}  // namespace

StatsReply::Coordinator to_message(const DialledCoordinator& coordinator) {
  StatsReply::Coordinator message;
  message.set_address(coordinator.address);
  message.mutable_addresses()->Add(coordinator.addresses.begin(), coordinator.addresses.end());
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
      hello_timer_(port.context()),
      hello_within_(port.limits().dial_each),
      lookups_(port.context()),
      pause_(port.limits().first_redial),
      random_(std::random_device()()) {}

bool Dialler::keeps_connection(const std::optional<Target>& target) const {
  if (!target || !target_) return !target && !target_;
  return target->addresses == target_->addresses ||
         (connected_at_ && has(target->addresses, round_.current()));
}

void Dialler::use(const std::optional<Target>& target) {
  const bool keeps = keeps_connection(target);
  const bool is_changed = target && (!target_ || target->addresses != target_->addresses);
  target_ = target;
  if (keeps) {
    if (!is_changed) return;
    round_.change(target->addresses);
    const std::lock_guard lock(mutex_);
    status_->addresses = texts_of(target->addresses);
    return;
  }
  ++changes_;
  round_ = AddressRound(target ? target->addresses : std::vector<PortAddress>());
  logged_.clear();
  logged_at_.reset();
  tells_success_ = true;
  pause_ = port_.limits().first_redial;
  hello_within_ = port_.limits().dial_each;
  {
    const std::lock_guard lock(mutex_);
    status_.reset();
    if (target_) {
      status_ = DialledCoordinator{.address = to_string(round_.current()),
                                   .addresses = texts_of(target_->addresses),
                                   .since = wall_clock_now()};
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
    const PortAddress address = round_.current();
    const std::uint64_t changes = changes_;
    wake_.expires_at(asio::steady_timer::time_point::max());
    const std::string problem = co_await attempt(address);
    hello_timer_.cancel();
    const std::vector<std::string> instead =
        connection_ ? connection_->instead() : std::vector<std::string>();
    connection_.reset();
    if (stopped_ || changes != changes_) {
      connected_at_.reset();
      continue;
    }
    const bool is_pause_due = note_end(problem);
    round_.prefer(instead);
    if (is_pause_due) co_await pause();
  }
}

net::Task<std::string> Dialler::attempt(PortAddress address) {
  std::string problem;
  try {
    problem = co_await serve(std::move(address));
  } catch (const std::exception& thrown) {
    // An exception of a library, such as for want of memory, costs this connection only.
    problem = thrown.what();
    if (connection_) connection_->close();
  }
  co_return problem;
}

net::Task<std::string> Dialler::serve(PortAddress address) {
  using asio::experimental::awaitable_operators::operator||;
  const std::uint64_t changes = changes_;
  const std::shared_ptr<net::TlsContext> tls = target_->tls;
  note_dial(address);
  auto outcome = co_await (connect(address, tls) || wake_.async_wait(net::kUseTask));
  if (outcome.index() == 1) co_return "";
  Connected channel = std::move(std::get<0>(outcome));
  if (!channel) co_return channel.error();
  if (stopped_ || changes != changes_) {
    (*channel)->close();
    co_return "";
  }
  Caller caller = {.name = "coordinator " + to_string(address),
                   .from = address.is_unix() ? "unix" : address.host,
                   .rights = Rights::change,
                   .uid = std::nullopt};
  connection_ = std::make_shared<PortConnection>(port_, port_.next_number(), std::move(caller),
                                                 std::move(*channel), [this] { note_connected(); });
  const std::shared_ptr<PortConnection> connection = connection_;
  if (!round_.is_alone()) expect_hello();
  co_await PortConnection::serve(connection);
  co_return one_short_line(connection->why_ended());
}

// The only one is given the silence of a connection.
void Dialler::expect_hello() {
  hello_timer_.expires_after(hello_within_);
  hello_timer_.async_wait([this, weak = std::weak_ptr(connection_)](std::error_code stopped) {
    const auto connection = weak.lock();
    if (stopped || connection == nullptr || connection->greeted()) return;
    connection->close_because(fmt::format("no answer within {}", vpfs::to_string(hello_within_)));
    hello_within_ = std::max(hello_within_, std::min(2 * hello_within_, port_.limits().dial));
  });
}

Duration Dialler::patience() const {
  return round_.is_alone() ? port_.limits().dial : port_.limits().dial_each;
}

net::Task<Connected> Dialler::connect(PortAddress address, std::shared_ptr<net::TlsContext> tls) {
  ClientOptions options;
  options.role = Hello::STAGE;
  options.tls = std::move(tls);
  options.connect_within = patience();
  options.peer = "coordinator";
  options.key = "stages.listen.socket";
  options.names_users = false;
  if (address.is_unix()) co_return co_await connect_port(address, options);
  HostLookup::Found found = co_await lookups_.find(address, options.connect_within);
  VPFS_CO_TRY(found);
  co_return co_await connect_host(address.host, std::move(*found), options);
}

net::Task<> Dialler::pause() {
  std::uniform_real_distribution<double> factor(0.5, 1.5);
  wake_.expires_after(std::chrono::duration_cast<Duration>(pause_ * factor(random_)));
  pause_ = std::min(2 * pause_, port_.limits().slowest_redial);
  (void)co_await wake_.async_wait(net::kUseTask);
}

void Dialler::note_dial(const PortAddress& address) {
  const std::lock_guard lock(mutex_);
  if (!status_) return;
  status_->address = to_string(address);
  ++status_->dials;
}

void Dialler::note_connected() {
  connected_at_ = port_.now();
  hello_within_ = port_.limits().dial_each;
  const std::lock_guard lock(mutex_);
  status_->connected = true;
  status_->since = wall_clock_now();
  status_->name = one_short_line(connection_->coordinator().name());
  if (!std::exchange(tells_success_, false)) return;
  spdlog::info("control.coordinator: connected to {} ({})", status_->address, status_->name);
}

bool Dialler::note_end(const std::string& problem) {
  const std::optional<TimePoint> connected_at = std::exchange(connected_at_, std::nullopt);
  const Duration lasted = connected_at ? port_.now() - *connected_at : Duration::zero();
  if (lasted >= port_.limits().slowest_redial) {
    pause_ = port_.limits().first_redial;
    round_.begin();
  }
  if (lasted >= kGood) logged_.clear();
  const std::string address = to_string(round_.current());
  const bool have_all_failed = round_.fail(problem);
  // That one of several does not lead is told only if none does.
  const bool is_told = have_all_failed || connected_at;
  const std::string named = fmt::format("{}: {}", address, problem);
  std::string text = named;
  if (have_all_failed) text = round_.problem();
  {
    const std::lock_guard lock(mutex_);
    const WallTime now = wall_clock_now();
    if (std::exchange(status_->connected, false)) status_->since = now;
    if (is_told) {
      status_->problem = text;
      status_->problem_at = now;
    }
  }
  if (is_told) log_problem(round_.is_alone() ? named : text);
  return have_all_failed;
}

void Dialler::log_problem(const std::string& problem) {
  const TimePoint now = port_.now();
  const Duration quiet = problem == logged_ ? kBetweenRepetitions : kBetweenLines;
  if (logged_at_ && now - *logged_at_ < quiet) return;
  logged_ = problem;
  logged_at_ = now;
  tells_success_ = true;
  spdlog::warn("control.coordinator: {} (this stage goes on without it, and tries again)", problem);
}

}  // namespace vpfs::control
