// What a KeepController takes for the throughput of the full depth, on a server whose completions
// are played to it.
#include "schedulers/policies/keep_controller.h"

#include <gtest/gtest.h>

#include "test/schedulers/policies/anticipating.h"

namespace vpfs {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kFullDepth = 16;
constexpr Cost kCost = 64;

// One request after the other, and always a queue. A flow is expected all the time.
class Played {
 public:
  void run(int requests, Duration each) {
    for (int i = 0; i < requests; ++i) {
      now_ += each;
      controller_.want(now_);
      controller_.completed(kCost, now_ - each * kFullDepth, kFullDepth - 1, true, now_);
    }
  }
  void stall(Duration length) { now_ += length; }

  // Requests per second.
  [[nodiscard]] double reference() const {
    return static_cast<double>(controller_.reference()) / kCost;
  }
  [[nodiscard]] const KeepController& controller() const { return controller_; }

 private:
  KeepController controller_{kMaxLoss};
  TimePoint now_ = TimePoint() + 1h;
};

TEST(KeepController, MeasuresWhatTheFullDepthDoes) {
  Played played;
  EXPECT_EQ(played.reference(), 0);
  played.run(300, 1ms);
  EXPECT_NEAR(played.reference(), 1000, 5);
  EXPECT_TRUE(played.controller().may_keep());
  EXPECT_NEAR(static_cast<double>(played.controller().time_of(kCost).count()), 1e6, 1e4);
}

TEST(KeepController, AStallInTheFirstPhaseIsForgottenSoon) {
  Played played;
  played.run(100, 1ms);
  played.stall(100ms);
  played.run(200, 1ms);
  EXPECT_LT(played.reference(), 800);
  played.run(5'000, 1ms);
  EXPECT_NEAR(played.reference(), 1000, 5);
}

TEST(KeepController, LearnsThatTheServerHasChanged) {
  Played played;
  played.run(50'000, 1ms);
  played.run(50'000, 5ms);
  EXPECT_NEAR(played.reference(), 200, 5);
  played.run(100'000, 500us);
  EXPECT_NEAR(played.reference(), 2000, 100);
}

// A balance that has gained for long must not be lost all at once: 198 of 1000 requests were.
TEST(KeepController, LosesNoMoreInASecondThanTheBoundAndWhatIsNoise) {
  Played played;
  played.run(20'000, 1ms);
  ASSERT_TRUE(played.controller().may_keep());
  int lost = 0;  // one with each request that takes two times as long
  while (played.controller().may_keep() && lost < 1000) {
    played.run(1, 2ms);
    ++lost;
  }
  EXPECT_GT(lost, 50);
  // The bound, what is at the server, a hundredth, and the part by which a second is counted.
  EXPECT_LE(lost, 1000 * kMaxLoss / 1000 + 2 * kFullDepth + 10 + 10);
}

TEST(KeepController, MeasuresNothingWhileNoFlowIsExpected) {
  KeepController controller(kMaxLoss);
  for (int i = 0; i < 10'000; ++i) {
    const TimePoint now = TimePoint() + 1h + i * 1ms;
    controller.completed(kCost, now - 16ms, kFullDepth - 1, true, now);
  }
  EXPECT_EQ(controller.reference(), 0);
  EXPECT_EQ(controller.work(), 0);
  EXPECT_FALSE(controller.may_keep());
}

}  // namespace
}  // namespace vpfs
