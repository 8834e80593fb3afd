#include "fuse/posix/kernel_locks.h"

#include <cstring>
#include <vector>

#include <gmock/gmock.h>

namespace vpfs::fuse {
namespace {

using ::testing::ElementsAre;

constexpr std::uint64_t kObject = 7;

struct NoBody {};

template <typename Body = NoBody>
KernelLocks locks_of(std::uint32_t opcode, bool is_directory, Body body = {}) {
  fuse_in_header head = {};
  head.opcode = opcode;
  head.nodeid = kObject;
  std::vector<std::byte> message(sizeof head + sizeof body);
  std::memcpy(message.data(), &head, sizeof head);
  std::memcpy(message.data() + sizeof head, &body, sizeof body);
  return KernelLocks::of(head, message, is_directory);
}

TEST(KernelLocks, AreThoseOfADirectoryInWhichANameIsUsed) {
  for (const std::uint32_t opcode : {FUSE_LOOKUP, FUSE_CREATE, FUSE_MKDIR, FUSE_MKNOD, FUSE_SYMLINK,
                                     FUSE_UNLINK, FUSE_RMDIR, FUSE_READDIR, FUSE_READDIRPLUS}) {
    const KernelLocks locks = locks_of(opcode, true);
    EXPECT_TRUE(locks.kept) << opcode;
    EXPECT_THAT(locks.objects, ElementsAre(kObject, 0)) << opcode;
  }
}

TEST(KernelLocks, AreTwoWhereANameMovesOrIsAdded) {
  EXPECT_THAT(locks_of(FUSE_RENAME, true, fuse_rename_in{.newdir = 9}).objects,
              ElementsAre(kObject, 9));
  EXPECT_THAT(locks_of(FUSE_RENAME2, true, fuse_rename2_in{.newdir = 9}).objects,
              ElementsAre(kObject, 9));
  EXPECT_THAT(locks_of(FUSE_LINK, true, fuse_link_in{.oldnodeid = 9}).objects,
              ElementsAre(kObject, 9));
}

TEST(KernelLocks, AreThoseOfAnObjectThatIsChanged) {
  for (const std::uint32_t opcode :
       {FUSE_SETATTR, FUSE_SETXATTR, FUSE_REMOVEXATTR, FUSE_FALLOCATE}) {
    const KernelLocks locks = locks_of(opcode, false);
    EXPECT_TRUE(locks.kept) << opcode;
    EXPECT_THAT(locks.objects, ElementsAre(kObject, 0)) << opcode;
  }
}

// These too show that a user comes to a directory.
TEST(KernelLocks, AreNoneWhileAnObjectIsOpenedOrAsked) {
  for (const std::uint32_t opcode :
       {FUSE_OPEN, FUSE_GETATTR, FUSE_GETXATTR, FUSE_LISTXATTR, FUSE_READLINK}) {
    const KernelLocks locks = locks_of(opcode, false);
    EXPECT_FALSE(locks.kept) << opcode;
    EXPECT_THAT(locks.objects, ElementsAre(0, 0)) << opcode;
  }
  for (const std::uint32_t opcode : {FUSE_OPENDIR, FUSE_STATFS, FUSE_LISTXATTR}) {
    const KernelLocks locks = locks_of(opcode, true);
    EXPECT_FALSE(locks.kept) << opcode;
    EXPECT_THAT(locks.objects, ElementsAre(kObject, 0)) << opcode;
  }
}

// The kernel may ask to see whether a name may be made.
TEST(KernelLocks, MayBeKeptWhileADirectoryIsAsked) {
  EXPECT_TRUE(locks_of(FUSE_GETATTR, true).kept);
  EXPECT_TRUE(locks_of(FUSE_GETXATTR, true).kept);
}

TEST(KernelLocks, MayBeKeptFurtherBehindAQuestion) {
  for (const std::uint32_t opcode : {FUSE_LOOKUP, FUSE_GETATTR, FUSE_GETXATTR}) {
    EXPECT_TRUE(locks_of(opcode, true).asks) << opcode;
  }
  for (const std::uint32_t opcode : {FUSE_MKDIR, FUSE_UNLINK, FUSE_READDIR}) {
    EXPECT_FALSE(locks_of(opcode, true).asks) << opcode;
  }
}

}  // namespace
}  // namespace vpfs::fuse
