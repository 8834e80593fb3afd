#include "control/admin/history_keeper.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/control/admin/admin_rig.h"

namespace vpfs::control {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class HistoryKeeperTest : public ::testing::Test {
 protected:
  HistoryKeeperTest() { tick(seconds(0)); }

  void tick(Duration after, std::uint64_t rules = 1) {
    gate_.advance(after);
    keeper_.tick(gate_, gate_.now(), at(wall_), rules, config_);
  }
  void second(std::uint64_t rules = 1) {
    ++wall_;
    tick(seconds(1), rules);
  }
  // Bytes by name, in all that is known.
  std::map<std::string, std::uint64_t> bytes() const {
    std::map<std::string, std::uint64_t> sums;
    const stage::History& history = keeper_.history();
    history.read(WallTime{}, at(wall_ + 100), [&](const auto& span, const auto& rows) {
      for (const stage::HistoryRow& row : rows) {
        const stage::HistoryName* const name = history.name(row, span);
        if (name == nullptr) continue;
        sums[name->info->name] += row.measures.of(stage::Measure::read_bytes);
      }
    });
    return sums;
  }
  std::vector<stage::HistorySpan> spans() const {
    std::vector<stage::HistorySpan> found;
    keeper_.history().read(WallTime{}, at(wall_ + 100),
                           [&](const auto& span, const auto&) { found.push_back(span); });
    return found;
  }

  stage::Config config_ = file_config();
  StageOfTest gate_{config_};
  HistoryKeeper keeper_{HistoryKeeper::Kept()};
  std::int64_t wall_ = 0;
};

TEST_F(HistoryKeeperTest, EverySecondHasWhatWasDoneInIt) {
  gate_.serve(gate_.find("1"));
  second();
  gate_.serve(gate_.find("1"));
  gate_.serve(gate_.find("2"));
  second();
  EXPECT_EQ(bytes(), (std::map<std::string, std::uint64_t>{{"job-1", 2000}, {"job-2", 1000}}));
  ASSERT_EQ(spans().size(), 2U);
  EXPECT_EQ(spans()[0].length, seconds(1));
  EXPECT_EQ(spans()[0].cost, 1000U);
  EXPECT_EQ(spans()[1].cost, 2000U);
}

// Many more rows than are read at once.
TEST_F(HistoryKeeperTest, EveryVirtualPfsIsRead) {
  for (int job = 0; job < 100; ++job) gate_.serve(gate_.find(std::to_string(job)));
  second();
  EXPECT_EQ(bytes().size(), 100U);
}

TEST_F(HistoryKeeperTest, AJobThatEndedIsKnown) {
  gate_.serve(gate_.find("1"));
  second();
  gate_.retire_idle();
  second();
  gate_.serve(gate_.find("2"));
  second();
  EXPECT_EQ(bytes(), (std::map<std::string, std::uint64_t>{{"job-1", 1000}, {"job-2", 1000}}));
}

// Its number belongs to another by the time that it is read.
TEST_F(HistoryKeeperTest, WorkOfAJobThatEndedWithinASecondIsNotAnothers) {
  gate_.serve(gate_.find("1"));
  second();
  gate_.retire_idle();
  gate_.serve(gate_.find("2"));
  second();
  EXPECT_EQ(bytes().at("job-2"), 1000U);
}

TEST_F(HistoryKeeperTest, ACallThatComesTooSoonDoesNothing) {
  gate_.serve(gate_.find("1"));
  tick(milliseconds(50));
  EXPECT_TRUE(spans().empty());
  second();
  EXPECT_EQ(spans().size(), 1U);
  EXPECT_EQ(bytes().at("job-1"), 1000U);
}

TEST_F(HistoryKeeperTest, ATimeOfDayThatGoesBackLosesNothing) {
  second();
  wall_ -= 3600;
  gate_.serve(gate_.find("1"));
  second();
  EXPECT_EQ(bytes().at("job-1"), 1000U);
  for (const stage::HistorySpan& span : spans()) EXPECT_LE(span.begin, span.end);
}

TEST_F(HistoryKeeperTest, AClockThatIsAheadForAMomentDoesNotEmptyTheLedger) {
  HistoryKeeper::Kept kept;
  insight::Spell spell;
  spell.end = at(0);
  kept.ledger.add({spell}, at(0));
  HistoryKeeper keeper(std::move(kept));
  const auto tick_at = [&](std::int64_t wall) {
    gate_.advance(seconds(1));
    keeper.tick(gate_, gate_.now(), at(wall), 1, config_);
    return keeper.ledger().spells().size();
  };
  constexpr std::int64_t kNextDay = 90'000;
  for (const std::int64_t wall : {std::int64_t{0}, std::int64_t{1}, kNextDay, std::int64_t{3}}) {
    EXPECT_EQ(tick_at(wall), 1U) << wall;
  }
  (void)tick_at(kNextDay);
  EXPECT_EQ(tick_at(kNextDay + 1), 0U);
}

// Two jobs that always have requests queued, with weights of 9 and 1.
class SharesOf : public ::testing::Test {
 protected:
  static stage::Config config_of(const std::string& policy) {
    stage::Config config = file_config();
    config.rules.clear();
    add_rule(config, {.name = "heavy", .condition = "jobid=heavy", .words = {"weight=9"}});
    add_rule(config, {.name = "light", .condition = "jobid=light", .words = {"weight=1"}});
    config.policy = policy;
    config.scheduler.depth.requests = 1;
    return config;
  }
  // What the keeper finds when a stage with this policy is told to be an `sfq`.
  static std::uint64_t faults(const std::string& policy) {
    StageOfTest gate(config_of(policy));
    HistoryKeeper keeper{HistoryKeeper::Kept()};
    const stage::Config told = config_of("sfq");
    std::map<AppId, int> queued;
    const stage::Place places[] = {gate.find("heavy"), gate.find("light")};
    for (int second = 0; second < 10; ++second) {
      keeper.tick(gate, gate.now(), at(second), 0, told);
      for (int step = 0; step < 200; ++step) {
        for (const stage::Place& place : places) {
          for (int& count = queued[place.id.app]; count < 3; ++count) (void)gate.arrive(place);
        }
        std::vector<stage::Held*> released;
        (void)gate.get().release(gate.now(), released);
        gate.advance(milliseconds(5));
        for (stage::Held* each : released) {
          stage::Stage::took_over(*each);
          gate.get().end(*each, {.moved = {1000}}, gate.now());
          --queued[each->app];
        }
      }
    }
    return keeper.lag_faults();
  }
};

TEST_F(SharesOf, SfqHaveNoFault) {
  EXPECT_EQ(faults("sfq"), 0U);
}

TEST_F(SharesOf, APolicyThatCheatsHaveAFaultEachSecond) {
  EXPECT_EQ(faults("fifo"), 9U);
}

}  // namespace
}  // namespace vpfs::control
