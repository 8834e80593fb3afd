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
#include "base/units.h"
#include "control/wire/leader/address_list.h"
#include "control/wire/protocol.h"

namespace vpfs::coordinator {
namespace {

using control::Envelope;
using control::make_error;

constexpr std::size_t kMostFrame = std::size_t{64} * 1024 * 1024;
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
                                                     CycleRunner& runner, ParentHandler& handler,
                                                     const ParentLimits& limits) {
  std::unique_ptr<ParentLink> link(
      new ParentLink(context, clock, config, room, uplink, runner, handler, limits));
  const bool has_own_files = !config.parent->tls.certificate.empty();
  if (control::any_is_tcp(config.parent->addresses) || has_own_files) {
    auto tls = net::TlsContext::load(has_own_files ? config.parent->tls : config.dialling,
                                     net::TlsSide::client);
    if (!tls) return fail("parent.certificate: " + tls.error().message, tls.error().code);
    link->tls_ = std::move(*tls);
  }
  return link;
}

ParentLink::ParentLink(asio::io_context& context, const Clock& clock, const Config& config,
                       LinkRoom& room, allocation::Uplink& uplink, CycleRunner& runner,
                       ParentHandler& handler, const ParentLimits& limits)
    : context_(context),
      clock_(clock),
      config_(config),
      room_(room),
      uplink_(uplink),
      runner_(runner),
      handler_(handler),
      limits_(limits),
      round_(config.parent->addresses),
      lookups_(context),
      dial_timer_(context),
      lease_timer_(context),
      silence_timer_(context),
      pause_(limits.least_pause),
      hello_within_(limits.connect_each) {}

ParentLink::~ParentLink() {
  stop();
}

void ParentLink::start() {
  dial();
}

void ParentLink::follow(std::vector<control::PortAddress> addresses) {
  if (is_stopped_) return;
  pause_ = limits_.least_pause;
  if (addresses == round_.addresses()) return;
  followed_at_ = clock_.now();
  ++follows_;
  drop_link();
  connection_state_ = State::away;
  round_ = control::AddressRound(std::move(addresses));
  problem_ = "was not dialled yet";
  dial_after(Duration::zero());
}

void ParentLink::stop() {
  if (std::exchange(is_stopped_, true)) return;
  dial_timer_.cancel();
  lease_timer_.cancel();
  silence_timer_.cancel();
  if (link_ != nullptr) link_->close();
}

ParentLink::Status ParentLink::status() const {
  std::vector<std::string> addresses;
  for (const control::PortAddress& address : round_.addresses()) {
    addresses.push_back(control::to_string(address));
  }
  return {.is_connected = connection_state_ == State::connected,
          .is_led = is_led_,
          .address = address_,
          .addresses = std::move(addresses),
          .problem = problem_,
          .term = term_,
          .sequence = sequence_};
}

void ParentLink::dial() {
  if (round_.addresses().empty()) return;
  auto hello = handler_.hello();
  if (!hello) {
    note_problem("it has no stage yet, so its cost model is not known");
    return dial_after_pause();
  }
  address_ = control::to_string(round_.current());
  asio::co_spawn(context_, connect(std::move(*hello)), asio::detached);
}

net::Task<> ParentLink::connect(control::Hello hello) {
  const std::uint64_t follows = follows_;
  DialledStream stream = co_await open_stream(round_.current());
  if (is_stopped_ || follows != follows_) co_return;
  if (!stream) {
    go_on(stream.error());
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

net::Task<DialledStream> ParentLink::open_stream(control::PortAddress address) {
  const Duration patience = round_.is_alone() ? limits_.connect : limits_.connect_each;
  DialTarget target = {.address = address, .peer = "coordinator", .key = "stages.listen"};
  if (!address.is_unix()) {
    // A name service that hangs must not hold up the other addresses.
    auto found = co_await lookups_.find(std::move(address), patience);
    VPFS_CO_TRY(found);
    target.endpoints = std::move(*found);
  }
  co_return co_await dial_stream(std::move(target), patience, tls_);
}

void ParentLink::go_on(const std::string& why) {
  const bool was_connected = connection_state_ == State::connected;
  connection_state_ = State::away;
  if (is_stopped_) return;
  if (was_connected && clock_.now() - connected_at_ >= limits_.most_pause) round_.begin();
  const bool have_all_failed = round_.fail(why);
  // That one of several does not lead is told only if none does.
  if (have_all_failed) {
    note_problem(round_.problem());
  } else if (was_connected) {
    note_problem(address_ + ": " + why);
  }
  have_all_failed ? dial_after_pause() : dial_after(Duration::zero());
}

void ParentLink::note_problem(const std::string& problem) {
  // One that has just been elected may not listen yet.
  if (followed_at_ && clock_.now() - *followed_at_ < limits_.settle) return;
  const std::string of_one = round_.is_alone() ? " " + to_string(round_.current()) : "";
  if (problem_ != problem) spdlog::warn("parent{}: {}", of_one, problem);
  problem_ = problem;
}

void ParentLink::dial_after_pause() {
  dial_after(pause_);
  pause_ = std::min(2 * pause_, limits_.most_pause);
}

void ParentLink::dial_after(Duration pause) {
  dial_timer_.expires_after(pause);
  dial_timer_.async_wait([this](std::error_code error) {
    if (!error && !is_stopped_) dial();
  });
}

void ParentLink::opened(FrameLink& /*link*/) {
  *out_.mutable_hello() = hello_;
  send(out_, 1);
}

// A parent that hangs, or whose machine is gone, ends no connection. While its lease lasts it may
// be silent. One of several has less time for its Hello.
void ParentLink::watch_silence() {
  if (connection_state_ == State::greeting && !round_.is_alone()) {
    silence_timer_.expires_after(hello_within_);
    silence_timer_.async_wait([this](std::error_code error) {
      if (error || is_stopped_ || connection_state_ != State::greeting) return;
      const std::string why = "no answer within " + to_string(hello_within_);
      hello_within_ = std::max(hello_within_, std::min(2 * hello_within_, limits_.connect));
      lose(why);
    });
    return;
  }
  const TimePoint last = std::max(heard_at_, uplink_.lease_end().value_or(heard_at_));
  silence_timer_.expires_at(last + limits_.silence);
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
  drop_link();
  go_on(why);
}

void ParentLink::drop_link() {
  if (link_ == nullptr) return;
  silence_timer_.cancel();
  link_->close();
  if (gone_.empty()) asio::post(context_, [this] { gone_.clear(); });
  gone_.push_back(std::move(link_));
  waiting_.reset();
}

void ParentLink::greeted(const Envelope& envelope) {
  if (envelope.has_error()) {
    lose("it refuses: " + control::describe(envelope.error()));
    const auto& named = envelope.error().addresses();
    return round_.prefer({named.begin(), named.end()});
  }
  const control::Hello& hello = envelope.hello();
  if (!envelope.has_hello() || hello.role() != control::Hello::COORDINATOR) {
    return lose("it is not a coordinator");
  }
  if (control::is_standby(hello)) return lose("it is a standby, and does not lead");
  if (!hello.policy().empty() && hello.policy() != config_.policy) {
    return lose(fmt::format("its policy is {}, that of this aggregator is {}: they must agree",
                            one_short_line(hello.policy()), config_.policy));
  }
  connection_state_ = State::connected;
  connected_at_ = clock_.now();
  hello_within_ = limits_.connect_each;
  if (!round_.is_alone()) watch_silence();
  ++connections_;
  uplink_.connect();
  problem_.clear();
  pause_ = limits_.least_pause;
  spdlog::info("parent {} at {} is connected", one_short_line(hello.name()), address_);
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
                 control::to_string(round_.addresses()));
  }
  handler_.led(is_led);
}

void ParentLink::answer(const Taken& cycle) {
  control::Report& report = begin_report(cycle);
  report.set_applied(true);
  report.set_pending(uplink_.is_pending());
  if (std::string model = handler_.cost_model_to_tell(); !model.empty()) {
    report.set_cost_model(std::move(model));
  }
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
