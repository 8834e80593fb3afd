#include "base/byte_writer.h"

#include <gtest/gtest.h>

#include "base/byte_reader.h"

namespace vpfs {
namespace {

TEST(ByteWriter, WritesWhatByteReaderReads) {
  std::vector<std::byte> out;
  ByteWriter writer(out);
  writer.u8(0xfe);
  writer.u16(0x1234);
  writer.u32(0xdeadbeef);
  writer.u64(0x0123456789abcdefU);
  writer.i32(-2);
  writer.i64(INT64_MIN);
  writer.text("ab");
  ByteReader in(out);
  EXPECT_EQ(in.u8(), 0xfe);
  EXPECT_EQ(in.u16(), 0x1234);
  EXPECT_EQ(in.u32(), 0xdeadbeefU);
  EXPECT_EQ(in.u64(), 0x0123456789abcdefU);
  EXPECT_EQ(in.i32(), -2);
  EXPECT_EQ(in.i64(), INT64_MIN);
  EXPECT_EQ(in.text(2), "ab");
  EXPECT_EQ(in.remaining(), 0U);
  EXPECT_FALSE(in.failed());
}

TEST(ByteWriter, TheLowByteComesFirst) {
  std::vector<std::byte> out;
  ByteWriter(out).u32(0x04030201);
  const std::vector<std::byte> expected = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  EXPECT_EQ(out, expected);
}

TEST(ByteWriter, AlignsWithZerosFromWhereItBegan) {
  std::vector<std::byte> out(3, std::byte{0x55});
  ByteWriter writer(out);
  writer.align(8);
  EXPECT_EQ(writer.offset(), 0U);
  writer.u8(1);
  writer.align(8);
  EXPECT_EQ(writer.offset(), 8U);
  EXPECT_EQ(out.size(), 11U);
  for (std::size_t i = 4; i < out.size(); ++i) EXPECT_EQ(out[i], std::byte{0});
}

}  // namespace
}  // namespace vpfs
