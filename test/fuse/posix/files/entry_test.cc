#include "fuse/posix/files/entry.h"

#include <cerrno>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/descriptor.h"
#include "test/support/process.h"

namespace vpfs::fuse {
namespace {

class Entry : public ::testing::Test {
 protected:
  Entry() {
    EXPECT_EQ(::symlinkat("target", directory_.get(), "link"), 0);
    EXPECT_EQ(::symlinkat(".", directory_.get(), "here"), 0);
  }
  [[nodiscard]] bool has(const char* name) const {
    return ::faccessat(directory_.get(), name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
  }

  test::TemporaryDirectory scratch_;
  net::Descriptor directory_{::open(scratch_.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
};

// The kernel has looked the name up, and found nothing. A link that is there now came in between.
TEST_F(Entry, AFileIsNotMadeThroughALinkThatHasTakenItsName) {
  for (const int flags : {O_CREAT | O_WRONLY, O_CREAT | O_RDWR | O_TRUNC | O_LARGEFILE}) {
    const net::Descriptor opened(open_entry(directory_.get(), "link", flags, 0600));
    EXPECT_FALSE(opened);
    EXPECT_EQ(errno, ELOOP);
    EXPECT_FALSE(has("target"));
  }
}

TEST_F(Entry, ALinkIsNotWalkedThrough) {
  const net::Descriptor opened(open_entry(directory_.get(), "here/link", O_PATH, 0));
  EXPECT_FALSE(opened);
  EXPECT_EQ(errno, ELOOP);
}

TEST_F(Entry, ALinkItselfIsOpened) {
  const net::Descriptor opened(open_entry(directory_.get(), "link", O_PATH | O_NOFOLLOW, 0));
  EXPECT_TRUE(opened);
}

TEST_F(Entry, WhatIsMountedThereIsToldFromWhatIsNot) {
  const FoundEntry link = find_entry(directory_.get(), "link");
  ASSERT_TRUE(link);
  EXPECT_FALSE(link.is_mount);
  EXPECT_TRUE(S_ISLNK(link.attributes.st_mode));
  const net::Descriptor top(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  const FoundEntry mounted = find_entry(top.get(), "proc");
  ASSERT_TRUE(mounted);
  EXPECT_TRUE(mounted.is_mount);
  struct stat its = {};
  ASSERT_EQ(::stat("/proc", &its), 0);
  EXPECT_EQ(mounted.attributes.st_dev, its.st_dev);
  EXPECT_EQ(mounted.attributes.st_ino, its.st_ino);
  EXPECT_EQ(mounted.attributes.st_mode, its.st_mode);
  EXPECT_EQ(mounted.attributes.st_mtim.tv_sec, its.st_mtim.tv_sec);
  EXPECT_FALSE(find_entry(directory_.get(), "nothing"));
  EXPECT_EQ(errno, ENOENT);
}

// The kernel has flags of its own, such as that of a program that is run.
TEST_F(Entry, FlagsOfTheKernelArePassedOver) {
  constexpr int kOpenToRun = 0x20;
  const net::Descriptor made(
      open_entry(directory_.get(), "new", O_CREAT | O_RDWR | kOpenToRun, 0640));
  EXPECT_TRUE(made);
  EXPECT_TRUE(has("new"));
}

}  // namespace
}  // namespace vpfs::fuse
