#include "fuse/orangefs/open_directory.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/fuse/users.h"

namespace vpfs::fuse::pvfs {
namespace {

using test::kAlice;
using test::kMallory;

class OpenDirectoryTest : public testing::Test {
 protected:
  using DirectoryPtr = std::shared_ptr<OpenDirectory>;

  [[nodiscard]] DirectoryPtr open(uid_t user) {
    return std::make_shared<OpenDirectory>(
        1, std::make_shared<const client::Caller>(client::Caller{.uid = user}), pages_);
  }
  // A page of about 100,000 bytes.
  static OpenDirectory::PagePtr page(std::uint64_t first, bool end = false) {
    auto made = std::make_shared<OpenDirectory::Page>();
    made->first = first;
    made->content.end = end;
    made->content.next = {.place = 0, .token = first};
    for (int i = 0; i < 400; ++i) {
      made->content.entries.push_back({.name = std::string(190, 'n'), .handle = 7});
    }
    return made;
  }

  ListedPages pages_{1'000'000};
};

TEST_F(OpenDirectoryTest, ItHasThePageThatWasReadLast) {
  const DirectoryPtr directory = open(kAlice);
  EXPECT_EQ(directory->page_with(2), nullptr);
  const auto first = page(2);
  directory->keep(first);
  EXPECT_EQ(directory->page_with(2), first);
  EXPECT_EQ(directory->page_with(401), first);
  EXPECT_EQ(directory->page_with(402), nullptr);
  const auto last = page(402, true);
  directory->keep(last);
  EXPECT_EQ(directory->page_with(9999), last) << "there are no more";
  EXPECT_EQ(directory->page_with(2), nullptr);
  EXPECT_EQ(directory->begin_of(500).first, 402U);
  EXPECT_EQ(directory->begin_of(401).first, 2U);
  directory->rewind();
  EXPECT_EQ(directory->page_with(402), nullptr);
  EXPECT_EQ(directory->begin_of(500).first, 2U);
}

TEST_F(OpenDirectoryTest, AUserLosesThePagesOfTheDirectoriesThatItListedLongestAgo) {
  std::vector<DirectoryPtr> directories;
  for (int i = 0; i < 100; ++i) {
    directories.push_back(open(kMallory));
    directories.back()->keep(page(2));
    EXPECT_LE(pages_.bytes(), 500'000U) << "half of what there is";
    EXPECT_NE(directories.back()->page_with(2), nullptr);
  }
  EXPECT_GT(pages_.bytes(), 250'000U);
  EXPECT_EQ(directories.front()->page_with(2), nullptr);
  EXPECT_EQ(directories.front()->begin_of(500).first, 402U) << "where it goes on is known";

  // Others have room.
  const DirectoryPtr other = open(kAlice);
  other->keep(page(2));
  EXPECT_NE(other->page_with(2), nullptr);
  EXPECT_NE(directories.back()->page_with(2), nullptr);
}

TEST_F(OpenDirectoryTest, APageCountsOnceUntilTheDirectoryIsClosed) {
  DirectoryPtr directory = open(kAlice);
  const auto kept = page(2);
  for (int i = 0; i < 100; ++i) directory->keep(kept);
  EXPECT_EQ(pages_.bytes(), kept->memory());
  directory.reset();
  EXPECT_EQ(pages_.bytes(), 0U);
}

TEST_F(OpenDirectoryTest, WithoutRoomThereIsNoPage) {
  ListedPages small(1000);
  const DirectoryPtr directory = std::make_shared<OpenDirectory>(
      1, std::make_shared<const client::Caller>(client::Caller{.uid = kAlice}), small);
  directory->keep(page(2));
  EXPECT_EQ(directory->page_with(2), nullptr);
  EXPECT_EQ(small.bytes(), 0U);
}

TEST_F(OpenDirectoryTest, OnlySomeBeginningsOfVeryManyPagesAreKnown) {
  const DirectoryPtr directory = open(kAlice);
  auto made = std::make_shared<OpenDirectory::Page>();
  made->content.entries.push_back({.name = "a", .handle = 7});
  for (std::uint64_t first = 2; first < 20'000; ++first) {
    made->first = first;
    directory->keep(made);
    ASSERT_EQ(directory->begin_of(first + 1).first, first + 1);
  }
  EXPECT_LE(directory->begin_of(10'000).first, 10'000U);
  EXPECT_GE(directory->begin_of(10'000).first, 10'000U - 200);
  EXPECT_EQ(directory->begin_of(2).first, 2U);
}

}  // namespace
}  // namespace vpfs::fuse::pvfs
