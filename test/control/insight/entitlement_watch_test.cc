#include "control/insight/entitlement_watch.h"

#include <chrono>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

namespace vpfs::insight {
namespace {

using stage::Measure;
using std::chrono::seconds;

constexpr std::uint64_t kAllTheTime = 1'000'000;
constexpr Cost kMany = 1 << 20;

// Seconds of a stage. What a virtual PFS did is charged by its bytes.
class EntitlementWatchTest : public ::testing::Test {
 protected:
  struct Did {
    std::uint32_t weight = 1;
    std::uint64_t bytes = 0;
    std::optional<Measure> held_by = {};  // all the time
    std::uint64_t limit = 0;
    Cost elsewhere = 0;  // until now
    bool keeps_no_queue = false;
    std::uint32_t generation = 1;
  };

  // One activity for each, in the order of AppIds.
  std::vector<std::optional<Cost>> second(const std::vector<Did>& all, bool by_weight = true,
                                          Duration length = seconds(1)) {
    std::list<stage::HistoryReading> readings;
    std::vector<stage::Activity> activities;
    for (const Did& did : all) {
      auto declared = std::make_shared<stage::VirtualPfsConfig>();
      declared->share.weight = did.weight;
      auto info = std::make_shared<stage::VirtualPfsInfo>();
      info->declared = std::move(declared);
      stage::HistoryReading& reading = readings.emplace_back();
      reading.id = id(readings.size() - 1, did.generation);
      reading.info = std::move(info);
      reading.limit = {did.limit};
      reading.elsewhere = did.elsewhere;
      reading.keeps_no_queue = did.keeps_no_queue;
      stage::Activity activity{.reading = &reading};
      activity.measures.of(Measure::read_bytes) = did.bytes;
      activity.measures.of(Measure::cost) = did.bytes;
      if (did.held_by) activity.measures.of(*did.held_by) = kAllTheTime;
      activities.push_back(activity);
    }
    watch_.judge(activities, length, by_weight);
    std::vector<std::optional<Cost>> entitled;
    for (const auto& reading : readings) entitled.push_back(watch_.entitled(reading.id));
    return entitled;
  }
  static stage::VirtualPfsId id(std::size_t app, std::uint32_t generation = 1) {
    return {.app = AppId{static_cast<std::uint32_t>(app)}, .generation = generation};
  }
  using Entitled = std::vector<std::optional<Cost>>;

  EntitlementWatch watch_;
};

TEST_F(EntitlementWatchTest, WeightsDivideABusyServer) {
  EXPECT_EQ(second({{.weight = 2, .bytes = 500, .held_by = Measure::held_by_share},
                    {.weight = 1, .bytes = 400, .held_by = Measure::held_by_share}}),
            (Entitled{600, 300}));
  EXPECT_FALSE(watch_.was_idle());
}

TEST_F(EntitlementWatchTest, RatesAreForASecond) {
  EXPECT_EQ(second({{.bytes = 500, .held_by = Measure::held_by_share}}, true, seconds(2)),
            (Entitled{250}));
}

TEST_F(EntitlementWatchTest, WeightsDoNothingWhereNothingWaits) {
  EXPECT_EQ(second({{.weight = 9, .bytes = 100}, {.bytes = 900}}),
            (Entitled{std::nullopt, std::nullopt}));
  EXPECT_TRUE(watch_.was_idle());
}

TEST_F(EntitlementWatchTest, ALimitCountsWhetherTheServerIsBusyOrNot) {
  const Did limited = {.bytes = 40, .held_by = Measure::held_by_limit, .limit = 40};
  EXPECT_EQ(second({limited, {.bytes = 100}}), (Entitled{40, std::nullopt}));
  EXPECT_EQ(second({limited, {.bytes = 960, .held_by = Measure::held_by_depth}}),
            (Entitled{40, 960}));
}

// Two servers of 100 each, equal weights; the first virtual PFS has files on both. That is right
// when it has all of the other server and nothing of this one.
TEST_F(EntitlementWatchTest, ServiceElsewhereCounts) {
  const auto both = [](Cost elsewhere) {
    return std::vector<Did>{
        {.bytes = 10, .held_by = Measure::held_by_share, .elsewhere = elsewhere},
        {.bytes = 90, .held_by = Measure::held_by_share}};
  };
  EXPECT_EQ(second(both(5000)), (Entitled{50, 50})) << "nothing is known of the time before";
  EXPECT_EQ(second(both(5100)), (Entitled{0, 100}));
  EXPECT_EQ(second(both(5140)), (Entitled{30, 70}));
  EXPECT_EQ(second(both(0)), (Entitled{50, 50})) << "a coordinator that counts anew";
}

TEST_F(EntitlementWatchTest, ServiceElsewhereOfASecondWithoutAReadingIsNotCounted) {
  const Did other = {.bytes = 90, .held_by = Measure::held_by_share};
  const Did first = {.bytes = 10, .held_by = Measure::held_by_share, .elsewhere = 0};
  (void)second({first, other});
  watch_.judge({}, seconds(1), true);
  Did later = first;
  later.elsewhere = kMany;
  EXPECT_EQ(second({later, other}), (Entitled{50, 50}));
}

TEST_F(EntitlementWatchTest, AnotherOneOfTheSameNumberHasNothingOfTheOneBefore) {
  const Did other = {.bytes = 90, .held_by = Measure::held_by_share};
  const Did first = {.bytes = 10, .held_by = Measure::held_by_share};
  (void)second({first, other});
  EXPECT_FALSE(watch_.entitled(id(0, 2)));
  Did successor = first;
  successor.generation = 2;
  successor.elsewhere = kMany;
  EXPECT_EQ(second({successor, other}), (Entitled{50, 50}));
}

// It has one request in flight, and never one waiting when it is its turn.
TEST_F(EntitlementWatchTest, OneThatKeepsNoQueueIsEntitledToItsShare) {
  EXPECT_EQ(second({{.bytes = 10, .keeps_no_queue = true},
                    {.bytes = 90, .held_by = Measure::held_by_share}}),
            (Entitled{50, 50}));
}

TEST_F(EntitlementWatchTest, NothingIsSaidWhereWeightsDoNotDivide) {
  const Did busy = {.bytes = 50, .held_by = Measure::held_by_share};
  EXPECT_EQ(second({busy, busy}, false), (Entitled{std::nullopt, std::nullopt}));
  EXPECT_FALSE(watch_.was_idle());
}

}  // namespace
}  // namespace vpfs::insight
