#include "net/latch.h"

#include <gtest/gtest.h>

#include "test/support/run_task.h"

namespace vpfs::net {
namespace {

using test::drain;

class LatchTest : public testing::Test {
 protected:
  void wait() {
    asio::co_spawn(loop_, latch_.wait(), [this](const std::exception_ptr&) { resumed_ = true; });
    drain(loop_);
  }

  asio::io_context loop_;
  Latch latch_{loop_.get_executor()};
  bool resumed_ = false;
};

TEST_F(LatchTest, NothingExpectedMeansNoWait) {
  wait();
  EXPECT_TRUE(resumed_);
}

TEST_F(LatchTest, TheLastEventResumesTheWaiterInALaterTurn) {
  for (int i = 0; i < 3; ++i) latch_.expect();
  wait();
  latch_.done();
  latch_.done();
  drain(loop_);
  EXPECT_FALSE(resumed_);
  latch_.done();
  EXPECT_FALSE(resumed_);
  drain(loop_);
  EXPECT_TRUE(resumed_);
}

TEST_F(LatchTest, EventsMayAllHaveComeBeforeTheWait) {
  latch_.expect();
  latch_.done();
  wait();
  EXPECT_TRUE(resumed_);
}

}  // namespace
}  // namespace vpfs::net
