#include "tools/load/chunks.h"

#include <gtest/gtest.h>

namespace vpfs::load {
namespace {

using Parts = std::vector<ChunkPart>;

TEST(Chunks, AFileOfOneTargetIsNotDivided) {
  EXPECT_EQ(chunk_parts(100, 3 * kChunk, 1), (Parts{{0, 100, 0, 3 * kChunk}}));
}

TEST(Chunks, GoToTheTargetsInTurn) {
  EXPECT_EQ(chunk_parts(0, 4 * kChunk, 3), (Parts{{0, 0, 0, kChunk},
                                                  {1, 0, kChunk, kChunk},
                                                  {2, 0, 2 * kChunk, kChunk},
                                                  {0, kChunk, 3 * kChunk, kChunk}}));
}

TEST(Chunks, ARequestMayBeginAndEndWithinThem) {
  EXPECT_EQ(chunk_parts(5 * kChunk - 10, 30, 2),
            (Parts{{0, 3 * kChunk - 10, 0, 10}, {1, 2 * kChunk, 10, 20}}));
  EXPECT_EQ(chunk_parts(7 * kChunk + 10, 30, 4), (Parts{{3, kChunk + 10, 0, 30}}));
}

}  // namespace
}  // namespace vpfs::load
