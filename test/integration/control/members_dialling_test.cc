// Stages that dial find the member that serves them, and another one when that is lost.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/integration/control/members_site.h"
#include "test/support/clock/by_clock.h"
#include "test/support/comes_true.h"
#include "test/support/load_run.h"
#include "test/support/process.h"

namespace vpfs::test {
namespace {

using std::chrono::milliseconds;
using ::testing::IsSupersetOf;

class DiallingMembersTest : public MembersTest {
 protected:
  DiallingMembersTest() : MembersTest(Dials::stages) {}

  // The number that a metric of that member has; nothing: it has no such metric.
  std::optional<std::uint64_t> metric(std::size_t index, const std::string& name) {
    const std::string text = "\n" + coordinators_->metrics(index);
    const std::size_t place = text.find("\n" + name + " ");
    if (place == std::string::npos) return std::nullopt;
    return std::stoull(text.substr(place + name.size() + 2));
  }
};

TEST_F(DiallingMembersTest, EachStageFindsTheMemberThatServesIt) {
  const std::size_t leader = start();
  const auto parts = this->parts();
  ASSERT_EQ(parts.size(), kCoordinators);
  // Each member has metrics of its part, whether it leads or not.
  std::uint64_t connected = 0;
  for (std::size_t i = 0; i < kCoordinators; ++i) {
    EXPECT_EQ(metric(i, "vpfs_coordinator_leads"), i == leader ? 1 : 0);
    EXPECT_EQ(metric(i, "vpfs_member_takes_part"), 1);
    EXPECT_EQ(metric(i, "vpfs_member_led"), 1);
    EXPECT_EQ(metric(i, "vpfs_member_members"), kCoordinators);
    EXPECT_EQ(metric(i, "vpfs_member_view"), view_of(leader));
    const auto own = metric(i, "vpfs_member_stages{state=\"connected\"}");
    EXPECT_EQ(own, parts.at(i).size());
    connected += own.value_or(0);
  }
  EXPECT_EQ(connected, kStages);
}

TEST_F(DiallingMembersTest, OnlyTheStagesOfOneThatDiesDialAnother) {
  const std::size_t leader = start();
  const std::uint64_t view = view_of(leader);
  const auto before = parts();
  const auto victim = standby_with_stages(leader);
  ASSERT_TRUE(victim);
  LoadRun load(site_.load(kBothJobs));
  ASSERT_TRUE(load.wait_until_begun());
  member(*victim).kill();
  const milliseconds took = until_led(view + 1, StandbySite::Clock::now());
  if (!programs_have_sanitizer()) EXPECT_LT(took, 3s) << kByClock;
  ASSERT_TRUE(each_is_served_once(view + 1));
  const auto after = parts();
  for (const auto& [index, part] : after) EXPECT_THAT(part, IsSupersetOf(before.at(index)));

  member(*victim).start();
  ASSERT_TRUE(comes_true([&] { return parts() == before; }));
  EXPECT_TRUE(each_is_served_once(view + 2));
  load.expect_good_stop();
}

TEST_F(DiallingMembersTest, TheStagesOfALeaderThatDiesDialTheNext) {
  const std::size_t leader = start();
  const std::uint64_t term = coordinators_->leads_with(leader);
  ASSERT_TRUE(coordinators_->others_watch(leader, term));
  member(leader).kill();
  const milliseconds took = until_led(term + kEpochs, StandbySite::Clock::now());
  if (!programs_have_sanitizer()) EXPECT_LT(took, 4s) << kByClock;
  EXPECT_TRUE(each_is_served_once(term + kEpochs));
  EXPECT_EQ(parts().size(), kCoordinators - 1);
}

}  // namespace
}  // namespace vpfs::test
