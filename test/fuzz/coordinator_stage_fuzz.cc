#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/allocation/cycle_state.h"
#include "control/coordinator/links/cycle_runner.h"
#include "control/coordinator/links/stage_links.h"
#include "test/fuzz/fuzz_input.h"
#include "test/fuzz/require.h"
#include "test/support/manual_clock.h"
#include "test/support/process.h"

// Two stages dial a coordinator: one is honest, the other one says anything after its Hello, and
// takes leave at any time. The honest one is served in each cycle, the caps that may be in force
// stay within the capacity, and what the coordinator sends is whole messages.
namespace vpfs::test {
namespace {

using namespace std::chrono_literals;
using allocation::StageId;
using control::Envelope;
using coordinator::CycleRunner;
using coordinator::StageHello;
using coordinator::StageLinks;

constexpr std::uint64_t kCapacity = 1'000'000;
constexpr std::uint64_t kTerm = 5;
constexpr int kMostTurns = 200;

const TemporaryDirectory& folder() {
  static const TemporaryDirectory made;
  return made;
}

// A stage's socket.
class Peer {
 public:
  explicit Peer(const std::string& path)
      : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    asio::local::stream_protocol::endpoint to(path);
    require(::connect(socket_, to.data(), static_cast<socklen_t>(to.size())) == 0,
            "the coordinator does not listen");
  }
  ~Peer() { ::close(socket_); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  void give(std::span<const std::byte> bytes) {
    if (::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) ended_ = true;
  }
  void give(const Envelope& message) {
    std::string frame;
    require(control::append_frame(message, control::kMostAnswer, frame), "no frame");
    give(std::as_bytes(std::span(frame)));
  }
  void greet(const std::string& name, std::uint64_t incarnation) {
    Envelope hello;
    hello.set_id(1);
    hello.mutable_hello()->set_version(1);
    hello.mutable_hello()->set_least(1);
    hello.mutable_hello()->set_role(control::Hello::STAGE);
    hello.mutable_hello()->set_name(name);
    hello.mutable_hello()->set_incarnation(incarnation);
    give(hello);
  }
  // Reads what has come; remembers the last cycle.
  void take() {
    for (;;) {
      const auto room = reader_.room();
      const ssize_t size = ::recv(socket_, room.data(), room.size(), MSG_DONTWAIT);
      if (size <= 0) {
        if (size == 0 || errno != EAGAIN) ended_ = true;
        break;
      }
      reader_.received(static_cast<std::size_t>(size));
      for (;;) {
        const auto frame = reader_.next();
        require(frame.has_value(), "the coordinator broke its framing");
        if (!*frame) break;
        Envelope message;
        require(control::decode(**frame, message), "the coordinator sent an invalid message");
        if (!message.has_cycle()) continue;
        ++cycles;
        cycle = message.cycle();
        cycle_number = message.id();
        std::uint64_t sum = 0;
        for (const auto& each : cycle.allocations()) sum += each.bytes_per_second();
        require(sum <= kCapacity, "one stage was given more than there is");
      }
    }
  }
  [[nodiscard]] bool ended() const { return ended_; }

  std::size_t cycles = 0;  // that came
  control::Cycle cycle;    // the last one
  std::uint64_t cycle_number = 0;

 private:
  int socket_;
  bool ended_ = false;
  control::FrameReader reader_{control::kMostAnswer};
};

// What the coordinator does with stages, without its signals and its timer.
class FuzzStageHandler final : public StageLinks::StageHandler {
 public:
  FuzzStageHandler(allocation::CycleState& state, CycleRunner& runner, const Clock& clock)
      : state_(state), runner_(runner), clock_(clock) {}

  std::expected<StageId, control::Error> admit(const StageHello& hello) override {
    auto stage = state_.join(hello.name, hello.incarnation, clock_.now());
    if (stage) return *stage;
    return std::unexpected(
        control::make_error(control::Error::EXISTS, "name", stage.error().message));
  }
  void joined(StageId /*stage*/) override {}
  void left(StageId stage) override {
    state_.leave(stage, clock_.now());
    runner_.left();
  }
  void announced(StageId stage, const control::Flows& flows) override {
    for (const control::Flow& flow : flows.flows())
      (void)coordinator::announce(state_, stage, flow);
  }
  void reported(StageId stage, const control::Report& report) override {
    runner_.reported(stage, report);
  }
  void refused_cycle(StageId stage, std::uint64_t sequence, const control::Error& why) override {
    runner_.refused(stage, sequence, why);
  }

 private:
  allocation::CycleState& state_;
  CycleRunner& runner_;
  const Clock& clock_;
};

class Run {
 public:
  explicit Run(FuzzInput& in)
      : in_(in),
        state_(settings(), policy(in), kTerm),
        runner_(context_, clock_, state_),
        handler_(state_, runner_, clock_) {
    config_.listen.socket = folder().path() / "stages.sock";
    StageLinks::Limits limits;
    limits.unasked = 50;
    limits.frame_of_stages = 65536;
    auto links = StageLinks::open(context_, clock_, config_, handler_, limits);
    require(links.has_value(), "the coordinator cannot listen");
    links_ = std::move(*links);
    runner_.use(*links_);
    links_->start();
    honest_.emplace(config_.listen.socket);
    honest_->greet("honest", 1);
    connect_liar();
    turn();
  }
  ~Run() {
    runner_.stop();
    links_->stop();
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  void step() {
    if (liar_->ended()) connect_liar();
    switch (in_.below(10)) {
      case 0:
        liar_->give(in_.bytes(in_.u8()));
        break;
      case 1:
        give_frame();
        break;
      case 2:
        announce();
        break;
      case 3:
      case 4:
        report();
        break;
      case 5:
        give_error();
        break;
      case 6:
        clock_.set(clock_.now() + std::chrono::milliseconds(in_.u16()));
        break;
      case 7:
        if (in_.u8() % 4 == 0) connect_liar();
        break;
      default:
        run_cycle();
    }
    turn();
  }
  // The honest one is served, whatever was said before.
  void run_cycle() {
    answer_honestly();
    turn();
    const std::size_t before = honest_->cycles;
    if (runner_.is_running()) return;
    runner_.run(in_.below(3) == 0 ? CycleRunner::Kind::ask : CycleRunner::Kind::fused,
                [](const CycleRunner::Times&) {});
    require(state_.in_force().bytes <= kCapacity, "more is in force than there is");
    turn();
    require(honest_->cycles == before + 1, "the honest stage got no cycle");
    require(!runner_.is_running(), "a cycle does not end");
  }

 private:
  static allocation::CycleSettings settings() {
    allocation::CycleSettings settings;
    settings.capacity.bytes = kCapacity;
    settings.silent_cycles = 3;
    settings.most_flows = 64;
    return settings;
  }
  static std::unique_ptr<allocation::AllocationPolicy> policy(FuzzInput& in) {
    allocation::AllocationPolicySettings settings;
    settings.capacity.bytes = kCapacity;
    settings.limits["a"] = {.bytes = 1000};
    const auto all = allocation::policies();
    return all[in.below(all.size())]->make(settings);
  }

  void turn() {
    for (int i = 0; i < kMostTurns; ++i) {
      context_.restart();
      if (context_.poll() == 0) break;
    }
    honest_->take();
    liar_->take();
    require(!honest_->ended(), "the honest stage was disconnected");
  }
  void connect_liar() {
    liar_.emplace(config_.listen.socket);
    liar_->greet("liar", in_.u8() % 2);
  }
  void answer_honestly() {
    if (honest_->cycle_number == 0) return;
    if (!std::exchange(is_announced_, true)) {
      Envelope flows;
      control::Flow& flow = *flows.mutable_flows()->add_flows();
      flow.set_name("a");
      flow.set_weight(1);
      honest_->give(flows);
    }
    Envelope answer;
    answer.set_id(std::exchange(honest_->cycle_number, 0));
    answer.set_answer(true);
    control::Report& report = *answer.mutable_report();
    report.set_term(honest_->cycle.term());
    report.set_sequence(honest_->cycle.sequence());
    report.set_applied(true);
    control::FlowReport& flow = *report.add_flows();
    flow.set_arrived_bytes(done_ += 1000);
    flow.set_done_cost(done_);
    honest_->give(answer);
  }

  void give_frame() {
    const auto body = in_.bytes(in_.size() % 70'000);
    std::string frame;
    for (int shift = 24; shift >= 0; shift -= 8) frame += static_cast<char>(body.size() >> shift);
    frame.append(reinterpret_cast<const char*>(body.data()), body.size());
    liar_->give(std::as_bytes(std::span(frame)));
  }
  void announce() {
    Envelope message;
    for (std::size_t i = in_.below(5); i > 0; --i) {
      control::Flow& flow = *message.mutable_flows()->add_flows();
      flow.set_id(static_cast<std::uint32_t>(in_.size()));
      flow.set_generation(in_.u8() % 3);
      flow.set_name(std::string(in_.below(3), static_cast<char>('a' + in_.below(3))));
      flow.set_weight(static_cast<std::uint32_t>(in_.size()));
    }
    liar_->give(message);
  }
  void report() {
    Envelope message;
    message.set_id(liar_->cycle_number);
    message.set_answer(in_.u8() % 4 != 0);
    control::Report& report = *message.mutable_report();
    const std::uint8_t lies = in_.u8();
    report.set_term((lies & 1U) != 0 ? in_.size() : liar_->cycle.term());
    report.set_sequence((lies & 2U) != 0 ? in_.size() : liar_->cycle.sequence());
    report.set_applied((lies & 4U) == 0);
    if ((lies & 24U) == 24) {
      report.mutable_refused()->set_code(static_cast<control::Error::Code>(in_.below(9)));
    }
    for (std::size_t i = in_.below(5); i > 0; --i) {
      control::FlowReport& flow = *report.add_flows();
      flow.set_flow(static_cast<std::uint32_t>(in_.size()));
      flow.set_ended(in_.u8() % 4 == 0);
      flow.set_arrived_bytes(in_.size());
      flow.set_arrived_requests(in_.size());
      flow.set_metadata_operations(in_.size());
      flow.set_done_cost(in_.size());
      flow.set_limited_us(in_.size());
    }
    liar_->give(message);
  }
  void give_error() {
    Envelope message;
    message.set_id(in_.u8() % 2 == 0 ? liar_->cycle_number : in_.size());
    message.set_answer(in_.u8() % 2 == 0);
    message.mutable_error()->set_code(static_cast<control::Error::Code>(in_.below(9)));
    liar_->give(message);
  }

  FuzzInput& in_;
  coordinator::Config config_;
  // Long ago, so that every timer of the loop is due.
  ManualClock clock_{TimePoint(1ms)};
  asio::io_context context_{1};
  allocation::CycleState state_;
  CycleRunner runner_;
  FuzzStageHandler handler_;
  std::unique_ptr<StageLinks> links_;
  std::optional<Peer> honest_;
  std::optional<Peer> liar_;
  bool is_announced_ = false;
  std::uint64_t done_ = 0;
};

}  // namespace
}  // namespace vpfs::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  spdlog::set_level(spdlog::level::off);
  vpfs::test::FuzzInput in(data, size);
  vpfs::test::Run run(in);
  while (!in.empty()) run.step();
  run.run_cycle();
  run.run_cycle();
  return 0;
}
