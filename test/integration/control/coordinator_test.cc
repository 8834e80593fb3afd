// A real coordinator of real proxies ends, is stopped, loses its state or is not alone. I/O goes on
// and every block is verified.

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/integration/control/coordinator_site.h"
#include "test/support/comes_true.h"
#include "test/support/control/fake_coordinator.h"
#include "test/support/control/fake_stage.h"
#include "test/support/outcome.h"
#include "test/support/places.h"

namespace vpfs::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kQuick = "period: 20 ms\ndeadline: 10 ms\nlease: 400 ms\ntransit: 100 ms\n";

void write(const std::string& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
}

class CoordinatorTest : public ::testing::Test {
 protected:
  // All stages know that term, and the coordinator that led them is gone.
  void lead_for_once(const std::string& term) {
    CoordinatorProcess root = site_.coordinator("root", kQuick);
    root.start({"--term", term});
    EXPECT_TRUE(site_.all_are_led(std::stoull(term)));
    root.kill();
  }
  // Dials all stages, and a parent that is not there.
  CoordinatorProcess new_aggregator() {
    const std::string parent = (site_.folder() / "root.sock").string();
    return site_.coordinator("aggregator",
                             fmt::format("{}parent: {{address: {}}}\n", kQuick, parent));
  }
  // Waits until both jobs have done more.
  void expect_progress() {
    const std::uint64_t a = site_.done("a");
    const std::uint64_t b = site_.done("b");
    EXPECT_TRUE(comes_true([&] { return site_.done("a") > a; }));
    EXPECT_TRUE(comes_true([&] { return site_.done("b") > b; }));
  }

  CoordinatorSite site_{2, 50};
};

TEST_F(CoordinatorTest, ItsDeathStopsNoIoAndItsNextLifeLeadsWithAHigherTerm) {
  CoordinatorProcess coordinator = site_.coordinator("site", kQuick);
  coordinator.start();
  EXPECT_EQ(coordinator.term(), 1U);
  LoadRun load(site_.load(kBothJobs));
  ASSERT_TRUE(load.wait_until_begun()) << load.text();
  for (std::uint64_t term = 1; term <= 3; ++term) {
    ASSERT_TRUE(site_.all_are_led(term));
    coordinator.kill();
    expect_progress();
    ASSERT_TRUE(site_.all_are_alone());
    EXPECT_GE(site_.coordinated(0)["leases_ended"], 1);
    expect_progress();
    coordinator.start();
    EXPECT_EQ(coordinator.term(), term + 1);
  }
  ASSERT_TRUE(site_.all_are_led(4));
  expect_progress();
  coordinator.stop();
  load.expect_good_stop();
}

// Job a has two servers of 20 MiB/s, and b shares one of them with it. Equal totals are feasible,
// but a request at a time never waits at a proxy.
TEST(CoordinatorTotals, StatusNamesTheJobsWithoutAQueueAndWhereAndWhatWouldHelp) {
  if (programs_have_sanitizer()) GTEST_SKIP() << "slow programs leave the servers idle";
  CoordinatorSite site(2, 20);
  const std::string socket = site.folder() / "admin.sock";
  CoordinatorProcess coordinator =
      site.coordinator("site", fmt::format("control: {{socket: {}}}\n", socket));
  coordinator.start();
  ASSERT_TRUE(site.all_are_led(coordinator.term()));
  LoadRun load(
      site.load("  - {name: a, jobid: a, size: 64 KiB, outstanding: 4, processes: 2,"
                " read_percent: 100, file_size: 4 MiB, servers: [s0, s1], datafiles: 1}\n"
                "  - {name: b, jobid: b, size: 64 KiB, outstanding: 1,"
                " read_percent: 100, file_size: 4 MiB, servers: [s1], datafiles: 1}\n"));
  ASSERT_TRUE(load.wait_until_begun());
  const auto total_of = [&](const std::string& job) {
    const Outcome outcome =
        outcome_of({program("vpfsctl"), "--json", "--coordinator", socket, "status"});
    const auto json = nlohmann::json::parse(outcome.output, nullptr, false);
    if (json.is_discarded()) return nlohmann::json();
    const auto& jobs = json["proxies"][0]["data"]["jobs"];
    for (const auto& each : jobs) {
      if (each["name"] == job) return each.value("total", nlohmann::json());
    }
    return nlohmann::json();
  };
  EXPECT_TRUE(comes_true(
      [&] {
        const nlohmann::json total = total_of("b");
        return !total.is_null() && total.value("why", "") == "keeps no queue at ds1";
      },
      60s))
      << total_of("b").dump(2);
  EXPECT_EQ(total_of("b")["at"], nlohmann::json({"ds1"}));
  EXPECT_EQ(total_of("a")["reached"], true);
  const Outcome table = outcome_of({program("vpfsctl"), "--coordinator", socket, "status"});
  EXPECT_THAT(table.output, HasSubstr("keeps no queue at ds1; would help: sfq.anticipation"));
  load.expect_good_stop();
  coordinator.stop();
}

TEST_F(CoordinatorTest, ItsLateMessagesAreHarmlessAfterItWasStopped) {
  CoordinatorProcess coordinator = site_.coordinator("site", kQuick);
  coordinator.start();
  LoadRun load(site_.load(kBothJobs));
  ASSERT_TRUE(load.wait_until_begun()) << load.text();
  ASSERT_TRUE(site_.all_are_led(1));
  coordinator.signal(SIGSTOP);
  ASSERT_TRUE(site_.all_are_alone());
  expect_progress();
  coordinator.signal(SIGCONT);
  ASSERT_TRUE(site_.all_are_led(1));
  EXPECT_EQ(site_.coordinated(0)["cycles_outdated"], 0);
  coordinator.stop();
  load.expect_good_stop();
}

TEST_F(CoordinatorTest, TheFormerOneLeavesStagesToThatWithTheHigherTerm) {
  CoordinatorProcess former = site_.coordinator("former", kQuick);
  CoordinatorProcess latter = site_.coordinator("latter", kQuick);
  former.start();
  ASSERT_TRUE(site_.all_are_led(1));
  former.signal(SIGSTOP);
  latter.start({"--term", "50"});
  EXPECT_EQ(latter.term(), 50U);
  ASSERT_TRUE(site_.all_are_led(50));
  former.signal(SIGCONT);
  EXPECT_TRUE(
      former.logs("another coordinator leads it: sequence: a cycle of this or a later epoch"
                  " was applied before; the last one has term 50"))
      << former.process().errors();
  // It asks again, and hears the term in the stage's Hello.
  EXPECT_TRUE(former.logs("has applied cycles of term 50, and this coordinator has term 1"))
      << former.process().errors();
  ASSERT_TRUE(site_.all_are_led(50));
  const std::uint64_t refused = site_.coordinated(0)["cycles_outdated"];
  std::this_thread::sleep_for(500ms);
  EXPECT_EQ(site_.coordinated(0)["cycles_outdated"], refused) << "it still sends cycles";
  EXPECT_TRUE(site_.all_are_led(50));
  former.stop();
  latter.stop();
}

// The stages of a running site are put below a new aggregator, whose terms begin at 1 too.
TEST_F(CoordinatorTest, ANewAggregatorBeginsALaterTermThanItsStagesKnow) {
  lead_for_once("7");
  CoordinatorProcess aggregator = new_aggregator();
  const auto begin = std::chrono::steady_clock::now();
  aggregator.start();
  EXPECT_EQ(aggregator.term(), 1U);
  EXPECT_TRUE(
      aggregator.logs("has applied cycles of term 7 of another coordinator: this "
                      "aggregator begins a later term"))
      << aggregator.process().errors();
  ASSERT_TRUE(site_.all_are_led(8)) << aggregator.process().errors();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
  aggregator.stop();
  aggregator.start();
  EXPECT_EQ(aggregator.term(), 9U) << "its journal has the term that it began by itself";
  aggregator.stop();
}

// It goes on when the journal can be read again.
TEST_F(CoordinatorTest, AnAggregatorThatCannotReadItsJournalTriesAgainToBeginALaterTerm) {
  lead_for_once("7");
  CoordinatorProcess aggregator = new_aggregator();
  aggregator.start();
  const std::string whole = read_text(aggregator.journal());
  write(aggregator.journal(), "damage\nand more\n");
  EXPECT_TRUE(aggregator.logs("the next term cannot begin: journal: ")) << aggregator.errors();
  EXPECT_TRUE(aggregator.running());
  write(aggregator.journal(), whole);
  // Each attempt has used a term up.
  EXPECT_TRUE(comes_true([&] {
    const nlohmann::json row = site_.coordinated(0);
    return row.contains("lease_us_left") && row["term"] >= 9;
  })) << aggregator.errors();
  aggregator.stop();
}

// Both have term 1. The stages' sequence is far ahead, so the new one's cycles would be outdated.
TEST_F(CoordinatorTest, ATermBesideTheSameTermIsNoticedBeforeAStageJoins) {
  CoordinatorProcess former = site_.coordinator("former", kQuick);
  former.start();
  ASSERT_TRUE(site_.all_are_led(1));
  former.kill();
  CoordinatorProcess latter = site_.coordinator("latter", kQuick);
  latter.start();
  for (const char* stage : {"ds0", "ds1"}) {
    EXPECT_TRUE(latter.logs(fmt::format(
        "{} has applied cycles of term 1 of another one, and this coordinator has term 1: another "
        "one leads, or has led (--term 2 begins with a later one)",
        stage)))
        << latter.process().errors();
  }
  std::this_thread::sleep_for(1s);
  const std::string log = latter.process().errors();
  EXPECT_THAT(log, Not(HasSubstr("has joined")));
  std::size_t told = 0;
  for (std::size_t at = log.find("--term 2"); at != std::string::npos; ++told) {
    at = log.find("--term 2", at + 1);
  }
  EXPECT_EQ(told, site_.size()) << log;
  latter.stop();
  latter.start({"--term", "2"});
  ASSERT_TRUE(site_.all_are_led(2));
  latter.stop();
}

TEST_F(CoordinatorTest, AStageThatComesBackInTheSameTermIsItsOwn) {
  CoordinatorProcess coordinator = site_.coordinator("site", kQuick);
  coordinator.start();
  ASSERT_TRUE(site_.all_are_led(1));
  site_.proxy(0).process().signal(SIGSTOP);
  EXPECT_TRUE(coordinator.logs("stage ds0: ")) << coordinator.process().errors();
  site_.proxy(0).process().signal(SIGCONT);
  ASSERT_TRUE(site_.all_are_led(1)) << coordinator.process().errors();
  coordinator.stop();
}

TEST_F(CoordinatorTest, TwoOfOneJournalDoNotRunAtTheSameTime) {
  CoordinatorProcess one = site_.coordinator("site", kQuick);
  CoordinatorProcess two = site_.coordinator("site", kQuick);
  one.start();
  two.launch();
  const auto exit = two.process().wait();
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 1);
  EXPECT_THAT(two.process().errors(), HasSubstr("belongs to another process"));
  one.stop();
}

// A coordinator without proxies.
class CoordinatorState : public ::testing::Test {
 protected:
  CoordinatorState()
      : coordinator_(folder_.path(), "site",
                     fmt::format("stages: {{listen: {{socket: {}}}}}\n", socket())) {}
  [[nodiscard]] std::string socket() const { return folder_.path() / "stages.sock"; }
  [[nodiscard]] std::string problem() {
    coordinator_.launch();
    const auto exit = coordinator_.process().wait();
    EXPECT_TRUE(exit && exit->code == 1) << coordinator_.process().output();
    return coordinator_.process().errors();
  }
  std::uint64_t next_term(const std::vector<std::string>& more = {}) {
    coordinator_.start(more);
    coordinator_.kill();
    return coordinator_.term();
  }

  TemporaryDirectory folder_;
  CoordinatorProcess coordinator_;
};

TEST_F(CoordinatorState, EachStartHasAHigherTerm) {
  for (std::uint64_t term = 1; term <= 3; ++term) EXPECT_EQ(next_term(), term);
  EXPECT_EQ(next_term({"--term", "40"}), 40U);
  EXPECT_EQ(next_term({"--term", "7"}), 41U);
}

// file_site_store_test.cc cuts it at every byte.
TEST_F(CoordinatorState, ATornStateNeverGivesATermTwice) {
  EXPECT_EQ(next_term({"--term", "3"}), 3U);
  EXPECT_EQ(next_term(), 4U);
  const std::string whole = read_text(coordinator_.term_file());
  const std::size_t last = whole.rfind('\n', whole.size() - 2) + 1;
  for (std::size_t size = last; size < whole.size(); size += 1 + (whole.size() - last) / 6) {
    write(coordinator_.term_file(), whole.substr(0, size));
    EXPECT_EQ(next_term(), size == last ? 4U : 5U) << size - last << " bytes of the last line";
    if (size == last) continue;
    EXPECT_THAT(coordinator_.process().errors(), HasSubstr(".term:2: the last line"));
  }
}

TEST_F(CoordinatorState, ADamagedOneIsRefusedWithItsPlaceAndTheWayOut) {
  for (int i = 0; i < 3; ++i) (void)next_term();
  const std::string whole = read_text(coordinator_.term_file());
  std::string damaged = whole;
  const std::size_t second = whole.find('\n') + 20;
  damaged[second] = static_cast<char>(damaged[second] ^ 1);
  write(coordinator_.term_file(), damaged);
  EXPECT_THAT(problem(), AllOf(HasSubstr("journal: " + coordinator_.term_file() + ":2: "),
                               HasSubstr("--term")));
  EXPECT_EQ(read_text(coordinator_.term_file()), damaged) << "it was changed";
  std::filesystem::remove(coordinator_.term_file());
  EXPECT_EQ(next_term({"--term", "4"}), 4U);
}

TEST_F(CoordinatorState, WithoutTheRightToWriteItTheCoordinatorDoesNotStart) {
  std::filesystem::create_directory(coordinator_.term_file());
  EXPECT_THAT(problem(), HasSubstr("journal: " + coordinator_.term_file()));
}

TEST_F(CoordinatorState, AStageThatKnowsALaterTermIsToldSo) {
  coordinator_.start();
  control::Hello hello = stage_hello("a");
  hello.set_term(8);
  FakeStage stage = FakeStage::dial(socket());
  const auto answer = stage.greet(hello);
  ASSERT_TRUE(answer && answer->has_error());
  EXPECT_EQ(answer->error().code(), control::Error::OUTDATED);
  EXPECT_THAT(answer->error().text(),
              HasSubstr("a has applied cycles of term 8, and this coordinator has term 1"));
  coordinator_.kill();
  coordinator_.start({"--term", "9"});
  FakeStage again = FakeStage::dial(socket());
  EXPECT_TRUE(again.greet(hello)->has_hello());
  coordinator_.stop();
}

TEST_F(CoordinatorState, CostModelsThatDifferAreRefusedWithBoth) {
  coordinator_.start();
  FakeStage one = FakeStage::dial(socket());
  ASSERT_TRUE(one.greet(stage_hello("one"))->has_hello());
  control::Hello hello = stage_hello("two");
  hello.set_cost_model("other");
  FakeStage two = FakeStage::dial(socket());
  const auto answer = two.greet(hello);
  ASSERT_TRUE(answer && answer->has_error());
  EXPECT_EQ(answer->error().text(),
            "\"other\" of two is not \"cost\", that of 1 connected stage: services could not be "
            "compared");
  hello = stage_hello("three");
  hello.clear_capabilities();
  FakeStage three = FakeStage::dial(socket());
  EXPECT_THAT(three.greet(hello)->error().text(), HasSubstr("the policy total needs a scheduler"));
  FakeStage same = FakeStage::dial(socket());
  EXPECT_THAT(same.greet(stage_hello("one"))->error().text(), HasSubstr("is connected already"));
  coordinator_.stop();
}

TEST(CoordinatorParent, OneThatHangsIsDialledAgain) {
  const TemporaryDirectory folder;
  const std::string parent = folder.path() / "parent.sock";
  FakeCoordinator fake(parent);
  CoordinatorProcess aggregator(
      folder.path(), "aggregator",
      fmt::format("parent: {{address: {}}}\ncost_model: cost\nstages: {{listen: {{socket: {}}}}}\n",
                  parent, (folder.path() / "stages.sock").string()));
  aggregator.start();
  auto hung = fake.greeted();
  ASSERT_TRUE(hung);
  EXPECT_TRUE(aggregator.logs("is connected"));
  EXPECT_TRUE(hung->closed_within(20s));
  EXPECT_TRUE(aggregator.logs("it was silent for too long"));
  EXPECT_TRUE(fake.greeted());
  aggregator.stop();
}

// A parent takes its limits back before it gives up a stage that it has not heard of. The
// aggregator begins a round of its own then, and one for the cycle.
TEST(CoordinatorParent, OneThatTakesItsLimitsBackIsAnswered) {
  const TemporaryDirectory folder;
  const std::string parent = folder.path() / "parent.sock";
  FakeCoordinator fake(parent);
  CoordinatorProcess aggregator(
      folder.path(), "aggregator",
      fmt::format("parent: {{address: {}}}\ncost_model: cost\nstages: {{listen: {{socket: {}}}}}\n",
                  parent, (folder.path() / "stages.sock").string()));
  aggregator.start();
  auto peer = fake.greeted();
  ASSERT_TRUE(peer);
  std::uint64_t sequence = 0;
  for (const std::uint64_t lease_us : {10'000'000U, 0U, 10'000'000U, 0U}) {
    control::Envelope message;
    message.set_id(++sequence);
    control::Cycle& cycle = *message.mutable_cycle();
    cycle.set_term(1);
    cycle.set_sequence(sequence);
    cycle.set_lease_us(lease_us);
    cycle.set_complete(true);
    ASSERT_TRUE(peer->send(message));
    const auto answer = peer->receive(20s);
    ASSERT_TRUE(answer) << "cycle " << sequence << "\n" << aggregator.process().errors();
    EXPECT_TRUE(answer->report().applied()) << answer->DebugString();
  }
  aggregator.stop();
}

}  // namespace
}  // namespace vpfs::test
