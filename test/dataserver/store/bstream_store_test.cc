// Data in every engine.

#include "dataserver/store/bstream_store.h"

#include <random>

#include "test/dataserver/orangefs/engine_fixture.h"

namespace vpfs::dataserver {
namespace {

using BstreamStoreTest = EngineTest;
constexpr BstreamId kFile = 5'000'000'000'000'000'000;

TEST_P(BstreamStoreTest, AnUnwrittenBstreamIsEmpty) {
  EXPECT_EQ(bstreams().size(kFile), 0);
  EXPECT_EQ(read(kFile, 100, 3), std::string(3, '\0'));
  EXPECT_TRUE(bstreams().remove(kFile));
  EXPECT_TRUE(run(bstreams().flush(kFile)));
}

TEST_P(BstreamStoreTest, ReadsBackWhatWasWritten) {
  EXPECT_TRUE(write(kFile, 0, "hello"));
  EXPECT_EQ(bstreams().size(kFile), 5);
  EXPECT_EQ(read(kFile, 0, 5), "hello");
  EXPECT_EQ(read(kFile, 1, 3), "ell");
}

TEST_P(BstreamStoreTest, HolesAreZeros) {
  EXPECT_TRUE(write(kFile, 1'000'000, "x"));
  EXPECT_EQ(bstreams().size(kFile), 1'000'001);
  EXPECT_EQ(read(kFile, 0, 1000), std::string(1000, '\0'));
  EXPECT_EQ(read(kFile, 999'998, 3), std::string("\0\0x", 3));
}

TEST_P(BstreamStoreTest, PiecesAcrossChunksComeBackWhole) {
  // The same operations on a string give the expected result.
  std::mt19937 random(7);
  std::string expected;
  for (int i = 0; i < 60; ++i) {
    const std::size_t offset = random() % 1'500'000;
    std::string text(1 + random() % 200'000, '\0');
    for (char& byte : text) byte = static_cast<char>(random());
    ASSERT_TRUE(write(kFile, static_cast<std::int64_t>(offset), text));
    if (expected.size() < offset + text.size()) expected.resize(offset + text.size());
    expected.replace(offset, text.size(), text);
    ASSERT_EQ(bstreams().size(kFile), static_cast<std::int64_t>(expected.size()));
    const std::size_t from = random() % expected.size();
    const std::size_t size = std::min<std::size_t>(random() % 200'000, expected.size() - from);
    ASSERT_EQ(read(kFile, static_cast<std::int64_t>(from), size), expected.substr(from, size));
  }
}

TEST_P(BstreamStoreTest, WhatTruncationCutOffIsZeroAfterGrowingAgain) {
  EXPECT_TRUE(write(kFile, 0, std::string(600'000, 'a')));
  EXPECT_TRUE(bstreams().truncate(kFile, 300'000));
  EXPECT_EQ(bstreams().size(kFile), 300'000);
  EXPECT_TRUE(bstreams().truncate(kFile, 700'000));
  EXPECT_EQ(bstreams().size(kFile), 700'000);
  EXPECT_EQ(read(kFile, 299'998, 4), std::string("aa\0\0", 4));
  EXPECT_EQ(read(kFile, 590'000, 4), std::string(4, '\0'));
}

TEST_P(BstreamStoreTest, AnAbandonedWriteLeavesZerosPastTheEnd) {
  EXPECT_TRUE(write(kFile, 0, "ab"));
  auto window = run(bstreams().open_window(kFile, 2, 10));
  ASSERT_TRUE(window);
  std::memset(window->parts.front().data(), 'x', window->parts.front().size());
  bstreams().abandon(std::move(*window));
  EXPECT_EQ(bstreams().size(kFile), 2);
  EXPECT_TRUE(bstreams().truncate(kFile, 12));
  EXPECT_EQ(read(kFile, 0, 12), "ab" + std::string(10, '\0'));
}

TEST_P(BstreamStoreTest, AFullEngineRefusesWritesAndKeepsFilesReadable) {
  open(Bytes{kMiB});
  EXPECT_TRUE(write(kFile, 0, std::string(200'000, 'a')));
  Outcome<void> last;
  for (std::int64_t offset = 200'000; offset < 2'000'000 && last; offset += 100'000) {
    last = write(kFile, offset, std::string(100'000, 'b'));
  }
  EXPECT_EQ(last, refuse(ENOSPC));
  EXPECT_EQ(read(kFile, 199'999, 2), "ab");
  EXPECT_TRUE(write(kFile, 0, "c"));
  EXPECT_TRUE(bstreams().remove(kFile));
  EXPECT_TRUE(write(kFile + 1, 0, std::string(200'000, 'd')));
}

TEST_P(BstreamStoreTest, SpaceComesBack) {
  const Bytes before = bstreams().space().available;
  EXPECT_TRUE(write(kFile, 0, std::string(250'000, 'a')));
  EXPECT_LT(bstreams().space().available, before);
  EXPECT_TRUE(bstreams().remove(kFile));
  EXPECT_EQ(bstreams().space().available, before);
  EXPECT_EQ(bstreams().size(kFile), 0);
}

TEST_P(BstreamStoreTest, OffsetsOutOfRangeAreRefused) {
  EXPECT_EQ(write(kFile, std::int64_t{1} << 60, "x"), refuse(EFBIG));
  EXPECT_EQ(write(kFile, -1, "x"), refuse(EINVAL));
  EXPECT_EQ(bstreams().truncate(kFile, -1), refuse(EINVAL));
}

TEST_P(BstreamStoreTest, AWriteThatEndsAfterTheRemovalLeavesNothing) {
  auto window = run(bstreams().open_window(kFile, 0, 10));
  ASSERT_TRUE(window);
  EXPECT_TRUE(bstreams().remove(kFile));
  EXPECT_TRUE(run(bstreams().commit(std::move(*window))));
  EXPECT_EQ(bstreams().size(kFile), 0);
}

TEST_P(BstreamStoreTest, AWriteKeepsItsDataAcrossAConcurrentTruncation) {
  const Bytes before = bstreams().space().available;
  for (const std::int64_t end : {50, 0}) {
    EXPECT_TRUE(write(kFile, 0, std::string(300'000, 'a')));
    auto window = run(bstreams().open_window(kFile, 100, 1000));
    ASSERT_TRUE(window);
    const std::span<std::byte> bytes = window->parts.front();
    ASSERT_EQ(bytes.size(), 1000U);
    std::memset(bytes.data(), 'x', 500);
    EXPECT_TRUE(bstreams().truncate(kFile, end));
    std::memset(bytes.data() + 500, 'x', 500);
    EXPECT_TRUE(run(bstreams().commit(std::move(*window))));
    EXPECT_EQ(bstreams().size(kFile), 1100);
    const auto kept = static_cast<std::size_t>(end);
    EXPECT_EQ(read(kFile, 0, 1100),
              std::string(kept, 'a') + std::string(100 - kept, '\0') + std::string(1000, 'x'));
  }
  EXPECT_TRUE(bstreams().remove(kFile));
  EXPECT_EQ(bstreams().space().available, before);
}

TEST_P(BstreamStoreTest, FlushedDataAreThereAfterReopening) {
  if (!persists()) GTEST_SKIP() << "the memory engine forgets";
  EXPECT_TRUE(write(kFile, 0, "hello"));
  EXPECT_TRUE(run(bstreams().flush(kFile)));
  const Bytes available = bstreams().space().available;
  open(Bytes{8 * kMiB});
  EXPECT_EQ(read(kFile, 0, 5), "hello");
  EXPECT_EQ(bstreams().space().available, available);
}

TEST_P(BstreamStoreTest, MoreFilesThanMayBeOpenKeepTheirData) {
  for (BstreamId i = 0; i < 700; ++i) EXPECT_TRUE(write(kFile + i, 0, std::to_string(i)));
  for (BstreamId i = 0; i < 700; ++i) {
    const std::string text = std::to_string(i);
    EXPECT_EQ(read(kFile + i, 0, text.size()), text);
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, BstreamStoreTest,
                         testing::Values(EngineKind::memory, EngineKind::directory), engine_name);

}  // namespace
}  // namespace vpfs::dataserver
