#include "control/host/control_side.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/control/gate/quiet_gate.h"
#include "test/support/control/certificates.h"
#include "test/support/control/fake_coordinator.h"
#include "test/support/control/https_client.h"
#include "test/support/control/unknown_field.h"
#include "test/support/manual_clock.h"
#include "test/support/process.h"

namespace vpfs::control {
namespace {

class ControlSideTest : public ::testing::Test {
 protected:
  static HostConfig make_config() {
    HostConfig config;
    config.virtual_pfs = {{.name = "a", .share = {.weight = 3}}, {.name = "b", .share = {}}};
    return config;
  }
  CycleAnswer run(Cycle cycle, std::uint64_t sequence, std::uint64_t lease_us = 1'000'000) {
    cycle.set_term(1);
    cycle.set_sequence(sequence);
    cycle.set_lease_us(lease_us);
    CycleAnswer answer;
    side_.cycle(cycle, *link_, answer);
    return answer;
  }
  // Learns the numbers of all flows.
  std::uint32_t number_of(const std::string& name) {
    Cycle ask;
    ask.set_want_report(true);
    const CycleAnswer answer = run(ask, 0);
    for (const Flow& each : answer.flows.flows()) {
      if (each.name() == name) return each.id();
    }
    ADD_FAILURE() << name;
    return 0;
  }
  static Cycle limit(std::uint32_t flow, std::uint64_t rate) {
    Cycle cycle;
    Allocation& allocation = *cycle.add_allocations();
    allocation.set_flow(flow);
    allocation.set_bytes_per_second(rate);
    return cycle;
  }
  [[nodiscard]] std::uint64_t applied() {
    std::uint64_t count = 0;
    gate_.inspect(clock_.now(), [&](stage::Stage& stage, TimePoint) {
      count = stage.allocations().counts().applied;
    });
    return count;
  }

  const HostConfig config_ = make_config();
  const test::ManualClock clock_{TimePoint(std::chrono::hours(1))};
  asio::io_context context_{1};
  // Answers with the request.
  const ControlSide::Administrate administrate_ = [](const Envelope& request, const Caller&,
                                                     const Answer& answer) { answer(request); };
  test::QuietGate gate_{config_, clock_.now()};
  const ControlSide::Identity identity_{.name = "vpfs-test", .not_ready = nullptr};
  ControlSide side_{administrate_, gate_, identity_, context_, clock_};
  std::unique_ptr<Link> link_ = side_.make_link({});
};

TEST_F(ControlSideTest, FlowsAreAnnouncedOnceForEachLink) {
  Cycle ask;
  ask.set_want_report(true);
  EXPECT_EQ(run(ask, 0).flows.flows_size(), 3);
  EXPECT_EQ(run(ask, 0).flows.flows_size(), 0);
  link_ = side_.make_link({});
  EXPECT_EQ(run(ask, 0).flows.flows_size(), 3);
  EXPECT_EQ(applied(), 0U) << "a question changes nothing";
}

TEST_F(ControlSideTest, AllocationsAreByTheNumbersThatWereAnnounced) {
  const std::uint32_t a = number_of("a");
  const CycleAnswer answer = run(limit(a, 1'000'000), 1);
  EXPECT_TRUE(answer.report.applied()) << answer.report.refused().text();
  EXPECT_EQ(applied(), 1U);
}

TEST_F(ControlSideTest, NoCycleIsAppliedWhileAnotherProcessTakesOver) {
  const std::uint32_t a = number_of("a");
  EXPECT_TRUE(run(limit(a, 1'000'000), 1).report.applied());
  side_.refuse_cycles(true);
  const CycleAnswer answer = run(limit(a, 1000), 2);
  EXPECT_FALSE(answer.report.applied());
  EXPECT_EQ(answer.report.refused().code(), Error::UNAVAILABLE);
  EXPECT_EQ(applied(), 1U);
  side_.refuse_cycles(false);
  EXPECT_TRUE(run(limit(a, 1000), 3).report.applied());
}

TEST_F(ControlSideTest, FieldsOfALaterVersionChangeNothingOfACycle) {
  Cycle cycle = limit(number_of("a"), 1'000'000);
  test::add_unknown(cycle);
  test::add_unknown(*cycle.mutable_allocations(0));
  EXPECT_TRUE(run(cycle, 1).report.applied());
  EXPECT_EQ(applied(), 1U);
}

TEST_F(ControlSideTest, UnknownFlowsAreIgnored) {
  (void)number_of("a");
  for (const std::uint32_t flow : {17U, 4'000'000'000U}) {
    EXPECT_TRUE(run(limit(flow, 1), flow == 17U ? 1 : 2).report.applied());
  }
  link_ = side_.make_link({});
  EXPECT_TRUE(run(limit(1, 1), 3).report.applied()) << "nothing was announced on this link";
}

TEST_F(ControlSideTest, AnEarlierCycleIsOutdated) {
  const std::uint32_t a = number_of("a");
  EXPECT_TRUE(run(limit(a, 1000), 5).report.applied());
  for (const std::uint64_t sequence : {5U, 4U}) {
    const CycleAnswer answer = run(limit(a, 2000), sequence);
    EXPECT_FALSE(answer.report.applied());
    EXPECT_EQ(answer.report.refused().code(), Error::OUTDATED);
  }
  EXPECT_EQ(applied(), 1U);
}

TEST_F(ControlSideTest, WeightsAndNodesAreRefusedAndNothingOfTheCycleIsApplied) {
  const std::uint32_t a = number_of("a");
  Cycle cycle = limit(a, 1000);
  cycle.add_allocations()->set_weight(7);
  CycleAnswer answer = run(cycle, 1);
  EXPECT_FALSE(answer.report.applied());
  EXPECT_EQ(answer.report.refused().code(), Error::UNSUPPORTED);
  EXPECT_EQ(answer.report.refused().place(), "allocations[].weight");
  EXPECT_EQ(applied(), 0U);
  cycle.mutable_allocations(1)->clear_weight();
  cycle.mutable_allocations(1)->set_nodes(7);
  EXPECT_EQ(run(cycle, 1).report.refused().place(), "allocations[].nodes");
}

TEST_F(ControlSideTest, ALeaseForEverIsAYearAndNoneIsRefused) {
  const std::uint32_t flow = number_of("a");
  for (const std::uint64_t lease_us : {~std::uint64_t{0}, std::uint64_t{1} << 63U}) {
    EXPECT_TRUE(run(limit(flow, 500), applied() + 1, lease_us).report.applied());
    gate_.inspect(clock_.now(), [](stage::Stage& stage, TimePoint) {
      EXPECT_TRUE(stage.allocations().in_force());
      EXPECT_EQ(stage.allocations().limited().size(), 1U);
    });
  }
  const CycleAnswer refused = run(limit(flow, 500), 9, 0);
  EXPECT_FALSE(refused.report.applied());
  EXPECT_EQ(refused.report.refused().place(), "lease_us");
  EXPECT_EQ(applied(), 2U);
}

TEST_F(ControlSideTest, ACompleteCycleOfNothingWithoutALeaseTakesTheLimitsBack) {
  EXPECT_TRUE(run(limit(number_of("a"), 500), 1).report.applied());
  Cycle back;
  back.set_complete(true);
  const CycleAnswer answer = run(back, 2, 0);
  EXPECT_TRUE(answer.report.applied()) << answer.report.refused().text();
  EXPECT_EQ(applied(), 2U);
  gate_.inspect(clock_.now(), [](stage::Stage& stage, TimePoint) {
    EXPECT_FALSE(stage.allocations().in_force());
    EXPECT_TRUE(stage.allocations().limited().empty());
  });
  EXPECT_EQ(run(back, 2, 0).report.refused().code(), Error::OUTDATED);
}

TEST_F(ControlSideTest, ARefusedCycleIsReportedAllTheSame) {
  Cycle cycle;
  cycle.add_allocations()->set_weight(7);
  cycle.set_want_report(true);
  const CycleAnswer answer = run(cycle, 1);
  EXPECT_FALSE(answer.report.applied());
  EXPECT_EQ(answer.flows.flows_size(), 3);
}

TEST_F(ControlSideTest, MetadataOperationsAreLimitedWhereTheyWaitTheirTurn) {
  const std::uint32_t a = number_of("a");
  Cycle cycle = limit(a, 1000);
  cycle.mutable_allocations(0)->set_metadata_operations_per_second(5);
  const auto limited = [&] {
    std::optional<std::uint64_t> found;
    gate_.inspect(clock_.now(), [&](stage::Stage& stage, TimePoint) {
      found = stage.allocations().limits(AppId{a}).metadata_operations;
    });
    return found;
  };
  HostConfig config = config_;
  for (const bool schedules : {false, true, false}) {
    config.schedule_metadata = schedules;
    side_.introduce(config, "127.0.0.1:3334");
    const Hello hello = side_.hello();
    const bool says =
        std::ranges::find(hello.capabilities(), "metadata_caps") != hello.capabilities().end();
    EXPECT_EQ(says, schedules);
    EXPECT_TRUE(run(cycle, applied() + 1).report.applied());
    EXPECT_EQ(limited(), schedules ? std::optional<std::uint64_t>(5) : std::nullopt);
  }
}

TEST_F(ControlSideTest, HelloSaysWhatTheStageCanDo) {
  side_.introduce(config_, "127.0.0.1:3334");
  const Hello first = side_.hello();
  EXPECT_EQ(first.name(), "127.0.0.1:3334");
  EXPECT_THAT(first.capabilities(), ::testing::Contains("caps"));
  EXPECT_THAT(first.program(), ::testing::StartsWith("vpfs-test "));
  HostConfig other = config_;
  other.name = "stor0";
  side_.introduce(other, "127.0.0.1:3334");
  EXPECT_EQ(side_.hello().name(), "stor0");
  EXPECT_EQ(side_.hello().incarnation(), first.incarnation());
}

TEST_F(ControlSideTest, AReloadMayGiveAStageWithoutAPortItsCoordinator) {
  const test::TemporaryDirectory folder;
  test::FakeCoordinator coordinator(folder.path() / "stages");
  HostConfig config = config_;
  ASSERT_TRUE(side_.open(config, "127.0.0.1:3334", nullptr));
  ASSERT_TRUE(side_.start());
  EXPECT_FALSE(side_.coordinator());
  config.control.coordinators = {folder.path() / "stages"};
  ASSERT_TRUE(side_.reload(config));
  auto stage = coordinator.greeted();
  ASSERT_TRUE(stage);
  ASSERT_TRUE(side_.coordinator());
  EXPECT_EQ(side_.coordinator()->address, config.control.coordinators[0]);
  Envelope ask;
  ask.set_id(1);
  ask.mutable_cycle()->set_want_report(true);
  ASSERT_TRUE(stage->send(ask));
  const auto flows = stage->receive();
  ASSERT_TRUE(flows && flows->has_flows());
  EXPECT_EQ(flows->flows().flows_size(), 3);
  EXPECT_TRUE(stage->receive());
  config.control.coordinators.clear();
  ASSERT_TRUE(side_.reload(config));
  EXPECT_TRUE(stage->closed_within());
}

// What an administrator asks waits for the main thread; whoever goes first, nothing is touched
// after its end.
TEST_F(ControlSideTest, ARequestThatIsNeverAnsweredIsToldSo) {
  std::optional<Envelope> reply;
  {
    Envelope request;
    request.mutable_stats();
    asio::io_context context(1);
    ControlSide side(administrate_, gate_, identity_, context, clock_);
    side.ask(request, {.name = "x", .from = "unix", .rights = Rights::read, .uid = {}},
             Answer([&](Envelope come) { reply = std::move(come); }));
    EXPECT_FALSE(reply);
  }
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->error().code(), Error::INTERNAL);
}

TEST_F(ControlSideTest, ARequestIsCarriedOutOnTheMainThread) {
  std::optional<Envelope> reply;
  Envelope request;
  request.mutable_stats();
  side_.ask(request, {.name = "x", .from = "unix", .rights = Rights::read, .uid = {}},
            Answer([&](Envelope come) { reply = std::move(come); }));
  EXPECT_FALSE(reply);
  context_.run();
  ASSERT_TRUE(reply);
  EXPECT_TRUE(reply->has_stats());
}

// A port of 127.0.0.1 that no other program gets while this lives.
class ReservedPort {
 public:
  ReservedPort() {
    socket_.open(asio::ip::tcp::v4());
    socket_.set_option(asio::socket_base::reuse_address(true));
    socket_.bind({asio::ip::address_v4::loopback(), 0});
  }
  [[nodiscard]] net::Endpoint endpoint() const { return socket_.local_endpoint(); }

 private:
  asio::io_context context_;
  asio::ip::tcp::socket socket_{context_};
};

TEST_F(ControlSideTest, AReloadThatIsRefusedChangesNoReadersOfHttps) {
  const test::TemporaryDirectory directory;
  const std::filesystem::path certificates = directory.path() / "tls";
  test::make_certificates(certificates, {"server=localhost", "ops", "intern"});
  const net::TlsFiles files = test::certificate_files(certificates, "server");
  const ReservedPort port;
  HostConfig config = make_config();
  config.control.socket = directory.path() / "control";
  config.control.certificate = files.certificate;
  config.control.key = files.key;
  config.control.ca = files.ca;
  config.control.readers = {parse_principal("cert:ops").value()};
  config.http.tls_address = fmt::format("127.0.0.1:{}", port.endpoint().port());
  const auto opened = side_.open(config, "s0", nullptr);
  ASSERT_TRUE(opened) << opened.error().message;
  ASSERT_TRUE(side_.start());
  const auto status_of = [&](const std::string& name) {
    const std::string answer =
        test::ask_https(port.endpoint(), certificates, name, "GET /healthz HTTP/1.1\r\n\r\n")
            .value_or("");
    return answer.substr(0, answer.find("\r\n"));
  };
  EXPECT_EQ(status_of("ops"), "HTTP/1.1 200 OK");
  EXPECT_EQ(status_of("intern"), "HTTP/1.1 403 Forbidden");

  HostConfig other = config;
  other.control.readers = {parse_principal("cert:intern").value()};
  other.control.mode = 0600;  // needs a restart
  EXPECT_FALSE(side_.reload(other));
  EXPECT_EQ(status_of("intern"), "HTTP/1.1 403 Forbidden");
  EXPECT_EQ(status_of("ops"), "HTTP/1.1 200 OK");

  other.control.mode = config.control.mode;
  const auto reloaded = side_.reload(other);
  ASSERT_TRUE(reloaded) << reloaded.error().message;
  EXPECT_EQ(status_of("intern"), "HTTP/1.1 200 OK");
  EXPECT_EQ(status_of("ops"), "HTTP/1.1 403 Forbidden");
  side_.stop();
}

}  // namespace
}  // namespace vpfs::control
