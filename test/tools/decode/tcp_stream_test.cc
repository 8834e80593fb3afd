#include "tools/decode/tcp_stream.h"

#include <algorithm>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

namespace vpfs {
namespace {

std::vector<std::byte> numbered(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 256);
  return bytes;
}

void append(std::vector<std::byte>& to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

TEST(TcpStream, PutsOverlappingSegmentsInAnyOrderTogether) {
  const std::vector<std::byte> sent = numbered(5000);
  std::mt19937_64 random(2);
  for (int round = 0; round < 50; ++round) {
    // Cover the stream with segments that overlap, and send some twice; the start is near the wrap.
    const std::uint32_t start = 0xfffffff0U + static_cast<std::uint32_t>(random() % 32);
    std::vector<TcpSegment> segments;
    for (std::size_t at = 0; at < sent.size();) {
      const std::size_t size = std::min<std::size_t>(random() % 300 + 1, sent.size() - at);
      segments.push_back({.sequence = start + static_cast<std::uint32_t>(at),
                          .payload = std::span(sent).subspan(at, size)});
      if (random() % 3 == 0) segments.push_back(segments.back());
      at += size - (random() % 2 == 0 ? size / 3 : 0);
    }
    std::shuffle(segments.begin(), segments.end(), random);
    TcpStream stream;
    std::vector<std::byte> received;
    append(received, stream.add({.sequence = start - 1, .syn = true}));
    for (const TcpSegment& segment : segments) append(received, stream.add(segment));
    EXPECT_EQ(received, sent);
    EXPECT_EQ(stream.size(), sent.size());
    EXPECT_FALSE(stream.gap());
  }
}

TEST(TcpStream, MissingBytesAreAGap) {
  const std::vector<std::byte> sent = numbered(100);
  TcpStream stream;
  (void)stream.add({.sequence = 1, .payload = std::span(sent).first(10)});
  EXPECT_TRUE(stream.add({.sequence = 41, .payload = std::span(sent).subspan(40, 20)}).empty());
  const auto gap = stream.gap();
  ASSERT_TRUE(gap);
  EXPECT_EQ(gap->offset, 10U);
  EXPECT_EQ(gap->missing, 30U);
  EXPECT_EQ(gap->bytes_beyond, 20U);
  EXPECT_EQ(stream.add({.sequence = 11, .payload = std::span(sent).subspan(10, 30)}).size(), 50U);
  EXPECT_FALSE(stream.gap());
}

TEST(TcpStream, RetransmissionsGiveNothing) {
  const std::vector<std::byte> sent = numbered(100);
  TcpStream stream;
  EXPECT_EQ(stream.add({.sequence = 1, .payload = sent}).size(), 100U);
  EXPECT_TRUE(stream.add({.sequence = 1, .payload = sent}).empty());
  EXPECT_TRUE(stream.add({.sequence = 51, .payload = std::span(sent).subspan(50)}).empty());
  EXPECT_FALSE(stream.gap());
}

TEST(TcpStream, AnotherSynIsAnotherBeginning) {
  TcpStream stream;
  const TcpSegment syn{.sequence = 77, .syn = true};
  EXPECT_FALSE(stream.is_other_beginning(syn));
  (void)stream.add(syn);
  EXPECT_FALSE(stream.is_other_beginning(syn));
  EXPECT_TRUE(stream.is_other_beginning({.sequence = 78, .syn = true}));
}

}  // namespace
}  // namespace vpfs
