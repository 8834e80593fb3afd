// Coordinators that serve the stages of a site together: each a part, under the one that leads.

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/integration/control/members_site.h"
#include "test/support/clock/by_clock.h"
#include "test/support/comes_true.h"

namespace vpfs::test {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

TEST_F(MembersTest, EachServesAPartAndTheLeaderDividesBetweenThem) {
  const std::size_t leader = start();
  EXPECT_EQ(coordinators_->leads_with(leader) % kEpochs, 0U);
  const auto parts = this->parts();
  ASSERT_EQ(parts.size(), kCoordinators);
  const auto other = standby_with_stages(leader);
  ASSERT_TRUE(other);
  // Stages are reached through the leader, with rules and all else.
  const Outcome rule = coordinators_->ctl({"rule", "start", "night", "jobid=night", "weight=3"});
  ASSERT_EQ(rule.code, 0) << rule.text();
  EXPECT_TRUE(comes_true([&] {
    for (std::size_t i = 0; i < kStages; ++i) {
      const Outcome list =
          outcome_of({program("vpfsctl"), "rule", "list", "--proxy", site_.socket(i)});
      if (list.output.find("night") == std::string::npos) return false;
    }
    return true;
  }));
  const Outcome stat = coordinators_->ctl({"stat"});
  EXPECT_EQ(stat.code, 0) << stat.text();
  // A standby shows what it serves itself.
  const Outcome text = coordinators_->ctl({"status"}, coordinators_->socket(*other));
  EXPECT_EQ(text.code, 0) << text.text();
  EXPECT_THAT(text.output, HasSubstr("standby "));
  EXPECT_THAT(text.output, HasSubstr(*parts.at(*other).begin()));
}

TEST_F(MembersTest, TheStagesOfAMemberThatDiesMoveOnceAndNoOther) {
  const std::size_t leader = start();
  LoadRun load(site_.load(kBothJobs));
  ASSERT_TRUE(load.wait_until_begun()) << load.text();
  const std::size_t dies = (leader + 1) % kCoordinators;
  const auto before = parts();
  const std::uint64_t view = view_of(leader);
  const auto killed = StandbySite::Clock::now();
  member(dies).kill();
  const milliseconds took = until_led(view + 1, killed);
  RecordProperty("took_ms", std::to_string(took.count()));
  if (!programs_have_sanitizer()) EXPECT_LT(took, 2s) << kByClock;
  ASSERT_TRUE(each_is_served_once(view + 1));
  EXPECT_EQ(view_of(leader), view + 1) << "one view, so none moves twice";
  auto after = parts();
  for (const auto& [index, part] : before) {
    if (index == dies) continue;
    for (const std::string& stage : part) EXPECT_TRUE(after[index].contains(stage)) << stage;
  }
  // It takes its own stages again, and no other one moves.
  member(dies).start();
  (void)until_led(view + 2, killed);
  ASSERT_TRUE(each_is_served_once(view + 2));
  EXPECT_EQ(parts(), before);
  load.expect_good_stop();
}

TEST_F(MembersTest, OneThatIsStartedAgainAtOnceServesItsStagesAgain) {
  const std::size_t leader = start();
  const std::size_t dies = (leader + 1) % kCoordinators;
  const auto before = parts();
  const std::uint64_t view = view_of(leader);
  std::this_thread::sleep_for(1s);  // its cycles have some numbers
  member(dies).kill();
  member(dies).start();
  const auto started = StandbySite::Clock::now();
  const milliseconds took = until_led(view + 1, started);
  RecordProperty("took_ms", std::to_string(took.count()));
  if (!programs_have_sanitizer()) EXPECT_LT(took, 3s) << kByClock;
  ASSERT_TRUE(each_is_served_once(view + 1));
  EXPECT_EQ(parts(), before);
}

TEST_F(MembersTest, AnotherLeadsWhenTheLeaderDiesAndOnlyItsStagesMove) {
  std::size_t leader = start();
  LoadRun load(site_.load(kBothJobs));
  ASSERT_TRUE(load.wait_until_begun()) << load.text();
  for (int round = 0; round < 3; ++round) {
    const std::uint64_t term = coordinators_->leads_with(leader);
    ASSERT_TRUE(coordinators_->others_watch(leader, term));
    const auto before = parts();
    const auto killed = StandbySite::Clock::now();
    member(leader).kill();
    const milliseconds took = until_led(term + kEpochs, killed);
    RecordProperty(fmt::format("took_ms_{}", round), std::to_string(took.count()));
    if (!programs_have_sanitizer()) EXPECT_LT(took, 2s) << kByClock;
    const auto next = coordinators_->leader(term + 1);
    ASSERT_TRUE(next);
    EXPECT_EQ(coordinators_->leads_with(*next), term + kEpochs);
    ASSERT_TRUE(each_is_served_once(term + kEpochs));
    EXPECT_EQ(view_of(*next), term + kEpochs + 1) << "one view, so none moves twice";
    auto after = parts();
    for (const auto& [index, part] : before) {
      if (index == leader) continue;
      for (const std::string& stage : part) EXPECT_TRUE(after[index].contains(stage)) << stage;
    }
    member(leader).start();
    ASSERT_TRUE(comes_true([&] { return members_of(*next).size() == kCoordinators; }));
    ASSERT_TRUE(each_is_served_once(view_of(*next)));
    leader = *next;
  }
  load.expect_good_stop();
}

TEST_F(MembersTest, OneThatHangsLosesItsStagesAndGetsThemBack) {
  const std::size_t leader = start();
  const std::size_t hangs = (leader + 1) % kCoordinators;
  const auto before = parts();
  const std::uint64_t view = view_of(leader);
  const auto stopped = StandbySite::Clock::now();
  member(hangs).signal(SIGSTOP);
  const milliseconds took = until_led(view + 1, stopped);
  RecordProperty("took_ms", std::to_string(took.count()));
  if (!programs_have_sanitizer()) EXPECT_LT(took, 3s) << kByClock;
  EXPECT_EQ(view_of(leader), view + 1);
  member(hangs).signal(SIGCONT);
  (void)until_led(view + 2, stopped);
  ASSERT_TRUE(each_is_served_once(view + 2));
  EXPECT_EQ(parts(), before);
}

TEST_F(MembersTest, ALeaderThatHangsIsFollowedWithinTheLease) {
  const std::size_t leader = start();
  const std::uint64_t term = coordinators_->leads_with(leader);
  const auto before = parts();
  member(leader).signal(SIGSTOP);
  ASSERT_TRUE(coordinators_->leader(term + 1));
  const auto stopped = StandbySite::Clock::now();
  const milliseconds took = until_led(term + kEpochs, stopped);
  if (!programs_have_sanitizer()) EXPECT_LT(took, 3s) << "after it was elected" << kByClock;
  member(leader).signal(SIGCONT);
  const auto next = coordinators_->leader(term + 1);
  ASSERT_TRUE(next);
  ASSERT_TRUE(comes_true([&] { return members_of(*next).size() == kCoordinators; }));
  ASSERT_TRUE(each_is_served_once(view_of(*next)));
  EXPECT_EQ(parts(), before);
}

TEST_F(MembersTest, WithoutTheStoreItGoesOnUntilTheLeaseEnds) {
  const std::size_t leader = start();
  const std::uint64_t term = coordinators_->leads_with(leader);
  const std::filesystem::path away = site_.folder() / "away";
  std::filesystem::rename(shared(), away);
  EXPECT_TRUE(member(leader).logs(fmt::format("term {} is over: ", term)));
  std::filesystem::rename(away, shared());
  const auto next = coordinators_->leader(term + 1);
  ASSERT_TRUE(next);
  ASSERT_TRUE(comes_true([&] { return members_of(*next).size() == kCoordinators; }));
  ASSERT_TRUE(each_is_served_once(view_of(*next)));
}

}  // namespace
}  // namespace vpfs::test
