#include "net/both.h"

#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "test/support/run_task.h"

namespace vpfs::net {
namespace {

using test::drain;

class BothTest : public testing::Test {
 protected:
  Task<int> number() {
    ++begun_;
    co_await first_.wait();
    if (number_fails_) throw std::runtime_error("as told");
    co_return 7;
  }
  Task<std::string> text() {
    ++begun_;
    co_await second_.wait();
    co_return "seven";
  }
  void start() {
    const auto note = [this](const std::exception_ptr& problem,
                             std::pair<int, std::string> values) {
      failed_ = problem != nullptr;
      values_ = std::move(values);
      ended_ = true;
    };
    asio::co_spawn(loop_, both(number(), text()), note);
    drain(loop_);
  }
  void end(Signal& one) {
    one.notify_all();
    drain(loop_);
  }

  asio::io_context loop_;
  Signal first_{loop_.get_executor()};
  Signal second_{loop_.get_executor()};
  int begun_ = 0;
  bool number_fails_ = false;
  std::pair<int, std::string> values_;
  bool failed_ = false;
  bool ended_ = false;
};

TEST_F(BothTest, TwoTasksRunAtOnceAndBothValuesComeBack) {
  start();
  EXPECT_EQ(begun_, 2);
  end(second_);
  EXPECT_FALSE(ended_);
  end(first_);
  ASSERT_TRUE(ended_);
  EXPECT_EQ(values_, (std::pair<int, std::string>(7, "seven")));
}

TEST_F(BothTest, AnExceptionWaitsForTheOtherTask) {
  number_fails_ = true;
  start();
  end(first_);
  EXPECT_FALSE(ended_);
  end(second_);
  EXPECT_TRUE(ended_);
  EXPECT_TRUE(failed_);
}

}  // namespace
}  // namespace vpfs::net
