#include "control/coordinator/links/parent_link.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/post.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/one_line.h"
#include "control/coordinator/links/dial_stream.h"
#include "control/wire/protocol.h"

namespace vpfs::coordinator {
namespace {

using control::Envelope;
using control::make_error;

constexpr std::size_t kMostFrame = std::size_t{64} * 1024 * 1024;
constexpr Duration kLeastPause = std::chrono::milliseconds(100);
constexpr Duration kMostPause = std::chrono::seconds(2);
constexpr Duration kConnect = std::chrono::seconds(5);
// A parent without a lease says something at least as often.
constexpr Duration kSilence = std::chrono::seconds(10);
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

void fill(control::Flow& to, const allocation::FlowName& from) {
  to.set_id(from.flow);
  to.set_generation(from.generation);
  to.set_name(from.job.data(), from.job.size());
  to.set_weight(from.weight);
  to.set_stages(from.stages);
}

void fill(control::FlowReport& to, const allocation::FlowCounters& from) {
  to.set_flow(from.flow);
  to.set_ended(from.ended);
  to.set_arrived_requests(from.arrived_requests);
  to.set_arrived_bytes(from.arrived_bytes);
  to.set_metadata_operations(from.metadata_operations);
  to.set_done_cost(from.done_cost);
  to.set_limited_us(from.limited.count());
}

}  // namespace

Result<std::unique_ptr<ParentLink>> ParentLink::make(asio::io_context& context, const Clock& clock,
                                                     const Config& config, LinkRoom& room,
                                                     allocation::Uplink& uplink,
                                                     CycleRunner& runner, ParentHandler& handler) {
  std::unique_ptr<ParentLink> link(
      new ParentLink(context, clock, config, room, uplink, runner, handler));
  if (!config.parent->is_unix()) {
    auto tls = net::TlsContext::load(config.dialling, net::TlsSide::client);
    if (!tls) return fail("parent.certificate: " + tls.error().message, tls.error().code);
    link->tls_ = std::move(*tls);
  }
  return link;
}

ParentLink::ParentLink(asio::io_context& context, const Clock& clock, const Config& config,
                       LinkRoom& room, allocation::Uplink& uplink, CycleRunner& runner,
                       ParentHandler& handler)
    : context_(context),
      clock_(clock),
      config_(config),
      room_(room),
      uplink_(uplink),
      runner_(runner),
      handler_(handler),
      dial_timer_(context),
      lease_timer_(context),
      silence_timer_(context),
      pause_(kLeastPause) {}

ParentLink::~ParentLink() {
  stop();
}

void ParentLink::start() {
  dial();
}

void ParentLink::stop() {
  if (std::exchange(is_stopped_, true)) return;
  dial_timer_.cancel();
  lease_timer_.cancel();
  silence_timer_.cancel();
  if (link_ != nullptr) link_->close();
}

ParentLink::Status ParentLink::status() const {
  return {.is_connected = connection_state_ == State::connected,
          .is_led = is_led_,
          .address = control::to_string(*config_.parent),
          .problem = problem_,
          .term = term_,
          .sequence = sequence_};
}

void ParentLink::dial() {
  auto hello = handler_.hello();
  if (!hello) return dial_later("it has no stage yet, so its cost model is not known");
  asio::co_spawn(context_, connect(std::move(*hello)), asio::detached);
}

net::Task<> ParentLink::connect(control::Hello hello) {
  DialTarget target = {.address = *config_.parent, .peer = "coordinator", .key = "stages.listen"};
  DialledStream stream = co_await dial_stream(std::move(target), kConnect, tls_);
  if (is_stopped_) co_return;
  if (!stream) {
    dial_later(stream.error());
    co_return;
  }
  hello_ = std::move(hello);
  connection_state_ = State::greeting;
  FrameLink::FrameHandler& self = *this;
  link_ = std::make_unique<FrameLink>(std::move(*stream), room_, self, kMostFrame);
  heard_at_ = clock_.now();
  watch_silence();
  link_->open();
}

void ParentLink::dial_later(const std::string& problem) {
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

void ParentLink::opened(FrameLink& /*link*/) {
  *out_.mutable_hello() = hello_;
  send(out_, 1);
}

// A parent that hangs, or whose machine is gone, ends no connection. While its lease lasts it may
// be silent.
void ParentLink::watch_silence() {
  const TimePoint last = std::max(heard_at_, uplink_.lease_end().value_or(heard_at_));
  silence_timer_.expires_at(last + kSilence);
  silence_timer_.async_wait([this, last](std::error_code error) {
    if (error || is_stopped_ || link_ == nullptr) return;
    const bool said_nothing = heard_at_ <= last && uplink_.lease_end().value_or(last) <= last;
    said_nothing ? lose("it was silent for too long") : watch_silence();
  });
}

void ParentLink::received(FrameLink& /*link*/, std::span<const std::byte> frame) {
  heard_at_ = clock_.now();
  Envelope& envelope = memory_.begin();
  if (!control::decode(frame, envelope)) {
    lose("not the control protocol: a frame that is not a message");
  } else if (connection_state_ == State::connected) {
    handle(envelope);
  } else {
    greeted(envelope);
  }
  memory_.end(control::MessageMemory::kUsual);
}

void ParentLink::ended(FrameLink& /*link*/, const std::string& why) {
  lose(why);
}

void ParentLink::lose(const std::string& why) {
  if (link_ == nullptr) return;
  silence_timer_.cancel();
  link_->close();
  if (gone_.empty()) asio::post(context_, [this] { gone_.clear(); });
  gone_.push_back(std::move(link_));
  waiting_.reset();
  dial_later(why);
}

void ParentLink::greeted(const Envelope& envelope) {
  if (envelope.has_error()) return lose("it refuses: " + control::describe(envelope.error()));
  const control::Hello& hello = envelope.hello();
  if (!envelope.has_hello() || hello.role() != control::Hello::COORDINATOR) {
    return lose("it is not a coordinator");
  }
  if (!hello.policy().empty() && hello.policy() != config_.policy) {
    return lose(fmt::format("its policy is {}, that of this aggregator is {}: they must agree",
                            one_short_line(hello.policy()), config_.policy));
  }
  connection_state_ = State::connected;
  ++connections_;
  uplink_.connect();
  problem_.clear();
  pause_ = kLeastPause;
  spdlog::info("parent {} at {} is connected", one_short_line(hello.name()),
               control::to_string(*config_.parent));
}

void ParentLink::handle(const Envelope& envelope) {
  if (envelope.answer()) return;
  if (envelope.has_cycle()) return take_cycle(envelope.cycle(), envelope.id());
  handler_.ask(envelope,
               [this, number = envelope.id(), connection = connections_](Envelope answer) {
                 if (connection == connections_ && link_ != nullptr) send(answer, number);
               });
}

void ParentLink::take_cycle(const control::Cycle& cycle, std::uint64_t number) {
  const Taken taken = {
      .number = number,
      .connection = connections_,
      .term = cycle.term(),
      .sequence = cycle.sequence(),
      .lease = std::chrono::microseconds(std::min(cycle.lease_us(), kLongestLeaseUs)),
      .complete = cycle.complete(),
      .want_report = cycle.want_report()};
  if (waiting_) {
    return refuse(
        taken, make_error(control::Error::UNAVAILABLE, "", "the cycle before is not answered yet"));
  }
  waiting_ = taken;
  grants_.clear();
  for (const control::Allocation& each : cycle.allocations()) {
    grants_.push_back({.flow = each.flow(), .grant = grant_of(each)});
  }
  // A round takes answers of stages between its messages, which is not possible in here.
  asio::post(context_, [this] { run_waiting(); });
}

// The aggregator's own round, or that of a connection before, may still be under way: then
// round_is_over() comes.
void ParentLink::run_waiting() {
  if (!waiting_ || runner_.is_running()) return;
  const Taken cycle = *std::exchange(waiting_, std::nullopt);
  const auto sense = uplink_.on_cycle({.term = cycle.term,
                                       .sequence = cycle.sequence,
                                       .lease = cycle.lease,
                                       .complete = cycle.complete,
                                       .grants = grants_},
                                      clock_.now());
  if (sense == allocation::Uplink::Taken::outdated) {
    return refuse(cycle, make_error(control::Error::OUTDATED, "sequence",
                                    "a cycle of this or a later epoch was applied before"));
  }
  term_ = cycle.term;
  sequence_ = cycle.sequence;
  look_whether_led();
  const bool asks = sense == allocation::Uplink::Taken::asked;
  const auto kind = asks                ? CycleRunner::Kind::ask
                    : cycle.want_report ? CycleRunner::Kind::fused
                                        : CycleRunner::Kind::enforce;
  runner_.run(kind, [this, cycle](const CycleRunner::Times& /*times*/) {
    if (cycle.connection == connections_ && link_ != nullptr) answer(cycle);
    run_waiting();
  });
}

void ParentLink::look_whether_led() {
  if (const auto end = uplink_.lease_end()) {
    lease_timer_.expires_at(*end);
    lease_timer_.async_wait([this](std::error_code error) {
      if (error || is_stopped_) return;
      uplink_.on_turn(clock_.now());
      look_whether_led();
    });
  }
  const bool is_led = uplink_.in_force();
  if (std::exchange(is_led_, is_led) == is_led) return;
  if (!is_led) {
    spdlog::warn("parent {}: its lease has ended: going on alone",
                 control::to_string(*config_.parent));
  }
  handler_.led(is_led);
}

void ParentLink::answer(const Taken& cycle) {
  control::Report& report = begin_report(cycle);
  report.set_applied(true);
  report.set_pending(uplink_.is_pending());
  if (cycle.want_report) {
    const allocation::Uplink::Report told = uplink_.report();
    report.set_pending(told.pending);
    flows_.mutable_flows()->clear_flows();
    for (const auto& each : told.announced) fill(*flows_.mutable_flows()->add_flows(), each);
    for (const auto& each : told.flows) fill(*report.add_flows(), each);
    if (!told.announced.empty()) send(flows_, cycle.number);
  }
  send(out_, cycle.number);
}

void ParentLink::refuse(const Taken& cycle, control::Error why) {
  *begin_report(cycle).mutable_refused() = std::move(why);
  send(out_, cycle.number);
}

control::Report& ParentLink::begin_report(const Taken& cycle) {
  control::Report& report = *out_.mutable_report();
  report.Clear();
  report.set_term(cycle.term);
  report.set_sequence(cycle.sequence);
  return report;
}

void ParentLink::send(Envelope& envelope, std::uint64_t number) {
  envelope.set_id(number);
  envelope.set_answer(!envelope.has_hello());
  frames_.clear();
  if (control::append_frame(envelope, control::kMostAnswer, frames_)) link_->send(frames_);
}

}  // namespace vpfs::coordinator
