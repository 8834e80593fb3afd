// Objects that the kernel knows go to the table of another process.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuse/posix/files/inodes.h"
#include "test/fuse/users.h"
#include "test/support/process.h"

namespace vpfs::fuse {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using test::kAlice;

net::Descriptor opened_at(const std::string& path) {
  return net::Descriptor(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
}

struct stat seen_at(const net::Descriptor& opened) {
  struct stat attributes = {};
  EXPECT_EQ(::fstat(opened.get(), &attributes), 0);
  return attributes;
}

Inodes table_at(const std::string& path, std::size_t descriptors) {
  net::Descriptor root = opened_at(path);
  const struct stat attributes = seen_at(root);
  return {std::move(root), attributes, {.paths = 2, .descriptors = descriptors}};
}

std::vector<net::Descriptor> copies_of(const std::vector<ObjectPath>& open) {
  std::vector<net::Descriptor> copies;
  for (const ObjectPath& each : open) {
    copies.emplace_back(::fcntl(each->get(), F_DUPFD_CLOEXEC, 0));
  }
  return copies;
}

// A table over /proc, whose objects stay open.
class InodesHandover : public ::testing::Test {
 protected:
  Inode& know(const std::string& name) {
    net::Descriptor opened = opened_at("/proc/" + name);
    const struct stat attributes = seen_at(opened);
    Inode* const found = from_.look_up(std::move(opened), attributes,
                                       {.user = kAlice, .parent = 1, .entry = name.c_str()});
    EXPECT_NE(found, nullptr);
    return *found;
  }
  void move(std::vector<std::uint64_t> nodes) {
    for (std::size_t next = 0; next < nodes.size();) {
      const Inodes::Saved saved = from_.save(nodes, next);
      const Result<void> restored = to_.restore(saved.records, copies_of(saved.open));
      EXPECT_TRUE(restored) << restored.error().message;
    }
  }

  Inodes from_ = table_at("/proc", 1000);
  Inodes to_ = table_at("/proc", 1000);
};

TEST_F(InodesHandover, WhatIsKnownIsKnownByTheSameNumbersAndLookUpsCount) {
  const std::uint64_t version = know("version").node;
  const std::uint64_t uptime = know("uptime").node;
  EXPECT_EQ(know("uptime").node, uptime);
  move(from_.note_changes());
  EXPECT_EQ(to_.size(), 3U) << "with the root";
  EXPECT_EQ(to_.at(version).number, from_.at(version).number);
  EXPECT_EQ(seen_at(*to_.path(to_.at(uptime))).st_ino, from_.at(uptime).number);
  EXPECT_EQ(to_.at(uptime).entry, "uptime");
  EXPECT_EQ(to_.at(uptime).user, kAlice);
  to_.forget(to_.at(uptime), 1);
  EXPECT_EQ(to_.size(), 3U);
  to_.forget(to_.at(uptime), 1);
  to_.forget(to_.at(version), 1);
  EXPECT_EQ(to_.size(), 1U);
}

TEST_F(InodesHandover, WhatChangesAfterItWasSentIsSentAgain) {
  const std::uint64_t version = know("version").node;
  Inode& uptime = know("uptime");
  const std::uint64_t gone = uptime.node;
  const std::uint64_t kept = know("meminfo").node;
  move(from_.note_changes());
  from_.forget(uptime, 1);
  EXPECT_EQ(know("loadavg").node, gone) << "the number is free";
  const std::uint64_t again = know("uptime").node;
  (void)know("version");
  std::vector<std::uint64_t> changed = from_.take_changes();
  EXPECT_THAT(changed, ElementsAre(version, gone, again));
  to_.drop(changed);
  move(std::move(changed));
  EXPECT_EQ(to_.size(), from_.size());
  EXPECT_EQ(to_.at(version).lookups, 2U);
  EXPECT_EQ(to_.at(gone).entry, "loadavg");
  EXPECT_EQ(to_.at(again).entry, "uptime");
  EXPECT_EQ(to_.at(kept).lookups, 1U);
  // New objects get numbers that neither has.
  net::Descriptor opened = opened_at("/proc/stat");
  const struct stat attributes = seen_at(opened);
  EXPECT_EQ(to_.look_up(std::move(opened), attributes, {.entry = "stat"})->node, again + 1);
}

// The table is saved in pieces, and used in between.
TEST_F(InodesHandover, AnObjectThatGetsAnotherNumberBetweenTwoPiecesIsKnownByTheLater) {
  Inode& version = know("version");
  Inode& uptime = know("uptime");
  const std::uint64_t first = version.node;
  const std::uint64_t second = uptime.node;
  (void)from_.note_changes();
  move({first});
  from_.forget(version, 1);
  from_.forget(uptime, 1);
  ASSERT_EQ(know("version").node, second) << "the number that is free last";
  move({second});
  EXPECT_EQ(to_.size(), 2U) << "with the root";
  EXPECT_EQ(to_.at(second).entry, "version");
  ASSERT_EQ(know("meminfo").node, first);
  std::vector<std::uint64_t> changed = from_.take_changes();
  to_.drop(changed);
  move(std::move(changed));
  EXPECT_EQ(to_.size(), from_.size());
  EXPECT_EQ(to_.at(first).entry, "meminfo");
  EXPECT_EQ(to_.at(second).entry, "version");
  EXPECT_EQ(to_.at(second).lookups, 1U);
}

TEST_F(InodesHandover, NothingIsNotedBeforeAndAfter) {
  (void)know("version");
  (void)from_.note_changes();
  EXPECT_THAT(from_.take_changes(), IsEmpty());
  (void)know("uptime");
  EXPECT_THAT(from_.take_changes(), IsEmpty());
}

// The first one may fail.
TEST_F(InodesHandover, WhatIsNotedForOneProcessIsNotedForTheNext) {
  const std::uint64_t version = know("version").node;
  const std::uint64_t uptime = know("uptime").node;
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(from_.note_changes(), ElementsAre(version, uptime));
    (void)know("uptime");
    EXPECT_THAT(from_.take_changes(), ElementsAre(uptime));
  }
}

TEST_F(InodesHandover, RecordsThatAreCutOrLackADescriptorAreRefused) {
  (void)know("version");
  const std::vector<std::uint64_t> nodes = from_.note_changes();
  std::size_t next = 0;
  const Inodes::Saved saved = from_.save(nodes, next);
  for (std::size_t size = 1; size < saved.records.size(); ++size) {
    Inodes other = table_at("/proc", 1000);
    EXPECT_FALSE(other.restore(saved.records.substr(0, size), copies_of(saved.open))) << size;
  }
  EXPECT_FALSE(to_.restore(saved.records, {}));
  EXPECT_TRUE(to_.restore(saved.records, copies_of(saved.open)));
  EXPECT_FALSE(to_.restore(saved.records, copies_of(saved.open))) << "it is known already";
}

// Objects with handles take no descriptor on their way.
TEST(InodesHandoverByHandle, AnObjectIsOpenedByItsHandleInTheOtherProcess) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may open by handles";
  const test::TemporaryDirectory scratch;
  Inodes from = table_at(scratch.path(), 100);
  Inodes to = table_at(scratch.path(), 100);
  if (!from.has_handles()) GTEST_SKIP() << "handles do not serve here";
  std::vector<Inode*> all;
  for (int i = 0; i < 300; ++i) {
    net::Descriptor opened = opened_at(scratch.write(std::to_string(i), ""));
    const struct stat attributes = seen_at(opened);
    all.push_back(from.look_up(std::move(opened), attributes, {.entry = ""}));
  }
  const std::vector<std::uint64_t> nodes = from.note_changes();
  std::size_t descriptors = 0;
  for (std::size_t next = 0; next < nodes.size();) {
    const Inodes::Saved saved = from.save(nodes, next);
    descriptors += saved.open.size();
    ASSERT_TRUE(to.restore(saved.records, copies_of(saved.open)));
  }
  EXPECT_LE(descriptors, 2U) << "those that calls have used lately";
  EXPECT_EQ(to.size(), 301U);
  for (const Inode* const each : all) {
    ASSERT_EQ(seen_at(*to.path(to.at(each->node))).st_ino, each->number);
  }
}

}  // namespace
}  // namespace vpfs::fuse
