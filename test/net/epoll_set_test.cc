#include "net/epoll_set.h"

#include <chrono>
#include <memory>
#include <vector>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/descriptor.h"

namespace vpfs::net {
namespace {

using namespace std::chrono_literals;

struct Told {
  bool readable;
  bool writable;
  bool has_ended;
  bool operator==(const Told&) const = default;
};

// One end of a connection as a member; the test has the other one.
class Listening final : public EpollSet::Member {
 public:
  Listening() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    mine = Descriptor(ends[0]);
    other = Descriptor(ends[1]);
  }
  void ready(bool readable, bool writable, bool has_ended) override {
    told.push_back({readable, writable, has_ended});
  }

  Descriptor mine;
  Descriptor other;
  std::vector<Told> told;
};

TEST(EpollSet, TellsOnceOfWhatHasCome) {
  EpollSet set;
  Listening one;
  Listening two;
  ASSERT_TRUE(set.add(one.mine.get(), one));
  ASSERT_TRUE(set.add(two.mine.get(), two));
  EXPECT_FALSE(set.serve(0ms));
  ASSERT_EQ(::write(one.other.get(), "x", 1), 1);
  EXPECT_TRUE(set.serve(1s));
  EXPECT_FALSE(set.serve(0ms));
  EXPECT_EQ(one.told, std::vector({Told{true, false, false}}));
  EXPECT_TRUE(two.told.empty());
  set.want_room(one.mine.get(), one, true);
  EXPECT_TRUE(set.serve(0ms));
  EXPECT_EQ(one.told.back(), (Told{true, true, false})) << "what is there is told again";
  one.other.close();
  EXPECT_TRUE(set.serve(1s));
  EXPECT_TRUE(one.told.back().has_ended);
}

TEST(EpollSet, WaitsNoLongerThanItMay) {
  EpollSet set;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(set.serve(3ms + 500us));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 3ms);
}

TEST(EpollSet, ADescriptorThatIsUsedAgainBelongsToItsNewMember) {
  EpollSet set;
  Listening old;
  ASSERT_TRUE(set.add(old.mine.get(), old));
  ASSERT_EQ(::write(old.other.get(), "x", 1), 1);
  set.remove(old.mine.get(), old);
  const int number = old.mine.get();
  old.mine.close();
  Listening later;
  ASSERT_EQ(later.mine.get(), number);
  ASSERT_TRUE(set.add(later.mine.get(), later, true));
  EXPECT_TRUE(set.serve(0ms));
  EXPECT_TRUE(old.told.empty());
  EXPECT_EQ(later.told, std::vector({Told{false, true, false}}));
}

TEST(EpollSet, ANumberThatIsNotADescriptorIsRefused) {
  EpollSet set;
  Listening member;
  EXPECT_FALSE(set.add(-1, member));
}

}  // namespace
}  // namespace vpfs::net
