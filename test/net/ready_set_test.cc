#include "net/ready_set.h"

#include <functional>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

namespace vpfs::net {
namespace {

// One end of a socket pair as a member; the test has the other one.
class End final : public ReadySet::Member {
 public:
  explicit End(ReadySet& set) : set_(set) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    mine_ = ends[0];
    other_ = ends[1];
    EXPECT_TRUE(set_.add(mine_, *this));
  }
  ~End() override {
    remove();
    ::close(mine_);
    ::close(other_);
  }
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  void ready(bool readable, bool writable, bool ended) override {
    ++told;
    has_ended = ended;
    was_readable = readable;
    was_writable = writable;
    if (then) then();
  }
  void send() const { EXPECT_EQ(::send(other_, "x", 1, 0), 1); }
  void take() const {
    char byte = 0;
    EXPECT_EQ(::recv(mine_, &byte, 1, 0), 1);
  }
  void hang_up() const { ::shutdown(other_, SHUT_RDWR); }
  void want_room(bool wants) { set_.want_room(mine_, *this, wants); }
  void remove() {
    if (is_member_) set_.remove(mine_, *this);
    is_member_ = false;
  }

  int told = 0;
  bool was_readable = false;
  bool was_writable = false;
  bool has_ended = false;
  std::function<void()> then;

 private:
  ReadySet& set_;
  int mine_ = -1;
  int other_ = -1;
  bool is_member_ = true;
};

class ReadySetTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = ReadySet::make(context_);
    ASSERT_TRUE(made);
    set_ = std::move(*made);
  }
  // Runs what is ready, for a few turns.
  void turns(int count = 3) {
    for (int i = 0; i < count; ++i) {
      context_.restart();
      context_.poll_one();
    }
  }

  asio::io_context context_;
  std::unique_ptr<ReadySet> set_;
};

TEST_F(ReadySetTest, OnlyMembersWithSomethingAreTold) {
  End one(*set_);
  End two(*set_);
  one.then = [&] { one.take(); };
  turns();
  EXPECT_EQ(one.told, 0);
  one.send();
  turns();
  EXPECT_EQ(one.told, 1);
  EXPECT_TRUE(one.was_readable);
  EXPECT_FALSE(one.was_writable);
  EXPECT_EQ(two.told, 0);
}

TEST_F(ReadySetTest, WhatComesIsToldOnce) {
  End one(*set_);
  one.send();
  one.send();
  turns(5);
  EXPECT_EQ(one.told, 1);
  EXPECT_FALSE(one.has_ended);
  one.send();
  turns(5);
  EXPECT_EQ(one.told, 2);
  one.hang_up();
  turns(5);
  EXPECT_EQ(one.told, 3);
  EXPECT_TRUE(one.has_ended);
}

TEST_F(ReadySetTest, WhatHasComeIsServedAtOnceOutsideOfMembersAlone) {
  End one(*set_);
  End two(*set_);
  one.send();
  one.then = [&] {
    two.send();
    set_->serve_now();
    EXPECT_EQ(two.told, 0);
  };
  set_->serve_now();
  EXPECT_EQ(one.told, 1);
  set_->serve_now();
  EXPECT_EQ(two.told, 1);
}

TEST_F(ReadySetTest, RoomIsToldToMembersThatWantIt) {
  End one(*set_);
  one.want_room(true);
  turns(1);
  EXPECT_GE(one.told, 1);
  EXPECT_TRUE(one.was_writable);
  EXPECT_FALSE(one.was_readable);
  one.want_room(false);
  const int before = one.told;
  turns();
  EXPECT_EQ(one.told, before);
}

TEST_F(ReadySetTest, ABrokenDescriptorIsReadableAndWritable) {
  End one(*set_);
  one.then = [&] { one.remove(); };
  one.hang_up();
  turns();
  EXPECT_EQ(one.told, 1);
  EXPECT_TRUE(one.was_readable && one.was_writable);
}

TEST_F(ReadySetTest, AMemberThatAnotherOneRemovesIsNotTold) {
  End one(*set_);
  End two(*set_);
  // Whoever is first removes the other one, though both are ready.
  one.then = [&] {
    one.take();
    two.remove();
  };
  two.then = [&] {
    two.take();
    one.remove();
  };
  one.send();
  two.send();
  turns();
  EXPECT_EQ(one.told + two.told, 1);
}

TEST_F(ReadySetTest, AMemberMayRemoveItselfAndAllOthers) {
  constexpr std::size_t kMembers = 300;  // more than one wait returns
  std::vector<std::unique_ptr<End>> all;
  for (std::size_t i = 0; i < kMembers; ++i) {
    all.push_back(std::make_unique<End>(*set_));
    all.back()->then = [&all] {
      for (const auto& each : all) each->remove();
    };
    all.back()->send();
  }
  turns(5);
  int told = 0;
  for (const auto& each : all) told += each->told;
  EXPECT_EQ(told, 1);
}

TEST_F(ReadySetTest, AMemberThatIsFreedByAnotherOneIsNotTouched) {
  auto one = std::make_unique<End>(*set_);
  auto two = std::make_unique<End>(*set_);
  int told = 0;
  // A later turn frees the member whose call this is.
  one->then = [&] {
    ++told;
    one->remove();
    two.reset();
  };
  two->then = [&] {
    ++told;
    two->remove();
    one.reset();
  };
  one->send();
  two->send();
  turns();
  EXPECT_EQ(told, 1);
}

TEST_F(ReadySetTest, ADescriptorThatIsUsedAgainBelongsToItsNewMember) {
  End one(*set_);
  std::unique_ptr<End> two = std::make_unique<End>(*set_);
  std::unique_ptr<End> later;
  one.then = [&] {
    one.take();
    if (two == nullptr) return;
    two.reset();
    later = std::make_unique<End>(*set_);  // has the descriptors of `two`
  };
  one.send();
  turns();
  two.reset();
  ASSERT_NE(later, nullptr);
  EXPECT_EQ(later->told, 0);
  later->then = [&] { later->take(); };
  later->send();
  turns();
  EXPECT_EQ(later->told, 1);
}

TEST_F(ReadySetTest, AllOfThousandsAreTold) {
  rlimit limit = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const std::size_t count = std::min<std::size_t>(1000, (limit.rlim_cur - 100) / 2);
  std::vector<std::unique_ptr<End>> all;
  for (std::size_t i = 0; i < count; ++i) {
    all.push_back(std::make_unique<End>(*set_));
    all.back()->then = [each = all.back().get()] { each->take(); };
    all.back()->send();
  }
  turns(static_cast<int>(count / 100));
  for (const auto& each : all) EXPECT_EQ(each->told, 1);
}

TEST_F(ReadySetTest, NoMemberIsToldAfterItIsClosedFromInside) {
  End one(*set_);
  End two(*set_);
  one.then = [&] { set_->close(); };
  two.then = [&] { set_->close(); };
  one.send();
  two.send();
  turns(5);
  EXPECT_EQ(one.told + two.told, 1);
}

TEST_F(ReadySetTest, ItsEndBeforeThatOfTheLoopIsHarmless) {
  {
    End one(*set_);
    one.send();
    one.remove();
  }
  set_.reset();
  turns();
}

TEST_F(ReadySetTest, ANumberThatIsNotADescriptorIsRefused) {
  struct Nothing final : ReadySet::Member {
    void ready(bool, bool, bool) override {}
  } nothing;
  EXPECT_FALSE(set_->add(-1, nothing));
}

}  // namespace
}  // namespace vpfs::net
