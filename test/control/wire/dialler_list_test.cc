// A port that connects to the one of several coordinators that leads, also by TLS.
#include <functional>
#include <optional>

#include <gmock/gmock.h>

#include "test/control/wire/dialler_fixture.h"
#include "test/support/comes_true.h"
#include "test/support/control/certificates.h"

namespace vpfs::control {
namespace {

using namespace std::chrono_literals;
using test::comes_true;
using test::FakeCoordinator;
using test::RawPeer;
using ::testing::HasSubstr;

// Several addresses, one of which leads.
class DiallerListTest : public DiallerTest {
 protected:
  // The others are tried at once, not after a pause.
  DiallerListTest() {
    options_.limits.first_redial = options_.limits.slowest_redial = 1min;
    options_.limits.dial_each = 300ms;
    config_.coordinators = {path("a"), path("b"), path("c")};
  }
  void pause_shortly() {
    options_.limits.first_redial = 10ms;
    options_.limits.slowest_redial = 50ms;
  }
  // A connection that lasts for as long is a good one, after which all are tried before a pause.
  void be_good(Duration lasts) { options_.limits.slowest_redial = lasts; }
  [[nodiscard]] static bool answers(RawPeer& stage) {
    return stage.send(stats(1)) && stage.receive().has_value();
  }
};

TEST_F(DiallerListTest, TheOneThatLeadsIsFoundAtOnce) {
  const CapturedLog log;
  FakeCoordinator standby(path("b"));
  FakeCoordinator leader(path("c"));
  open();
  EXPECT_TRUE(standby.refuses_as_standby());
  const auto stage = leader.greeted();
  ASSERT_TRUE(stage);
  EXPECT_TRUE(shows_connected());
  EXPECT_EQ(status().dials, 3U);
  EXPECT_EQ(status().address, path("c"));
  EXPECT_EQ(status().problem, "");
  EXPECT_EQ(status().addresses, config_.coordinators);
  EXPECT_EQ(status().name, "site");
  port_.reset();
  EXPECT_EQ(log.lines_with("is a standby"), 0U) << "one does lead";
  EXPECT_EQ(log.lines_with("connected to " + path("c")), 1U);
}

TEST_F(DiallerListTest, OneWhoseQueueIsFullHoldsTheOthersUpForAShortTimeOnly) {
  FakeCoordinator stuck(path("a"));
  std::vector<RawPeer> queue;
  for (int i = 0; i < 17; ++i) queue.emplace_back(path("a"));
  FakeCoordinator leader(path("b"));
  const auto began = std::chrono::steady_clock::now();
  open();
  EXPECT_TRUE(leader.greeted());
  const auto took = std::chrono::steady_clock::now() - began;
  EXPECT_GE(took, 250ms);
  EXPECT_LT(took, 3s) << "the only one is given five seconds";
}

TEST_F(DiallerListTest, OneThatAcceptsAndSaysNothingDoesSoToo) {
  FakeCoordinator silent(path("a"));
  FakeCoordinator leader(path("b"));
  const auto began = std::chrono::steady_clock::now();
  open();
  auto mute = silent.accept();
  ASSERT_TRUE(mute);
  EXPECT_TRUE(leader.greeted());
  EXPECT_LT(std::chrono::steady_clock::now() - began, 3s) << "the only one is given ten seconds";
  EXPECT_TRUE(mute->closed_within());
}

TEST_F(DiallerListTest, OneThatIsBusyHasMoreTimeForItsHelloEachTime) {
  pause_shortly();
  config_.coordinators = {path("a"), path("b")};
  FakeCoordinator busy(path("a"));
  open();
  const auto first = busy.accept();
  EXPECT_TRUE(shows_problem("a: no answer within 300 ms"));
  const auto second = busy.accept();
  EXPECT_TRUE(shows_problem("a: no answer within 600 ms"));
  EXPECT_THAT(status().problem, HasSubstr("b: there is no such socket"));
  const auto third = busy.greeted();
  EXPECT_TRUE(first && second && third);
  EXPECT_TRUE(shows_connected());
}

TEST_F(DiallerListTest, WhenTheLeaderEndsTheOthersAreTriedFirst) {
  be_good(20ms);
  std::optional<FakeCoordinator> first(std::in_place, path("a"));
  FakeCoordinator second(path("b"));
  FakeCoordinator third(path("c"));
  open();
  auto stage = first->greeted();
  ASSERT_TRUE(stage);
  EXPECT_TRUE(shows_connected());
  std::this_thread::sleep_for(60ms);
  const auto began = std::chrono::steady_clock::now();
  stage.reset();
  EXPECT_TRUE(second.refuses_as_standby());
  stage = third.greeted();
  ASSERT_TRUE(stage);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 1s);
  EXPECT_TRUE(answers(*stage));
  EXPECT_TRUE(comes_true([&] { return status().connected && status().address == path("c"); }));
  EXPECT_EQ(status().problem, path("a") + ": it closed the connection");

  std::this_thread::sleep_for(60ms);
  stage.reset();
  EXPECT_TRUE(first->greeted()) << "and it goes on from there";
}

TEST_F(DiallerListTest, WhileAllAreAwayThereIsOneProblemAndAPauseAfterEachRound) {
  const CapturedLog log;
  options_.limits.first_redial = options_.limits.slowest_redial = 100ms;
  open();
  ASSERT_TRUE(shows_problem("no coordinator of " + path("a") + ", " + path("b") + ", " + path("c") +
                            " can be reached: "));
  EXPECT_FALSE(status().connected);
  const std::uint64_t before = status().dials;
  std::this_thread::sleep_for(500ms);
  EXPECT_LE(status().dials - before, 3U * 11U) << "50 ms is the shortest pause";
  EXPECT_TRUE(comes_true([&] { return status().dials >= 9; }));
  FakeCoordinator leader(path("b"));
  const auto stage = leader.greeted();
  ASSERT_TRUE(stage);
  EXPECT_TRUE(shows_connected());
  EXPECT_EQ(status().address, path("b"));
  port_.reset();
  EXPECT_EQ(log.lines_with("can be reached"), 1U);
  EXPECT_EQ(log.lines_with("connected to"), 1U);
}

TEST_F(DiallerListTest, OneThatEndsItsConnectionsAtOnceIsNotDialledWithoutPauses) {
  options_.limits.first_redial = options_.limits.slowest_redial = 100ms;
  FakeCoordinator hasty(path("a"));
  open();
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(hasty.greeted());
  EXPECT_GE(std::chrono::steady_clock::now() - began, 4 * 50ms);
}

TEST_F(DiallerListTest, AReloadTakesOtherAddressesAndAConnectionToOneOfThemStays) {
  FakeCoordinator first(path("a"));
  FakeCoordinator fourth(path("d"));
  open();
  auto stage = first.greeted();
  ASSERT_TRUE(stage);
  EXPECT_TRUE(shows_connected());
  config_.coordinators = {path("d"), path("a")};
  ASSERT_TRUE(port_->reload(config_));
  EXPECT_TRUE(comes_true([&] { return status().addresses == config_.coordinators; }));
  EXPECT_TRUE(answers(*stage));
  EXPECT_EQ(status().address, path("a"));
  EXPECT_FALSE(fourth.accept(100ms));

  config_.coordinators = {path("b"), path("d")};
  ASSERT_TRUE(port_->reload(config_));
  EXPECT_TRUE(stage->closed_within());
  stage = fourth.greeted();
  ASSERT_TRUE(stage);
  EXPECT_TRUE(comes_true([&] { return status().connected && status().address == path("d"); }));

  config_.coordinators = {path("d")};
  ASSERT_TRUE(port_->reload(config_));
  EXPECT_TRUE(comes_true([&] { return status().addresses == config_.coordinators; }));
  EXPECT_TRUE(answers(*stage));
}

TEST_F(DiallerListTest, AReloadIsTakenWhileNoneLeads) {
  FakeCoordinator fourth(path("d"));
  open();
  ASSERT_TRUE(shows_problem("can be reached"));
  config_.coordinators.push_back(path("d"));
  ASSERT_TRUE(port_->reload(config_));
  EXPECT_TRUE(fourth.greeted()) << "without waiting for the end of the pause";
}

// Over TCP, with the names of certificates.
class DiallerTlsTest : public DiallerTest {
 protected:
  DiallerTlsTest() {
    test::make_certificates(certificates_.path(), {"coord=localhost", "stor0", "stranger"});
    listening_.tcp = "127.0.0.1:0";
    use(listening_, "coord");
    listening_.writers = {{.kind = Principal::Kind::certificate, .name = "stor0"}};
    stages_.call_itself(Hello::COORDINATOR);
    auto port = Port::open(listening_, stages_, clock_);
    EXPECT_TRUE(port) << port.error().message;
    coordinator_ = std::move(*port);
    coordinator_->start();
  }
  void use(PortConfig& config, const std::string& certificate) const {
    const net::TlsFiles files = test::certificate_files(certificates_.path(), certificate);
    config.certificate = files.certificate;
    config.key = files.key;
    config.ca = files.ca;
  }
  void dial(const std::string& host, const std::string& certificate) {
    config_.coordinators = {fmt::format("{}:{}", host, coordinator_->tcp_endpoint()->port())};
    use(config_, certificate);
    open();
  }

  test::TemporaryDirectory certificates_;
  test::FakeOwner stages_;
  PortConfig listening_;
  std::unique_ptr<Port> coordinator_;
};

TEST_F(DiallerTlsTest, ACoordinatorIsFoundByTheNameOfItsHost) {
  dial("localhost", "stor0");
  EXPECT_TRUE(shows_connected()) << status().problem;
  EXPECT_EQ(status().name, "fake");
}

TEST_F(DiallerTlsTest, SocketsAndHostsMayBeInOneList) {
  config_.coordinators = {
      path("none"), fmt::format("no-such-host.invalid:{}", coordinator_->tcp_endpoint()->port()),
      fmt::format("localhost:{}", coordinator_->tcp_endpoint()->port())};
  use(config_, "stor0");
  options_.limits.first_redial = options_.limits.slowest_redial = 1min;
  open();
  EXPECT_TRUE(shows_connected()) << status().problem;
  EXPECT_EQ(status().address, config_.coordinators[2]);
}

TEST_F(DiallerTlsTest, ACertificateThatItDoesNotKnowIsRefusedWithItsReason) {
  dial("localhost", "stranger");
  EXPECT_TRUE(shows_problem("it refuses this stage: control.readers: CN=stranger"))
      << status().problem;
}

TEST_F(DiallerTlsTest, AnAddressThatItsCertificateDoesNotHaveIsNotTrusted) {
  dial("127.0.0.1", "stor0");
  EXPECT_TRUE(shows_problem("certificate")) << status().problem;
  EXPECT_FALSE(status().connected);
}

}  // namespace
}  // namespace vpfs::control
