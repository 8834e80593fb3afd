#include "net/permits.h"

#include <vector>

#include <gtest/gtest.h>

#include "test/support/run_task.h"

namespace vpfs::net {
namespace {

using test::drain;

class PermitsTest : public testing::Test {
 protected:
  void take(int number) {
    const auto note = [this, number](const std::exception_ptr&, bool granted) {
      (granted ? granted_ : refused_).push_back(number);
    };
    asio::co_spawn(loop_, permits_.take(), note);
    drain(loop_);
  }

  asio::io_context loop_;
  Permits permits_{loop_.get_executor(), 2};
  std::vector<int> granted_;
  std::vector<int> refused_;
};

TEST_F(PermitsTest, GoToTheLongestWaiter) {
  for (int i = 0; i < 5; ++i) take(i);
  EXPECT_EQ(granted_, (std::vector<int>{0, 1}));
  EXPECT_EQ(permits_.waiting(), 3U);
  permits_.give_back();
  take(5);
  EXPECT_EQ(granted_, (std::vector<int>{0, 1, 2}));
  for (int i = 0; i < 3; ++i) permits_.give_back();
  drain(loop_);
  EXPECT_EQ(granted_, (std::vector<int>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(permits_.waiting(), 0U);
}

TEST_F(PermitsTest, CloseRefusesPresentAndLaterWaiters) {
  for (int i = 0; i < 4; ++i) take(i);
  permits_.close();
  take(4);
  EXPECT_EQ(granted_, (std::vector<int>{0, 1}));
  EXPECT_EQ(refused_, (std::vector<int>{2, 3, 4}));
}

}  // namespace
}  // namespace vpfs::net
