#include "control/coordinator/uplink.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/post.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "control/wire/client_connect.h"
#include "control/wire/protocol.h"
#include "net/ready_stream.h"
#include "net/socket_options.h"

namespace vpfs::coordinator {
namespace {

using control::Envelope;
using control::make_error;

constexpr std::size_t kMostKept = std::size_t{1024} * 1024;
constexpr std::size_t kMostFrame = std::size_t{64} * 1024 * 1024;
constexpr Duration kLeastPause = std::chrono::milliseconds(100);
constexpr Duration kMostPause = std::chrono::seconds(2);
constexpr Duration kConnect = std::chrono::seconds(5);
constexpr std::uint64_t kLongestLeaseUs = std::uint64_t{3600} * 1'000'000;

allocation::Grant grant_of(const control::Allocation& from) {
  allocation::Grant grant;
  if (from.has_bytes_per_second()) grant.bytes = from.bytes_per_second();
  if (from.has_operations_per_second()) grant.operations = from.operations_per_second();
  if (from.has_metadata_operations_per_second()) {
    grant.metadata_operations = from.metadata_operations_per_second();
  }
  if (from.has_elsewhere_total()) grant.elsewhere_total = from.elsewhere_total();
  return grant;
}

// What was granted to all jobs together. Where somebody has a cap it is not zero, which would mean
// that nothing is divided.
struct Sums {
  allocation::Amounts amounts;

  void add(const allocation::Grant& grant) {
    for (const allocation::Resource& each : allocation::kResources) {
      const std::optional<std::uint64_t>& cap = grant.*each.grant;
      if (!cap) continue;
      std::uint64_t& sum = amounts.*each.amount;
      sum = std::max<std::uint64_t>(allocation::add_saturating(sum, *cap), 1);
    }
  }
};

}  // namespace

Result<std::unique_ptr<Uplink>> Uplink::make(asio::io_context& context, const Clock& clock,
                                             const Config& config, LinkRoom& room,
                                             allocation::CycleState& state,
                                             allocation::GivenPolicy& given, CycleRunner& runner,
                                             Host& host) {
  std::unique_ptr<Uplink> uplink(
      new Uplink(context, clock, config, room, state, given, runner, host));
  if (!config.parent->is_unix()) {
    auto tls = net::TlsContext::load(config.dialling, net::TlsSide::client);
    if (!tls) return fail("parent.certificate: " + tls.error().message, tls.error().code);
    uplink->tls_ = std::move(*tls);
  }
  return uplink;
}

Uplink::Uplink(asio::io_context& context, const Clock& clock, const Config& config, LinkRoom& room,
               allocation::CycleState& state, allocation::GivenPolicy& given, CycleRunner& runner,
               Host& host)
    : context_(context),
      clock_(clock),
      config_(config),
      room_(room),
      state_(state),
      given_(given),
      runner_(runner),
      host_(host),
      dial_timer_(context),
      lease_timer_(context),
      pause_(kLeastPause) {}

Uplink::~Uplink() {
  stop();
}

void Uplink::start() {
  dial();
}

void Uplink::stop() {
  if (std::exchange(is_stopped_, true)) return;
  dial_timer_.cancel();
  lease_timer_.cancel();
  if (link_ != nullptr) link_->close();
}

Uplink::Status Uplink::status() const {
  return {.is_connected = connection_state_ == State::connected,
          .is_led = is_led_,
          .address = control::to_string(*config_.parent),
          .problem = problem_,
          .term = term_,
          .sequence = sequence_};
}

void Uplink::dial() {
  auto hello = host_.hello();
  if (!hello) return dial_later("it has no stage yet, so its cost model is not known");
  asio::co_spawn(context_, connect(std::move(*hello)), asio::detached);
}

net::Task<> Uplink::connect(control::Hello hello) {
  const control::PortAddress& address = *config_.parent;
  control::ClientOptions options;
  options.connect_within = kConnect;
  options.peer = "coordinator";
  options.key = "stages.listen";
  options.names_users = false;
  auto socket = co_await control::connect_socket(address, std::move(options));
  if (is_stopped_) co_return;
  if (!socket) {
    dial_later(socket.error());
    co_return;
  }
  std::unique_ptr<net::ReadyStream> stream;
  if (address.is_unix()) {
    stream = net::make_ready_stream(std::move(*socket));
  } else {
    net::keep_alive(socket->native_handle());
    stream =
        net::make_ready_tls_stream(std::move(*socket), tls_, net::TlsSide::client, address.host);
  }
  hello_ = std::move(hello);
  connection_state_ = State::greeting;
  Link::Owner& self = *this;
  link_ = std::make_unique<Link>(std::move(stream), room_, self, kMostFrame);
  link_->open();
}

void Uplink::dial_later(const std::string& problem) {
  connection_state_ = State::away;
  if (is_stopped_) return;
  if (problem_ != problem) {
    spdlog::warn("parent {}: {}", control::to_string(*config_.parent), problem);
  }
  problem_ = problem;
  dial_timer_.expires_after(pause_);
  pause_ = std::min(2 * pause_, kMostPause);
  dial_timer_.async_wait([this](std::error_code error) {
    if (!error && !is_stopped_) dial();
  });
}

void Uplink::opened(Link& /*link*/) {
  *out_.mutable_hello() = hello_;
  send(out_, 1);
}

void Uplink::received(Link& /*link*/, std::span<const std::byte> frame) {
  Envelope& envelope = memory_.begin();
  if (!control::decode(frame, envelope)) {
    lose("not the control protocol: a frame that is no message");
  } else if (connection_state_ == State::connected) {
    handle(envelope);
  } else {
    greeted(envelope);
  }
  memory_.end(kMostKept);
}

void Uplink::ended(Link& /*link*/, const std::string& why) {
  lose(why);
}

void Uplink::lose(const std::string& why) {
  if (link_ == nullptr) return;
  link_->close();
  if (gone_.empty()) asio::post(context_, [this] { gone_.clear(); });
  gone_.push_back(std::move(link_));
  waiting_.reset();
  dial_later(why);
}

void Uplink::greeted(const Envelope& envelope) {
  if (envelope.has_error()) return lose("it refuses: " + envelope.error().text());
  const control::Hello& hello = envelope.hello();
  if (!envelope.has_hello() || hello.role() != control::Hello::COORDINATOR) {
    return lose("it is no coordinator");
  }
  if (!hello.policy().empty() && hello.policy() != config_.policy) {
    return lose(fmt::format("its policy is {}, that of this aggregator is {}: they must agree",
                            hello.policy(), config_.policy));
  }
  connection_state_ = State::connected;
  ++connections_;
  reports_ = {};
  problem_.clear();
  pause_ = kLeastPause;
  spdlog::info("parent {} at {} is connected", hello.name(), control::to_string(*config_.parent));
}

void Uplink::handle(const Envelope& envelope) {
  if (envelope.answer()) return;
  if (envelope.has_cycle()) return take_cycle(envelope.cycle(), envelope.id());
  host_.ask(envelope, [this, number = envelope.id(), connection = connections_](Envelope answer) {
    if (connection == connections_ && link_ != nullptr) send(answer, number);
  });
}

void Uplink::take_cycle(const control::Cycle& cycle, std::uint64_t number) {
  const bool asks_only = !cycle.complete() && cycle.allocations_size() == 0;
  if (!asks_only && std::pair(cycle.term(), cycle.sequence()) <= std::pair(term_, sequence_)) {
    return refuse(cycle, number,
                  make_error(control::Error::OUTDATED, "sequence",
                             "a cycle of this or a later epoch was applied before"));
  }
  if (waiting_) {
    return refuse(
        cycle, number,
        make_error(control::Error::UNAVAILABLE, "", "the cycle before is not answered yet"));
  }
  waiting_ = {.cycle = cycle, .number = number, .connection = connections_};
  // A round takes answers of stages between its messages, which is not possible in here.
  asio::post(context_, [this] { run_waiting(); });
}

// The aggregator's own round, or that of a connection before, may still be under way: then
// round_is_over() comes.
void Uplink::run_waiting() {
  if (!waiting_ || runner_.is_running()) return;
  const control::Cycle& cycle = waiting_->cycle;
  const bool asks_only = !cycle.complete() && cycle.allocations_size() == 0;
  if (!asks_only) give(cycle);
  const auto kind = asks_only             ? CycleRunner::Kind::ask
                    : cycle.want_report() ? CycleRunner::Kind::fused
                                          : CycleRunner::Kind::enforce;
  runner_.run(kind,
              [this, waiting = std::exchange(waiting_, std::nullopt)](const CycleRunner::Times&) {
                if (waiting->connection == connections_ && link_ != nullptr) {
                  answer(waiting->cycle, waiting->number);
                }
                run_waiting();
              });
}

void Uplink::give(const control::Cycle& cycle) {
  if (cycle.term() != term_) given_.forget_totals();
  term_ = cycle.term();
  sequence_ = cycle.sequence();
  const std::chrono::microseconds lease(std::min(cycle.lease_us(), kLongestLeaseUs));
  if (lease == Duration::zero()) {
    lease_end_.reset();
    return set_led(false);
  }
  lease_end_ = clock_.now() + lease;
  given_.begin_parent();
  Sums sums;
  for (const control::Allocation& each : cycle.allocations()) {
    const std::string* job = reports_.find(each.flow());
    if (job == nullptr) continue;
    const allocation::Grant grant = grant_of(each);
    given_.give(*job, grant);
    sums.add(grant);
  }
  state_.set_capacity(sums.amounts);
  state_.set_caps_end(*lease_end_);
  set_led(true);
  watch_lease();
}

void Uplink::watch_lease() {
  lease_timer_.expires_at(*lease_end_);
  lease_timer_.async_wait([this](std::error_code error) {
    if (error || is_stopped_ || !lease_end_ || clock_.now() < *lease_end_) return;
    spdlog::warn("parent {}: was not heard of for its lease: going on alone",
                 control::to_string(*config_.parent));
    lease_end_.reset();
    set_led(false);
  });
}

void Uplink::set_led(bool is_led) {
  if (std::exchange(is_led_, is_led) == is_led) return;
  if (!is_led) {
    given_.end_parent();
    given_.forget_totals();
  }
  host_.led(is_led);
}

void Uplink::answer(const control::Cycle& cycle, std::uint64_t number) {
  control::Report& report = *out_.mutable_report();
  report.Clear();
  report.set_applied(true);
  report.set_pending(!state_.settled());
  report.set_sequence(cycle.sequence());
  report.set_term(cycle.term());
  if (cycle.want_report()) {
    Envelope flows;
    reports_.add(state_, *flows.mutable_flows(), report);
    if (flows.flows().flows_size() > 0) send(flows, number);
  }
  send(out_, number);
}

void Uplink::refuse(const control::Cycle& cycle, std::uint64_t number, control::Error why) {
  control::Report& report = *out_.mutable_report();
  report.Clear();
  report.set_sequence(cycle.sequence());
  report.set_term(cycle.term());
  *report.mutable_refused() = std::move(why);
  send(out_, number);
}

void Uplink::send(Envelope& envelope, std::uint64_t number) {
  envelope.set_id(number);
  envelope.set_answer(!envelope.has_hello());
  frames_.clear();
  if (control::append_frame(envelope, control::kMostAnswer, frames_)) link_->send(frames_);
}

}  // namespace vpfs::coordinator
