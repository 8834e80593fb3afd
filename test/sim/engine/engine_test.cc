#include "sim/engine/engine.h"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/sim/start_time.h"

namespace vpfs::sim {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class EngineTest : public ::testing::Test {
 protected:
  Engine::Action note(std::string name) {
    return [this, name = std::move(name)] {
      happened_.push_back(name + "@" + std::to_string((engine_.now() - kStart) / 1ms));
    };
  }

  Engine engine_;
  std::vector<std::string> happened_;
};

TEST_F(EngineTest, EventsHappenAtTheirTimesWhateverTheOrderInWhichTheyWereAsked) {
  engine_.at(kStart + 3ms, note("c"));
  engine_.at(kStart + 1ms, note("a"));
  engine_.after(2ms, note("b"));
  EXPECT_EQ(engine_.next(), kStart + 1ms);
  engine_.run_until(kStart + 2ms);
  EXPECT_THAT(happened_, ElementsAre("a@1", "b@2"));
  EXPECT_EQ(engine_.now(), kStart + 2ms);
  EXPECT_FALSE(engine_.step(kStart + 2999us));
  EXPECT_TRUE(engine_.step());
  EXPECT_FALSE(engine_.step());
  EXPECT_EQ(engine_.next(), kNever);
  EXPECT_THAT(happened_, ElementsAre("a@1", "b@2", "c@3"));
}

TEST_F(EngineTest, AtOneTimeTheLowestRankComesFirstThenTheOneAskedForFirst) {
  engine_.at(kStart + 1ms, note("x"), 2);
  engine_.at(kStart + 1ms, note("b1"), 1);
  engine_.at(kStart + 1ms, note("b2"), 1);
  engine_.at(kStart + 1ms, note("a"), 0);
  engine_.at(kStart + 1ms, note("b3"), 1);
  engine_.run_until(kStart + 1ms);
  EXPECT_THAT(happened_, ElementsAre("a@1", "b1@1", "b2@1", "b3@1", "x@1"));
}

TEST_F(EngineTest, AnEventMayAskForOthersAndForItselfAgain) {
  int left = 3;
  std::function<void()> tick = [&] {
    note("tick")();
    if (--left > 0) engine_.after(1ms, tick);
    engine_.after(0ms, note("soon"), 1);
  };
  engine_.after(1ms, tick);
  engine_.run_until(kStart + 1s);
  EXPECT_THAT(happened_, ElementsAre("tick@1", "soon@1", "tick@2", "soon@2", "tick@3", "soon@3"));
}

TEST_F(EngineTest, WhatIsCancelledDoesNotHappen) {
  const Engine::EventId first = engine_.after(1ms, note("a"));
  const Engine::EventId second = engine_.after(2ms, note("b"));
  EXPECT_TRUE(engine_.cancel(first));
  EXPECT_FALSE(engine_.cancel(first)) << "once";
  engine_.run_until(kStart + 1s);
  EXPECT_THAT(happened_, ElementsAre("b@2"));
  EXPECT_FALSE(engine_.cancel(second)) << "it has happened";
  const Engine::EventId third = engine_.after(1ms, note("c"));
  EXPECT_FALSE(engine_.cancel(second)) << "another event is in its place";
  EXPECT_TRUE(engine_.cancel(third));
}

TEST_F(EngineTest, WhatIsOverdueHappensNow) {
  engine_.after(1ms, note("a"));
  engine_.skip_to(kStart + 5ms);
  EXPECT_THAT(happened_, IsEmpty());
  engine_.at(kStart, note("b"));
  EXPECT_EQ(engine_.next(), kStart + 5ms);
  EXPECT_TRUE(engine_.next_is_now(0));
  EXPECT_FALSE(engine_.next_is_now(1));
  engine_.skip_to(kStart + 4ms);
  engine_.run_until(kStart + 5ms);
  EXPECT_THAT(happened_, ElementsAre("b@5", "a@5"));
}

TEST_F(EngineTest, ManyEventsHappenInTheOrderOfASortedList) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    Engine engine;
    using Key = std::tuple<TimePoint, int, int>;
    std::map<Key, Engine::EventId> expected;
    std::vector<Key> happened;
    for (int i = 0; i < 500; ++i) {
      const Key key(kStart + std::chrono::milliseconds(random() % 50),
                    static_cast<int>(random() % 3), i);
      expected[key] = engine.at(
          std::get<0>(key), [&happened, key] { happened.push_back(key); },
          static_cast<Engine::Rank>(std::get<1>(key)));
      if (random() % 4 == 0) {
        const auto some =
            std::next(expected.begin(), static_cast<std::ptrdiff_t>(random() % expected.size()));
        EXPECT_TRUE(engine.cancel(some->second));
        expected.erase(some);
      }
    }
    engine.run_until(kStart + 1s);
    ASSERT_EQ(happened.size(), expected.size());
    EXPECT_TRUE(
        std::ranges::equal(happened, expected, {}, {}, [](const auto& each) { return each.first; }))
        << "seed " << seed;
  }
}

}  // namespace
}  // namespace vpfs::sim
