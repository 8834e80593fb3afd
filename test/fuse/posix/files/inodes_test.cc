#include "fuse/posix/files/inodes.h"

#include <cerrno>
#include <chrono>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "test/fuse/users.h"
#include "test/support/process.h"

namespace vpfs::fuse {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::NotNull;

using test::kAlice;
using test::kMallory;

net::Descriptor open_path(const std::string& path) {
  return net::Descriptor(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
}

struct stat attributes_of(const net::Descriptor& opened) {
  struct stat attributes = {};
  EXPECT_EQ(::fstat(opened.get(), &attributes), 0);
  return attributes;
}

// A table over /proc, which has no handles that serve: each object that is known stays open.
class PinnedInodes : public ::testing::Test {
 protected:
  static Inodes make(std::size_t descriptors) {
    net::Descriptor root = open_path("/proc");
    const struct stat attributes = attributes_of(root);
    return {std::move(root),
            attributes,
            {.descriptors = descriptors, .longest_wait = std::chrono::milliseconds(20)}};
  }
  Inode* know(uid_t user, const std::string& name) {
    net::Descriptor opened = open_path("/proc/" + name);
    const struct stat attributes = attributes_of(opened);
    return inodes_.look_up(std::move(opened), attributes,
                           {.user = user, .parent = 1, .entry = name.c_str()});
  }
  static std::vector<std::string> entries(const std::vector<Inodes::Name>& names) {
    std::vector<std::string> all;
    for (const Inodes::Name& each : names) all.push_back(each.entry);
    return all;
  }

  Inodes inodes_ = make(8);
};

TEST_F(PinnedInodes, DirectoriesAreNotForgottenSinceMountsOnThemWouldBeDetached) {
  ASSERT_NE(know(kMallory, "version"), nullptr);
  ASSERT_NE(know(kMallory, "sys"), nullptr);
  ASSERT_NE(know(kMallory, "uptime"), nullptr);
  EXPECT_THAT(entries(inodes_.names_to_forget(kMallory, 8)), ElementsAre("version", "uptime"));
}

TEST_F(PinnedInodes, OnlyThoseOfOneThatHasManyAreForgotten) {
  ASSERT_NE(know(kAlice, "version"), nullptr);
  ASSERT_NE(know(kMallory, "uptime"), nullptr);
  EXPECT_THAT(inodes_.names_to_forget(kAlice, 8), IsEmpty()) << "few";
  ASSERT_NE(know(kMallory, "meminfo"), nullptr);
  ASSERT_NE(know(kMallory, "loadavg"), nullptr);
  EXPECT_THAT(entries(inodes_.names_to_forget(kMallory, 2)), ElementsAre("uptime", "meminfo"));
  EXPECT_THAT(entries(inodes_.names_to_forget(kMallory, 2)), ElementsAre("loadavg", "uptime"))
      << "the same comes again after all others";
}

TEST_F(PinnedInodes, AUserThatHasItsShareGetsNoMoreAndOthersDo) {
  std::vector<Inode*> known;
  for (const char* name :
       {"version", "uptime", "meminfo", "loadavg", "stat", "cpuinfo", "mounts"}) {
    if (Inode* const inode = know(kMallory, name)) known.push_back(inode);
  }
  // A quarter of the descriptors is free.
  EXPECT_EQ(known.size(), 6U);
  EXPECT_FALSE(inodes_.may_know_more(kMallory));
  EXPECT_EQ(errno, ENFILE);
  EXPECT_TRUE(inodes_.may_know_more(kAlice));
  EXPECT_NE(know(kAlice, "filesystems"), nullptr);
  for (Inode* const inode : known) inodes_.forget(*inode, 1);
  EXPECT_TRUE(inodes_.may_know_more(kMallory));
  EXPECT_EQ(inodes_.size(), 2U) << "the root and alice's";
}

// What the kernel forgets when it is asked to makes room.
TEST_F(PinnedInodes, ACallWithoutRoomWaitsForWhatTheKernelForgets) {
  std::vector<Inode*> known;
  for (const char* name : {"version", "uptime", "meminfo", "loadavg", "stat", "cpuinfo"}) {
    known.push_back(know(kMallory, name));
  }
  ASSERT_THAT(known, Each(NotNull()));
  inodes_.when_many_stay_open([&](uid_t user) {
    EXPECT_EQ(user, kMallory);
    if (known.empty()) return;
    inodes_.forget(*known.back(), 1);
    known.pop_back();
  });
  EXPECT_NE(know(kMallory, "mounts"), nullptr);
  EXPECT_TRUE(inodes_.may_know_more(kMallory));
  // A descriptor of an open file needs more room.
  EXPECT_TRUE(inodes_.take_descriptor(kMallory, Inodes::Patience::enough));
  EXPECT_LE(known.size(), 2U);
  inodes_.give_descriptor_back(kMallory);
}

// The lock of the directory is held meanwhile.
TEST_F(PinnedInodes, ABriefWaitThatWasInVainIsNotRepeatedUntilSomethingIsForgotten) {
  std::vector<Inode*> known;
  for (const char* name : {"version", "uptime", "meminfo", "loadavg", "stat", "cpuinfo"}) {
    known.push_back(know(kMallory, name));
  }
  ASSERT_THAT(known, Each(NotNull()));
  std::size_t asked = 0;
  inodes_.when_many_stay_open([&](uid_t) { ++asked; });
  EXPECT_FALSE(inodes_.may_know_more(kMallory));
  EXPECT_EQ(errno, ENFILE);
  EXPECT_GT(asked, 1U);
  const std::size_t before = asked;
  EXPECT_FALSE(inodes_.may_know_more(kMallory));
  EXPECT_EQ(asked, before);
  inodes_.forget(*known[0], 1);
  EXPECT_NE(know(kMallory, "mounts"), nullptr);
  EXPECT_FALSE(inodes_.may_know_more(kMallory));
  EXPECT_GT(asked, before + 1);
}

// Directories and what is in use are never forgotten.
TEST_F(PinnedInodes, AnOpenThatHasWaitedInVainIsNotRepeatedUntilSomethingIsForgotten) {
  std::vector<Inode*> known;
  for (const char* name : {"sys", "fs", "bus", "irq"}) known.push_back(know(kMallory, name));
  ASSERT_THAT(known, Each(NotNull()));
  std::size_t asked = 0;
  inodes_.when_many_stay_open([&](uid_t) { ++asked; });
  EXPECT_FALSE(inodes_.take_descriptor(kMallory, Inodes::Patience::brief));
  EXPECT_FALSE(inodes_.take_descriptor(kMallory, Inodes::Patience::enough));
  const std::size_t before = asked;
  EXPECT_GT(before, 2U);
  // Each call tells the forgetter once.
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(inodes_.take_descriptor(kMallory, Inodes::Patience::enough));
  }
  EXPECT_EQ(asked, before + 10);
  inodes_.forget(*known[0], 1);
  EXPECT_TRUE(inodes_.take_descriptor(kMallory, Inodes::Patience::enough));
  inodes_.give_descriptor_back(kMallory);
}

// Nothing is forgotten while another process takes over.
TEST_F(PinnedInodes, WhereNoneMayWaitACallIsToBeginAnew) {
  std::vector<Inode*> known;
  for (const char* name : {"version", "uptime", "meminfo", "loadavg", "stat", "cpuinfo"}) {
    known.push_back(know(kMallory, name));
  }
  ASSERT_THAT(known, Each(NotNull()));
  inodes_.when_many_stay_open([&](uid_t) { inodes_.let_none_wait(true); });
  EXPECT_FALSE(inodes_.take_descriptor(kMallory, Inodes::Patience::enough)) << "it has begun to";
  EXPECT_EQ(errno, ERESTART);
  EXPECT_FALSE(inodes_.may_know_more(kMallory));
  EXPECT_EQ(errno, ERESTART);
  EXPECT_EQ(know(kMallory, "mounts"), nullptr);
  EXPECT_EQ(errno, ERESTART);
  net::Descriptor made = open_path("/proc/filesystems");
  const struct stat attributes = attributes_of(made);
  EXPECT_NE(inodes_.look_up(std::move(made), attributes,
                            {.user = kMallory, .entry = "filesystems", .is_made = true}),
            nullptr)
      << "it is there already";
  // None of these waits was in vain.
  inodes_.when_many_stay_open([&](uid_t) {
    if (known.empty()) return;
    inodes_.forget(*known.back(), 1);
    known.pop_back();
  });
  inodes_.let_none_wait(false);
  EXPECT_NE(know(kMallory, "mounts"), nullptr);
  EXPECT_TRUE(inodes_.take_descriptor(kMallory, Inodes::Patience::enough));
  inodes_.give_descriptor_back(kMallory);
}

// Open files are given back by their user alone.
TEST_F(PinnedInodes, AUserOfOpenFilesAloneDoesNotWait) {
  std::size_t asked = 0;
  inodes_.when_many_stay_open([&](uid_t) { ++asked; });
  std::size_t taken = 0;
  while (inodes_.take_descriptor(kMallory, Inodes::Patience::enough)) ++taken;
  EXPECT_EQ(taken, 4U);
  EXPECT_EQ(asked, 0U);
}

TEST_F(PinnedInodes, AListingTellsTheKernelOfNoMoreWhenManyStayOpen) {
  EXPECT_FALSE(inodes_.knows_enough(kMallory));
  for (const char* name : {"version", "uptime", "meminfo"}) {
    ASSERT_NE(know(kMallory, name), nullptr);
  }
  EXPECT_TRUE(inodes_.knows_enough(kMallory));
  EXPECT_FALSE(inodes_.knows_enough(kAlice));
}

// Only root may open an object by its handle.
TEST(Inodes, AKnownObjectIsOpenedAgainByItsHandleAndASuccessorIsAnother) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may open by handles";
  const test::TemporaryDirectory scratch;
  net::Descriptor root = open_path(scratch.path());
  const struct stat attributes = attributes_of(root);
  const int directory = root.get();
  Inodes inodes(std::move(root), attributes, {.paths = 1});
  std::vector<Inode*> all;
  for (const char* name : {"a", "b", "c"}) {
    const net::Descriptor made(::openat(directory, name, O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    net::Descriptor opened = open_path(scratch.path() / name);
    const struct stat its = attributes_of(opened);
    all.push_back(inodes.look_up(std::move(opened), its, {.entry = name}));
  }
  if (all[0]->name->is_pinned()) GTEST_SKIP() << "handles do not serve here";
  EXPECT_EQ(inodes.open_objects(), 2U) << "the root and the last one";
  const ObjectPath again = inodes.path(*all[0]);
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(attributes_of(*again).st_ino, all[0]->number);
  EXPECT_EQ(::unlinkat(directory, "b", 0), 0);
  const net::Descriptor successor(::openat(directory, "b", O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  struct stat seen = {};
  int problem = 0;
  EXPECT_EQ(inodes.look_up_known(directory, "b", seen, problem), nullptr);
  EXPECT_EQ(problem, 0);
  EXPECT_EQ(inodes.path(*all[1]), nullptr);
  EXPECT_EQ(errno, ESTALE);
  EXPECT_EQ(inodes.look_up_known(directory, "c", seen, problem), all[2]);
}

}  // namespace
}  // namespace vpfs::fuse
