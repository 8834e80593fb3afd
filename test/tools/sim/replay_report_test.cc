#include "tools/sim/replay_report.h"

#include <cmath>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vpfs::sim_tool {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

sim::ReplayedShare share(const std::string& name, std::uint64_t requests, std::uint64_t mib) {
  sim::ReplayedShare made;
  made.virtual_pfs = name;
  made.requests = requests;
  made.moved = {mib << 20};
  return made;
}

class ReplayReport : public ::testing::Test {
 protected:
  ReplayReport() {
    replay_.recording = "x.json";
    replay_.config = "new.yaml";
    replay_.length = std::chrono::seconds(10);
    replay_.before = {share("data", 100, 100), share("meta", 1000, 0), share("rare", 1, 0)};
    replay_.after = replay_.before;
  }

  FinishedReplay replay_;
};

TEST_F(ReplayReport, TheSameHasNoGap) {
  EXPECT_EQ(largest_work_gap(replay_).ratio(), 1);
  replay_.after[2].requests = 50;
  EXPECT_EQ(largest_work_gap(replay_).ratio(), 1) << "it is a small part of all";
}

// Shares of bytes tell nothing of it.
TEST_F(ReplayReport, RequestsOfOneAreCompared) {
  replay_.after[1].requests = 9000;
  EXPECT_EQ(largest_gap(replay_).recorded, largest_gap(replay_).replayed);
  const WorkGap gap = largest_work_gap(replay_);
  EXPECT_EQ(gap.virtual_pfs, "meta");
  EXPECT_EQ(gap.recorded, 1000);
  EXPECT_EQ(gap.replayed, 9000);
  EXPECT_EQ(gap.ratio(), 9);
}

TEST_F(ReplayReport, BytesOfAllAreCompared) {
  replay_.after[0].moved = {50 << 20};
  const WorkGap gap = largest_work_gap(replay_);
  EXPECT_EQ(gap.virtual_pfs, "");
  EXPECT_EQ(gap.recorded, 10);
  EXPECT_EQ(gap.replayed, 5);
  replay_.after.clear();
  EXPECT_TRUE(std::isinf(largest_work_gap(replay_).ratio()));
}

TEST_F(ReplayReport, NamesCannotSteerATerminal) {
  replay_.before[0].virtual_pfs = "job\x1b[31mb";
  EXPECT_THAT(to_table(replay_), Not(HasSubstr("\x1b")));
}

TEST_F(ReplayReport, SaysWhatCouldNotStay) {
  replay_.not_recorded = {"directory"};
  EXPECT_THAT(to_table(replay_), Not(HasSubstr("were in virtual PFSes")));
  replay_.moved = 12;
  replay_.ambiguous = {"u"};
  EXPECT_THAT(to_table(replay_), HasSubstr("\n12 requests were in virtual PFSes that"));
  EXPECT_THAT(to_table(replay_), HasSubstr("\nRules give u different traffic classes"));
}

TEST_F(ReplayReport, SaysThatARecordingWasFull) {
  EXPECT_THAT(to_table(replay_), Not(HasSubstr("too many")));
  replay_.names_are_full = true;
  EXPECT_THAT(to_table(replay_), HasSubstr("\nThe recording does not tell all connections"));
  EXPECT_THAT(to_json(replay_), HasSubstr("\"names_are_full\": true"));
}

TEST_F(ReplayReport, TotalsThatDifferMuchCarryAWarning) {
  EXPECT_EQ(totals_text(replay_),
            "All together: recorded 10.0 MiB/s and 1101 requests, replayed 10.0 MiB/s and 1101 "
            "requests.\n");
  replay_.after[1].requests = 300;
  EXPECT_THAT(totals_text(replay_), HasSubstr("replayed 10.0 MiB/s and 401 requests.\nRely on"));
}

TEST_F(ReplayReport, SaysThatOneSchedulerHasAllTargets) {
  EXPECT_THAT(to_table(replay_), Not(HasSubstr("target")));
  replay_.has_one_lane = true;
  EXPECT_THAT(to_table(replay_), HasSubstr("No recording has the targets of requests"));
}

}  // namespace
}  // namespace vpfs::sim_tool
