#include "control/wire/port.h"

#include <set>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "test/control/wire/port_fixture.h"
#include "test/support/comes_true.h"

namespace vpfs::control {
namespace {

using namespace std::chrono_literals;
using test::comes_true;
using test::RawPeer;
using test::run_as;
using ::testing::HasSubstr;

constexpr std::uint32_t kUser = 23456;
constexpr std::uint32_t kGroup = 34567;

using PortTest = test::PortFixture;

TEST_F(PortTest, AnswersItsOwnUser) {
  open();
  auto client = this->client();
  ASSERT_TRUE(client) << client.error().error.text();
  EXPECT_EQ(client->hello().name(), "fake");
  const auto answer = client->ask(stats(0), kPatience);
  ASSERT_TRUE(answer) << answer.error().error.text();
  EXPECT_EQ(answer->stats_reply().name(), "fake");
  EXPECT_FALSE(answer->stats_reply().partial());
  EXPECT_THAT(answer->stats_reply().upstream(), HasSubstr("uid " + std::to_string(::geteuid())));
}

TEST_F(PortTest, ASiteHasALineInTheAuditLogIfItChangedSomething) {
  bool changes = true;
  owner_.on_ask([&](Envelope, const Caller&, const Answer& answer) {
    Ack ack;
    if (changes) ack.set_text("2 rules");
    ack.add_warnings("rule gold: class: is not known");
    answer(std::move(ack));
  });
  open();
  auto client = this->client();
  ASSERT_TRUE(client);
  Envelope site;
  site.mutable_site()->set_origin("one");
  ASSERT_TRUE(client->ask(site, kPatience));
  EXPECT_THAT(test::read_text(config_.audit), HasSubstr("site one"));
  changes = false;
  site.mutable_site()->set_origin("two");
  const auto again = client->ask(site, kPatience);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->ack().warnings_size(), 1);
  EXPECT_THAT(test::read_text(config_.audit), ::testing::Not(HasSubstr("site two")));
}

TEST_F(PortTest, TheSocketHasItsModeAndGroupAndGoesWithThePort) {
  config_.mode = 0620;
  if (::geteuid() == 0) config_.group = std::to_string(kGroup);
  open();
  struct stat socket = {};
  ASSERT_EQ(::stat(config_.socket.c_str(), &socket), 0);
  EXPECT_TRUE(S_ISSOCK(socket.st_mode));
  EXPECT_EQ(socket.st_mode & 07777U, 0620U);
  if (::geteuid() == 0) {
    EXPECT_EQ(socket.st_gid, kGroup);
  }
  port_->stop();
  EXPECT_NE(::stat(config_.socket.c_str(), &socket), 0);
}

TEST_F(PortTest, ASocketWithoutAListenerIsReplacedAndOneInUseIsNot) {
  open();
  {
    const auto second = Port::open(config_, owner_, clock_);
    ASSERT_FALSE(second);
    EXPECT_THAT(second.error().message, HasSubstr("control.socket: " + config_.socket));
    EXPECT_THAT(second.error().message, HasSubstr("another process has this control port"));
  }
  EXPECT_TRUE(client());
  port_.reset();
  // What a program leaves that is killed.
  const int stale = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  config_.socket.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(stale, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ::close(stale);
  open();
  EXPECT_TRUE(client());
}

TEST_F(PortTest, APortThatIsLeftTellsNewcomersToAskAgain) {
  open();
  auto idle = greeted();
  idle.send(stats(1));
  ASSERT_TRUE(idle.receive());
  auto fresh = greeted();
  port_->leave();
  fresh.send(stats(2));
  const auto answer = fresh.receive();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->error().place(), kTakenOver);
  EXPECT_EQ(owner_.asked().size(), 1U);
  struct stat socket = {};
  EXPECT_EQ(::stat(config_.socket.c_str(), &socket), 0) << "the other process's";
  port_->stop();
  EXPECT_TRUE(fresh.closed_within());
  EXPECT_TRUE(idle.closed_within());
}

TEST_F(PortTest, ASocketOfAnotherProgramIsLeftAlone) {
  const int other = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  config_.socket.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(other, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(other, 1), 0);
  const auto port = Port::open(config_, owner_, clock_);
  ASSERT_FALSE(port);
  EXPECT_THAT(port.error().message, HasSubstr("another program answers there"));
  ::close(other);
}

TEST_F(PortTest, AFileThatIsNotASocketIsLeftAlone) {
  config_.socket = folder_.write("file", "precious");
  const auto port = Port::open(config_, owner_, clock_);
  ASSERT_FALSE(port);
  EXPECT_THAT(port.error().message, HasSubstr("is there already, and is not a socket"));
  EXPECT_EQ(test::read_text(config_.socket), "precious");
}

TEST_F(PortTest, RightsFollowThePeersCredentials) {
  // The socket's group is one that the others are in or not.
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be others";
  config_.group = std::to_string(kGroup);
  config_.writers = {{.kind = Principal::Kind::uid, .name = "", .id = kUser + 2}};
  open();
  const auto tries = [&](std::uint32_t uid, std::uint32_t gid) {
    std::string seen;
    EXPECT_TRUE(run_as(uid, gid, [&] {
      auto raw = greeted();
      raw.send(stats(2));
      const auto answer = raw.receive();
      seen = answer && answer->stats_reply().partial() ? "own" : "all";
      raw.send(reload(3));
      const auto changed = raw.receive();
      seen += changed && changed->has_ack() ? " change" : " " + changed->error().place();
    }));
    return seen;
  };
  EXPECT_EQ(tries(kUser, kUser), "own control.writers");
  EXPECT_EQ(tries(kUser + 1, kGroup), "all control.writers");
  EXPECT_EQ(tries(kUser + 2, kUser), "all change");
  EXPECT_EQ(port_->counters().not_permitted, 2U);

  // A reload takes the right away from a connection that is open.
  std::optional<RawPeer> raw;
  ASSERT_TRUE(run_as(kUser + 2, kUser, [&] { raw.emplace(greeted()); }));
  config_.writers.clear();
  EXPECT_TRUE(port_->reload(config_));
  raw->send(reload(3));
  const auto changed = raw->receive();
  EXPECT_TRUE(changed && changed->has_error());
}

TEST_F(PortTest, AUserWithoutARightToConnectIsToldWhichGroupToJoin) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be others";
  config_.mode = 0660;
  config_.group = "0";
  open();
  EXPECT_TRUE(run_as(kUser, kUser, [&] {
    const auto refused = client();
    ASSERT_FALSE(refused);
    EXPECT_FALSE(refused.error().reached);
    EXPECT_THAT(refused.error().error.text(),
                HasSubstr("permission denied: only root may connect, unless the proxy"));
  }));
}

TEST_F(PortTest, ChangesAreInTheAuditLogAndSoAreRefusals) {
  owner_.on_ask([](const Envelope& request, const Caller&, const Answer& answer) {
    if (request.has_rule()) {
      answer(make_error(Error::INVALID, "rate", "needs a unit"));
    } else {
      answer(Ack());
    }
  });
  open();
  auto client = this->client();
  ASSERT_TRUE(client);
  EXPECT_TRUE(client->ask(reload(0), kPatience));
  Envelope rule;
  rule.mutable_rule()->set_action(Rule::STOP);
  rule.mutable_rule()->set_name("a\nb");
  const auto refused = client->ask(rule, kPatience);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().reached);
  EXPECT_EQ(refused.error().error.place(), "rate");
  std::istringstream text(test::read_text(config_.audit));
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0]["command"], "reload");
  EXPECT_EQ(lines[0]["result"], "ok");
  EXPECT_EQ(lines[0]["from"], "unix");
  EXPECT_THAT(lines[0]["who"].get<std::string>(), HasSubstr("uid"));
  EXPECT_EQ(lines[1]["command"], "rule stop 'a\nb'");
  EXPECT_EQ(lines[1]["result"], "INVALID: rate: needs a unit");
}

TEST_F(PortTest, AWatchComesUntilItsConnectionEnds) {
  open();
  {
    auto client = this->client();
    ASSERT_TRUE(client);
    Envelope request;
    request.mutable_watch()->set_period_us(50'000);
    const auto number = client->start(request, kPatience);
    ASSERT_TRUE(number);
    for (int i = 0; i < 3; ++i) {
      const auto answer = client->next(*number, kPatience);
      ASSERT_TRUE(answer);
      EXPECT_TRUE(answer->has_stats_reply());
    }
  }
  EXPECT_TRUE(comes_true([&] { return port_->counters().connections == 0; }));
}

TEST_F(PortTest, ACyclesReportComesInOneWrite) {
  owner_.on_cycle([](const Cycle&, CycleAnswer& answer) {
    answer.flows.add_flows()->set_name("a");
    answer.report.add_flows()->set_flow(1);
  });
  open();
  auto raw = greeted();
  Envelope cycle;
  cycle.set_id(2);
  cycle.mutable_cycle()->set_sequence(3);
  raw.send(cycle);
  const auto flows = raw.receive();
  ASSERT_TRUE(flows && flows->has_flows());
  const auto report = raw.receive(0ms);
  ASSERT_TRUE(report && report->has_report());
  EXPECT_EQ(report->report().sequence(), 3U);
}

TEST_F(PortTest, AnswersAfterTheConnectionAreDroppedAndChangesAreDoneAllTheSame) {
  owner_.hold();
  open();
  {
    auto raw = greeted();
    raw.send(reload(2));
    ASSERT_TRUE(comes_true([&] { return owner_.asked().size() == 1; }));
  }
  owner_.release();
  EXPECT_TRUE(comes_true([&] { return port_->counters().connections == 0; }));
  EXPECT_EQ(port_->audit().lines(), 1U);
}

TEST_F(PortTest, AReaderHasABoundOfUnansweredRequestsOverAllItsConnections) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be others";
  options_.limits.unanswered_of_a_reader = 10;
  owner_.hold();
  open();
  EXPECT_TRUE(run_as(kUser, kUser, [&] {
    // Connections that go leave their requests behind.
    for (int i = 0; i < 4; ++i) {
      auto raw = greeted();
      for (std::uint64_t id = 1; id <= 4; ++id) raw.send(stats(id));
      const std::uint64_t before = 4ULL * static_cast<std::uint64_t>(i);
      EXPECT_TRUE(comes_true(
          [&] { return owner_.asked().size() + port_->counters().too_many == before + 4; }));
    }
  }));
  EXPECT_EQ(owner_.asked().size(), 10U);
  EXPECT_EQ(port_->counters().too_many, 6U);
  auto chief = greeted();
  chief.send(stats(1));
  EXPECT_TRUE(comes_true([&] { return owner_.asked().size() == 11; }))
      << "a caller that may change has no such limit";
  owner_.release();
  EXPECT_TRUE(run_as(kUser, kUser, [&] {
    auto raw = greeted();
    EXPECT_TRUE(comes_true([&] {
      raw.send(stats(7));
      const auto answer = raw.receive();
      return answer && answer->has_stats_reply();
    }));
  }));
}

TEST_F(PortTest, AnswersAfterThePortIsGoneAreDropped) {
  owner_.hold();
  open();
  auto raw = greeted();
  raw.send(reload(2));
  ASSERT_TRUE(comes_true([&] { return owner_.asked().size() == 1; }));
  port_.reset();
  owner_.release();
  EXPECT_TRUE(raw.closed_within());
}

TEST_F(PortTest, AnswersThatAreThereAreSentBeforeThePortEnds) {
  owner_.on_ask([](const Envelope&, const Caller&, const Answer& answer) {
    Ack ack;
    ack.set_text(std::string(3'000'000, 'x'));
    answer(std::move(ack));
  });
  open();
  auto raw = greeted();
  raw.send(reload(2));
  ASSERT_TRUE(comes_true([&] { return owner_.asked().size() == 1; }));
  std::thread stopping([&] { port_->stop(); });
  const auto answer = raw.receive();
  stopping.join();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->ack().text().size(), 3'000'000U);
}

TEST_F(PortTest, APeerThatEndsItsOutputGetsItsAnswers) {
  owner_.hold();
  open();
  auto raw = greeted();
  for (std::uint64_t id = 2; id < 30; ++id) raw.send(reload(id));
  raw.end_output();
  ASSERT_TRUE(comes_true([&] { return !owner_.asked().empty(); }));
  owner_.release();
  std::set<std::uint64_t> answered;
  while (const auto answer = raw.receive()) answered.insert(answer->id());
  EXPECT_EQ(answered.size(), 28U);
  EXPECT_TRUE(raw.closed_within());
}

TEST_F(PortTest, AReloadThatCannotBeLeavesEverythingAsItWas) {
  open();
  PortConfig wrong = config_;
  wrong.socket = folder_.path() / "other";
  EXPECT_THAT(port_->reload(wrong).error().message, HasSubstr("control.socket"));
  wrong = config_;
  wrong.writers = {{.kind = Principal::Kind::user, .name = "no-such-user"}};
  EXPECT_THAT(port_->reload(wrong).error().message, HasSubstr("control.writers"));
  wrong = config_;
  wrong.audit = folder_.path() / "no" / "audit";
  EXPECT_THAT(port_->reload(wrong).error().message, HasSubstr("control.audit"));
  EXPECT_TRUE(client());
}

TEST_F(PortTest, PeersOfOtherVersionsAreToldBoth) {
  options_.versions = {.newest = 3, .least = 2};
  open();
  const auto old = client();
  ASSERT_FALSE(old);
  EXPECT_TRUE(old.error().reached);
  EXPECT_EQ(old.error().error.code(), Error::UNSUPPORTED);
  EXPECT_THAT(old.error().error.text(), HasSubstr("versions 2 to 3"));
  ClientOptions before;
  before.versions = {.newest = 2, .least = 1};
  EXPECT_TRUE(PortClient::connect({.path = config_.socket, .host = ""}, before));
}

}  // namespace
}  // namespace vpfs::control
