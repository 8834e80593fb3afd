#include "net/gather.h"

#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/run_task.h"

namespace vpfs::net {
namespace {

using test::drain;

class GatherTest : public testing::Test {
 protected:
  // Answers ten times its number at the next tick of the clock.
  Task<int> request(std::size_t number) {
    begun_.push_back(number);
    co_await tick_.wait();
    if (number == failing_) throw std::runtime_error("as told");
    co_return 10 * static_cast<int>(number);
  }
  void start(std::size_t count, std::size_t most) {
    const auto make = [this](std::size_t number) { return request(number); };
    const auto note = [this](const std::exception_ptr& problem, std::vector<int> values) {
      failed_ = problem != nullptr;
      values_ = std::move(values);
      ended_ = true;
    };
    asio::co_spawn(loop_, gather(count, most, make), note);
    drain(loop_);
  }
  void tick() {
    tick_.notify_all();
    drain(loop_);
  }

  asio::io_context loop_;
  Signal tick_{loop_.get_executor()};
  std::vector<std::size_t> begun_;
  std::size_t failing_ = ~std::size_t{0};
  std::vector<int> values_;
  bool failed_ = false;
  bool ended_ = false;
};

TEST_F(GatherTest, ManyRequestsTakeTheTimeOfOne) {
  start(5, 64);
  EXPECT_EQ(begun_.size(), 5U);
  EXPECT_FALSE(ended_);
  tick();
  EXPECT_TRUE(ended_);
  EXPECT_EQ(values_, (std::vector<int>{0, 10, 20, 30, 40}));
}

TEST_F(GatherTest, NoMoreThanTheBoundAreUnderWayAtOnce) {
  start(5, 2);
  EXPECT_EQ(begun_.size(), 2U);
  tick();
  EXPECT_EQ(begun_.size(), 4U);
  tick();
  EXPECT_EQ(begun_.size(), 5U);
  EXPECT_FALSE(ended_);
  tick();
  EXPECT_EQ(values_, (std::vector<int>{0, 10, 20, 30, 40}));
}

TEST_F(GatherTest, NothingToDoIsDoneAtOnce) {
  start(0, 2);
  EXPECT_TRUE(ended_);
  EXPECT_TRUE(values_.empty());
}

TEST_F(GatherTest, AnExceptionIsThrownOnceAllHaveEnded) {
  failing_ = 0;
  start(3, 2);
  tick();
  EXPECT_FALSE(ended_);
  EXPECT_EQ(begun_.size(), 3U);
  tick();
  EXPECT_TRUE(ended_);
  EXPECT_TRUE(failed_);
}

TEST_F(GatherTest, TasksThatDoNotWaitAreGatheredToo) {
  const auto make = [](std::size_t number) -> Task<int> { co_return static_cast<int>(number); };
  EXPECT_EQ(test::run_task(loop_, gather(3, 2, make)), (std::vector<int>{0, 1, 2}));
}

}  // namespace
}  // namespace vpfs::net
