// The name space in every engine.

#include "dataserver/orangefs/metadata.h"

#include <set>

#include <gmock/gmock.h>

#include "test/dataserver/orangefs/engine_fixture.h"

namespace vpfs::dataserver {
namespace {

using MetadataTest = EngineTest;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint64_t kStart = 0x7ffffffe;
constexpr std::uint64_t kEnd = 0x7ffffffd;

TEST_P(MetadataTest, TheRootIsAnEmptyDirectory) {
  const auto root = metadata().attributes(HandleRanges::kRoot);
  ASSERT_TRUE(root);
  EXPECT_EQ(root->type, orangefs::ObjectType::directory);
  EXPECT_EQ(root->permissions, 0777U);
  EXPECT_EQ(metadata().attributes(root_dirdata())->directory.dirent_count, 0);
}

TEST_P(MetadataTest, ANewFileHasItsOwnerAndADatafileOnEveryServerOfItsPlacement) {
  const orangefs::Handle file = make_file();
  const auto attributes = metadata().attributes(file);
  ASSERT_TRUE(attributes);
  EXPECT_EQ(attributes->uid, 5U);
  EXPECT_EQ(attributes->permissions, 0644U);
  EXPECT_EQ(attributes->mtime, kNow);
  ASSERT_EQ(attributes->datafiles.size(), 2U);
  EXPECT_EQ(ranges_.server_of(attributes->datafiles[0]), 1U);
  EXPECT_EQ(ranges_.server_of(attributes->datafiles[1]), 0U);
}

TEST_P(MetadataTest, HandlesAreNeverGivenTwice) {
  std::set<orangefs::Handle> handles;
  for (int i = 0; i < 50; ++i) {
    handles.insert(make_file());
    const auto directory = metadata().create_directory(owned_by(1));
    handles.insert(*directory);
    handles.insert(metadata().attributes(*directory)->distributed.dirdata_handles.front());
    EXPECT_TRUE(metadata().remove(*directory));
  }
  EXPECT_EQ(handles.size(), 150U);
}

TEST_P(MetadataTest, EntriesAreFoundChangedAndRemoved) {
  const orangefs::Handle directory = root_dirdata();
  EXPECT_EQ(metadata().find_entry(directory, "a"), refuse(ENOENT));
  EXPECT_TRUE(metadata().add_entry(directory, "a", 100));
  EXPECT_EQ(metadata().add_entry(directory, "a", 101), refuse(EEXIST));
  EXPECT_EQ(metadata().find_entry(directory, "a"), 100U);
  EXPECT_EQ(metadata().change_entry(directory, "a", 102), 100U);
  EXPECT_EQ(metadata().attributes(directory)->directory.dirent_count, 1);
  EXPECT_EQ(metadata().remove_entry(directory, "a"), 102U);
  EXPECT_EQ(metadata().remove_entry(directory, "a"), refuse(ENOENT));
  EXPECT_EQ(metadata().change_entry(directory, "a", 1), refuse(ENOENT));
  EXPECT_EQ(metadata().attributes(directory)->directory.dirent_count, 0);
}

TEST_P(MetadataTest, InvalidNamesAreRefused) {
  const orangefs::Handle directory = root_dirdata();
  EXPECT_EQ(metadata().add_entry(directory, std::string(256, 'x'), 1), refuse(ENAMETOOLONG));
  EXPECT_TRUE(metadata().add_entry(directory, std::string(255, 'x'), 1));
  for (const char* name : {"", ".", "..", "a/b"}) {
    EXPECT_EQ(metadata().add_entry(directory, name, 1), refuse(EINVAL)) << name;
  }
  EXPECT_EQ(metadata().add_entry(HandleRanges::kRoot, "a", 1), refuse(ENOTDIR));
  EXPECT_EQ(metadata().add_entry(12345, "a", 1), refuse(ENOENT));
}

TEST_P(MetadataTest, AListingContinuesWhileEntriesAreRemoved) {
  const orangefs::Handle directory = root_dirdata();
  for (int i = 0; i < 25; ++i) {
    ASSERT_TRUE(
        metadata().add_entry(directory, "n" + std::to_string(i), 100U + static_cast<unsigned>(i)));
  }
  std::set<std::string> seen;
  std::uint64_t token = kStart;
  for (;;) {
    const auto part = metadata().entries(directory, token, 4);
    ASSERT_TRUE(part);
    if (part->entries.empty()) {
      EXPECT_EQ(part->token, kEnd);
      break;
    }
    for (const auto& entry : part->entries) {
      EXPECT_TRUE(seen.insert(entry.name).second) << entry.name;
      EXPECT_TRUE(metadata().remove_entry(directory, entry.name));
    }
    token = part->token;
  }
  EXPECT_EQ(seen.size(), 25U);
  EXPECT_THAT(metadata().entries(directory, kEnd, 10)->entries, IsEmpty());
}

TEST_P(MetadataTest, OnlyEmptyDirectoriesAreRemoved) {
  const auto directory = metadata().create_directory(owned_by(1));
  const auto entries = metadata().attributes(*directory)->distributed.dirdata_handles.front();
  EXPECT_TRUE(metadata().add_entry(entries, "a", 100));
  EXPECT_EQ(metadata().remove(*directory), refuse(ENOTEMPTY));
  EXPECT_TRUE(metadata().remove_entry(entries, "a"));
  EXPECT_TRUE(metadata().remove(*directory));
  EXPECT_EQ(metadata().attributes(*directory), refuse(ENOENT));
  EXPECT_EQ(metadata().attributes(entries), refuse(ENOENT));
  EXPECT_EQ(metadata().remove(HandleRanges::kRoot), refuse(EPERM));
}

TEST_P(MetadataTest, SetsOnlyWhatTheMaskNames) {
  const orangefs::Handle file = make_file();
  orangefs::Attributes wanted;
  wanted.mask = orangefs::kAttrPermissions | orangefs::kAttrAtime | orangefs::kAttrMtime |
                orangefs::kAttrMtimeSet | orangefs::kAttrType;
  wanted.permissions = 0600;
  wanted.uid = 99;
  wanted.atime = wanted.mtime = 77;
  EXPECT_TRUE(metadata().set_attributes(file, wanted));
  const auto now = metadata().attributes(file);
  EXPECT_EQ(now->permissions, 0600U);
  EXPECT_EQ(now->uid, 5U);
  EXPECT_EQ(now->atime, kNow);
  EXPECT_EQ(now->mtime, 77U);
  EXPECT_EQ(now->type, orangefs::ObjectType::metafile);
}

TEST_P(MetadataTest, ASymbolicLinkGetsItsTargetLater) {
  const auto link = metadata().create_symlink({});
  orangefs::Attributes wanted;
  wanted.mask = orangefs::kAttrSymlinkTarget;
  wanted.symlink_target = "over/there";
  EXPECT_TRUE(metadata().set_attributes(*link, wanted));
  EXPECT_EQ(metadata().attributes(*link)->symlink_target, "over/there");
  EXPECT_EQ(metadata().attributes(*link)->symlink_target_length, 11U);
  EXPECT_EQ(metadata().set_attributes(make_file(), wanted), refuse(EINVAL));
}

TEST_P(MetadataTest, ExtendedAttributesLiveAndDieWithTheirObject) {
  using IfPresent = Metadata::IfPresent;
  const orangefs::Handle file = make_file();
  const std::vector<std::string> keys = {"user.a", "user.b"};
  const std::vector<std::string> values = {"1", std::string("\0x", 2)};
  EXPECT_TRUE(metadata().set_extended(file, keys, values, IfPresent::replace));
  EXPECT_EQ(metadata().extended(file, "user.b"), values[1]);
  EXPECT_EQ(metadata().extended(file, "user.c"), refuse(ENOENT));
  EXPECT_THAT(*metadata().extended_keys(file), ElementsAre("user.a", "user.b"));
  EXPECT_EQ(metadata().set_extended(file, keys, values, IfPresent::must_not_be), refuse(EEXIST));
  EXPECT_TRUE(metadata().remove_extended(file, "user.a"));
  // One of the keys is missing, so none may change.
  EXPECT_EQ(metadata().set_extended(file, std::vector<std::string>{"user.b", "user.z"}, values,
                                    IfPresent::must_be),
            refuse(ENODATA));
  EXPECT_EQ(metadata().extended(file, "user.b"), values[1]);
  EXPECT_TRUE(metadata().remove(file));
  EXPECT_EQ(metadata().extended(file, "user.b"), refuse(ENOENT));
}

TEST_P(MetadataTest, WhatIsDurableIsThereAfterReopening) {
  if (!persists()) GTEST_SKIP() << "the memory engine forgets";
  const orangefs::Handle file = make_file();
  EXPECT_TRUE(metadata().add_entry(root_dirdata(), "a", file));
  EXPECT_TRUE(run(metadata().durable()));
  open(Bytes{8 * kMiB});
  EXPECT_EQ(metadata().find_entry(root_dirdata(), "a"), file);
  EXPECT_EQ(metadata().attributes(file)->uid, 5U);
  EXPECT_NE(make_file(), file);
}

TEST_P(MetadataTest, ADirectoryServesOneProcessAndOnePlaceOnly) {
  if (!persists()) GTEST_SKIP() << "the memory engine has none";
  EngineSettings other = settings(Bytes{8 * kMiB});
  auto second = open_engine(context_, other);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, testing::HasSubstr("in use"));
  metadata_.reset();
  engine_.reset();
  other.owner = "another program";
  auto foreign = open_engine(context_, other);
  ASSERT_FALSE(foreign);
  EXPECT_THAT(foreign.error().message, testing::HasSubstr("server 0 of these tests"));
}

INSTANTIATE_TEST_SUITE_P(Engines, MetadataTest,
                         testing::Values(EngineKind::memory, EngineKind::directory), engine_name);

}  // namespace
}  // namespace vpfs::dataserver
