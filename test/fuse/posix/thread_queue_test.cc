#include "fuse/posix/thread_queue.h"

#include <memory>
#include <optional>
#include <vector>

#include <gmock/gmock.h>
#include <sys/resource.h>

#include "fuse/posix/low_priority.h"

namespace vpfs::fuse {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Requests by number, each of a user.
class ThreadQueueTest : public ::testing::Test {
 protected:
  IoRequest& request(uid_t uid, std::uint64_t unique) {
    all_.push_back(std::make_unique<IoRequest>());
    all_.back()->charged = uid;
    all_.back()->unique = unique;
    all_.back()->process = static_cast<pid_t>(unique + 1000);
    return *all_.back();
  }
  static std::vector<std::uint64_t> left(ThreadQueue& queue, uid_t uid) {
    std::vector<IoRequest*> go;
    queue.leave(uid, go);
    std::vector<std::uint64_t> numbers;
    for (const IoRequest* const each : go) numbers.push_back(each->unique);
    return numbers;
  }

 private:
  std::vector<std::unique_ptr<IoRequest>> all_;
};

TEST_F(ThreadQueueTest, OneUserAloneGetsHalf) {
  ThreadQueue queue(256);
  std::size_t entered = 0;
  while (queue.enter(1)) ++entered;
  EXPECT_EQ(entered, 128U);
}

TEST_F(ThreadQueueTest, UsersWhoWantAllGetEqualSharesAndOneIsLeftForANewcomer) {
  for (const uid_t users : {2U, 3U, 10U, 50U}) {
    ThreadQueue queue(256);
    for (bool any = true; any;) {
      any = false;
      for (uid_t uid = 1; uid <= users; ++uid) any = queue.enter(uid) || any;
    }
    EXPECT_GE(queue.busy(), 256U * users / (users + 1) - users);
    EXPECT_TRUE(queue.enter(1000)) << users;
  }
}

TEST_F(ThreadQueueTest, OneThreadServesAllUsers) {
  ThreadQueue queue(1);
  EXPECT_TRUE(queue.enter_or_wait(request(1, 1)));
  EXPECT_FALSE(queue.enter_or_wait(request(1, 2)));
  EXPECT_FALSE(queue.enter_or_wait(request(2, 3)));
  EXPECT_THAT(left(queue, 1), ElementsAre(2));
  EXPECT_THAT(left(queue, 1), ElementsAre(3));
  EXPECT_THAT(left(queue, 2), IsEmpty());
}

TEST_F(ThreadQueueTest, UsersTakeTurnsAndEachKeepsItsOrder) {
  ThreadQueue queue(2);
  ASSERT_TRUE(queue.enter(9));
  ASSERT_TRUE(queue.enter(8));
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_FALSE(queue.enter_or_wait(request(1, 10 + i)));
    EXPECT_FALSE(queue.enter_or_wait(request(2, 20 + i)));
  }
  EXPECT_THAT(left(queue, 9), ElementsAre(10));
  EXPECT_THAT(left(queue, 1), ElementsAre(20));
  EXPECT_THAT(left(queue, 2), ElementsAre(11));
}

TEST_F(ThreadQueueTest, WhatWaitsIsFoundAndTakenOut) {
  ThreadQueue queue(1);
  ASSERT_TRUE(queue.enter(1));
  ASSERT_FALSE(queue.enter_or_wait(request(1, 5)));
  ASSERT_FALSE(queue.enter_or_wait(request(1, 6)));
  const std::optional<Holder> holder = queue.holder_of(5);
  ASSERT_TRUE(holder);
  EXPECT_EQ(holder->process, 1005);
  EXPECT_EQ(holder->uid, 1U);
  EXPECT_FALSE(queue.holder_of(7));
  ASSERT_EQ(queue.users_that_wait().size(), 1U);
  EXPECT_EQ(queue.users_that_wait()[0].waiting, 2U);
  ASSERT_NE(queue.withdraw(5), nullptr);
  EXPECT_EQ(queue.withdraw(5), nullptr);
  EXPECT_EQ(queue.waiting(), 1U);
  EXPECT_EQ(queue.withdraw_all().size(), 1U);
  EXPECT_THAT(left(queue, 1), IsEmpty());
  EXPECT_EQ(queue.busy(), 0U);
}

TEST_F(ThreadQueueTest, WhatIsToWaitWaitsThoughThereIsRoom) {
  ThreadQueue queue(4);
  ASSERT_TRUE(queue.enter(1));
  queue.wait(request(1, 5));
  queue.wait(request(2, 6));
  EXPECT_EQ(queue.waiting(), 2U);
  EXPECT_EQ(queue.busy(), 1U);
  EXPECT_THAT(left(queue, 1), ElementsAre(5, 6));
}

TEST_F(ThreadQueueTest, AUserWithManyThreadsYieldsWhileOthersCome) {
  ThreadQueue queue(256);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(queue.enter(1));
    EXPECT_FALSE(queue.yields(1)) << "no other user is there";
  }
  ASSERT_TRUE(queue.enter(2));
  EXPECT_FALSE(queue.yields(2)) << "it has one thread";
  EXPECT_TRUE(queue.yields(1));
  // The first one goes on alone.
  for (int i = 0; i < 4096; ++i) {
    (void)left(queue, 1);
    ASSERT_TRUE(queue.enter(1));
  }
  EXPECT_FALSE(queue.yields(1));
}

TEST(LowPriority, LastsAsLongAsTheObject) {
  if (!LowPriority::is_possible()) GTEST_SKIP() << "it takes CAP_SYS_NICE";
  const auto nice = [] { return ::getpriority(PRIO_PROCESS, 0); };
  const int before = nice();
  {
    const LowPriority not_low(false);
    EXPECT_EQ(nice(), before);
    const LowPriority low(true);
    EXPECT_EQ(nice(), 19);
  }
  EXPECT_EQ(nice(), before);
}

TEST(UserShares, AUserHasNoRoomBeyondWhatIsFree) {
  UserShares shares(100);
  EXPECT_EQ(shares.room_for(1), 100U);
  shares.take(1, 40);
  EXPECT_EQ(shares.room_for(1), 20U);
  EXPECT_EQ(shares.room_for(2), 60U);
  EXPECT_TRUE(shares.has_room_for_all(20));
  EXPECT_FALSE(shares.has_room_for_all(21));
  shares.set_bound(30);
  EXPECT_EQ(shares.room_for(2), 0U);
  shares.give_back(1, 40);
  EXPECT_EQ(shares.taken(), 0U);
}

}  // namespace
}  // namespace vpfs::fuse
