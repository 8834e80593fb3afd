#include "tools/decode/pcap_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/tools/decode/capture_builder.h"

namespace vpfs {
namespace {

using test::CaptureBuilder;
using test::write_file;
using ::testing::HasSubstr;

const std::vector<std::byte> kPacket(60, std::byte{1});

std::string error_of(std::span<const std::byte> bytes) {
  auto reader = PcapReader::open(write_file("damaged.pcap", bytes));
  if (!reader) return reader.error().message;
  for (;;) {
    const auto packet = reader->next();
    if (!packet) return packet.error().message;
    if (!packet->has_value()) return "";
  }
}

TEST(PcapReader, ReadsBothByteOrdersAndClocks) {
  for (const bool big_endian : {false, true}) {
    for (const bool nanoseconds : {false, true}) {
      CaptureBuilder capture(
          {.link = LinkType::linux_sll2, .big_endian = big_endian, .nanoseconds = nanoseconds});
      capture.add_packet(kPacket, 60).add_packet(kPacket, 61);
      auto reader = PcapReader::open(write_file("a.pcap", capture.bytes()));
      ASSERT_TRUE(reader) << reader.error().message;
      EXPECT_EQ(reader->link_type(), LinkType::linux_sll2);
      const auto first = reader->next();
      ASSERT_TRUE(first && first->has_value());
      EXPECT_EQ((*first)->time, std::chrono::seconds(1000));
      EXPECT_FALSE((*first)->cut);
      const auto second = reader->next();
      ASSERT_TRUE(second && second->has_value());
      EXPECT_EQ((*second)->time, std::chrono::seconds(1000) + std::chrono::milliseconds(1));
      EXPECT_TRUE((*second)->cut);
      EXPECT_TRUE(std::ranges::equal((*second)->bytes, kPacket));
      const auto end = reader->next();
      ASSERT_TRUE(end);
      EXPECT_FALSE(end->has_value());
    }
  }
}

TEST(PcapReader, FileThatEndsAnywhereIsOneClearError) {
  CaptureBuilder capture;
  capture.add_packet(kPacket, kPacket.size());
  const std::span<const std::byte> bytes = capture.bytes();
  EXPECT_EQ(error_of(bytes), "");
  EXPECT_EQ(error_of(bytes.first(24)), "");  // a capture without packets
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    if (size == 24) continue;
    ASSERT_THAT(error_of(bytes.first(size)), HasSubstr("damaged.pcap: ")) << size;
  }
}

TEST(PcapReader, FilesThatAreNoCaptureSayWhatTheyAre) {
  EXPECT_THAT(error_of({}), HasSubstr("the file is empty"));
  const std::vector<std::byte> text(100, std::byte{'x'});
  EXPECT_THAT(error_of(text), HasSubstr("not a pcap file"));
  const std::vector<std::byte> pcapng = {std::byte{0x0a}, std::byte{0x0d}, std::byte{0x0d},
                                         std::byte{0x0a}};
  EXPECT_THAT(error_of(pcapng), HasSubstr("editcap"));
  const auto missing = PcapReader::open("/no/such/file.pcap");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message, "/no/such/file.pcap: cannot open: No such file or directory");
}

TEST(PcapReader, UnknownLinkTypesAreNamed) {
  const CaptureBuilder capture({.link = static_cast<LinkType>(147)});
  EXPECT_THAT(error_of(capture.bytes()), HasSubstr("unknown link type 147"));
}

TEST(PcapReader, ImpossiblePacketSizeIsNamed) {
  CaptureBuilder capture;
  capture.add_packet(kPacket, kPacket.size());
  std::vector<std::byte> bytes = capture.bytes();
  bytes[24 + 8 + 3] = std::byte{0x7f};
  EXPECT_THAT(error_of(bytes), HasSubstr("packet 1: impossible size"));
}

}  // namespace
}  // namespace vpfs
