#include "base/byte_reader.h"

#include <array>
#include <cstddef>

#include <gtest/gtest.h>

namespace vpfs {
namespace {

constexpr std::array<std::byte, 16> kBytes = {
    std::byte{0x01}, std::byte{0x02}, std::byte{0x03}, std::byte{0x04},
    std::byte{0x05}, std::byte{0x06}, std::byte{0x07}, std::byte{0x88},
    std::byte{'a'},  std::byte{'b'},  std::byte{0xff}, std::byte{0xff},
    std::byte{0xff}, std::byte{0xff}, std::byte{0xfe}, std::byte{0xff}};

TEST(ByteReader, ReadsLittleEndian) {
  ByteReader in(kBytes);
  EXPECT_EQ(in.u8(), 0x01);
  EXPECT_EQ(in.u16(), 0x0302);
  EXPECT_EQ(in.u32(), 0x07060504U);
  EXPECT_EQ(in.offset(), 7U);
  EXPECT_EQ(ByteReader(kBytes).u64(), 0x8807060504030201U);
  EXPECT_FALSE(in.failed());
}

TEST(ByteReader, ReadsNegativeIntegers) {
  ByteReader in(kBytes);
  in.skip(10);
  EXPECT_EQ(in.i32(), -1);
  in = ByteReader(std::span(kBytes).subspan(8));
  EXPECT_EQ(in.i64(), static_cast<std::int64_t>(0xfffeffffffff6261U));
}

TEST(ByteReader, ReadsRunsAndText) {
  ByteReader in(kBytes);
  EXPECT_EQ(in.bytes(8).size(), 8U);
  EXPECT_EQ(in.text(2), "ab");
  EXPECT_EQ(in.remaining(), 6U);
}

TEST(ByteReader, AReadPastTheEndConsumesNothingAndSticks) {
  ByteReader in(kBytes);
  in.skip(13);
  EXPECT_EQ(in.u32(), 0U);
  EXPECT_TRUE(in.failed());
  EXPECT_EQ(in.offset(), 13U);
  EXPECT_EQ(in.remaining(), 0U);
  EXPECT_EQ(in.u8(), 0U) << "there were bytes left, but the reader has failed";
  EXPECT_TRUE(in.bytes(1).empty());
}

TEST(ByteReader, AHugeLengthFails) {
  ByteReader in(kBytes);
  (void)in.u8();
  EXPECT_TRUE(in.bytes(SIZE_MAX).empty());
  EXPECT_TRUE(in.failed());
}

TEST(ByteReader, AlignsFromTheStartOfTheBuffer) {
  ByteReader in(kBytes);
  in.align(8);
  EXPECT_EQ(in.offset(), 0U);
  (void)in.u8();
  in.align(8);
  EXPECT_EQ(in.offset(), 8U);
  in.skip(8);
  in.align(8);
  EXPECT_EQ(in.offset(), 16U);
  EXPECT_FALSE(in.failed());
}

TEST(ByteReader, AligningPastTheEndFails) {
  ByteReader in(std::span(kBytes).first(5));
  in.skip(5);
  in.align(8);
  EXPECT_TRUE(in.failed());
}

TEST(ByteReader, AnEmptyBufferFailsOnTheFirstRead) {
  ByteReader in(std::span<const std::byte>{});
  EXPECT_EQ(in.remaining(), 0U);
  EXPECT_TRUE(in.bytes(0).empty());
  EXPECT_FALSE(in.failed());
  EXPECT_EQ(in.u8(), 0U);
  EXPECT_TRUE(in.failed());
}

}  // namespace
}  // namespace vpfs
