#include "net/signal.h"

#include <chrono>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/run_task.h"

namespace vpfs::net {
namespace {

using namespace std::chrono_literals;
using test::drain;

class SignalTest : public testing::Test {
 protected:
  void wait(int number) {
    asio::co_spawn(loop_, signal_.wait(),
                   [this, number](const std::exception_ptr&) { resumed_.push_back(number); });
    drain(loop_);
  }
  void wait_for(Duration patience) {
    const auto note = [this](const std::exception_ptr&, bool notified) {
      (notified ? notified_ : late_) += 1;
    };
    asio::co_spawn(loop_, signal_.wait_for(patience), note);
  }

  asio::io_context loop_;
  Signal signal_{loop_.get_executor()};
  std::vector<int> resumed_;
  int notified_ = 0;
  int late_ = 0;
};

TEST_F(SignalTest, ResumesAllWaitersInALaterTurn) {
  wait(1);
  wait(2);
  EXPECT_TRUE(resumed_.empty());
  signal_.notify_all();
  EXPECT_TRUE(resumed_.empty());
  drain(loop_);
  EXPECT_EQ(resumed_, (std::vector<int>{1, 2}));
}

TEST_F(SignalTest, ALaterWaiterWaitsForTheNextNotification) {
  signal_.notify_all();
  wait(1);
  EXPECT_TRUE(resumed_.empty());
  signal_.notify_all();
  drain(loop_);
  EXPECT_EQ(resumed_, (std::vector<int>{1}));
}

TEST_F(SignalTest, PatienceEnds) {
  wait_for(Duration::zero());
  loop_.run();
  EXPECT_EQ(late_, 1);
  signal_.notify_all();
  drain(loop_);
  EXPECT_EQ(notified_, 0);
}

TEST_F(SignalTest, ANotificationInTimeCountsEvenWhenPatienceEndsBeforeTheWaiterRuns) {
  wait_for(1h);
  drain(loop_);
  signal_.notify_all();
  drain(loop_);
  EXPECT_EQ(notified_, 1);
  wait_for(Duration::zero());
  loop_.restart();
  loop_.run_one();  // begins to wait, already out of time
  signal_.notify_all();
  drain(loop_);
  EXPECT_EQ(notified_, 2);
  EXPECT_EQ(late_, 0);
}

TEST_F(SignalTest, AWaiterMayDestroyItOnceNotified) {
  auto own = std::make_unique<Signal>(loop_.get_executor());
  bool resumed = false;
  asio::co_spawn(loop_, own->wait(), [&](const std::exception_ptr&) { resumed = true; });
  drain(loop_);
  own->notify_all();
  own.reset();
  drain(loop_);
  EXPECT_TRUE(resumed);
}

TEST(Signal, AWaiterThatIsNeverNotifiedDiesWithTheLoop) {
  const auto token = std::make_shared<int>(0);
  {
    asio::io_context loop;
    Signal signal(loop.get_executor());
    const auto forever = [](Signal& waits_for, std::shared_ptr<int> /*held*/) -> Task<> {
      co_await waits_for.wait();
    };
    asio::co_spawn(loop, forever(signal, token), asio::detached);
    drain(loop);
    EXPECT_GT(token.use_count(), 1);
  }
  EXPECT_EQ(token.use_count(), 1);
}

}  // namespace
}  // namespace vpfs::net
