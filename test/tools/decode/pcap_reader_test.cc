#include "tools/decode/pcap_reader.h"

#include <cstring>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

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

// Two packets of 60 bytes, a millisecond apart; of the second a byte was left out.
void expect_two_packets(const std::string& path, LinkType link) {
  auto reader = PcapReader::open(path);
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ(reader->link_type(), link);
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
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_FALSE(end->has_value());
}

std::string write_gzip(std::string_view name, std::span<const std::byte> bytes) {
  const std::string path = write_file(name, {});
  const gzFile file = gzopen(path.c_str(), "wb");
  EXPECT_EQ(gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())),
            static_cast<int>(bytes.size()));
  EXPECT_EQ(gzclose(file), Z_OK);
  return path;
}

TEST(PcapReader, ReadsBothFormatsByteOrdersAndClocksCompressedOrNot) {
  for (const bool pcapng : {false, true}) {
    for (const bool big_endian : {false, true}) {
      for (const bool nanoseconds : {false, true}) {
        SCOPED_TRACE(testing::Message() << pcapng << big_endian << nanoseconds);
        CaptureBuilder capture({.link = LinkType::linux_sll2,
                                .big_endian = big_endian,
                                .nanoseconds = nanoseconds,
                                .pcapng = pcapng});
        capture.add_packet(kPacket, 60).add_packet(kPacket, 61);
        expect_two_packets(write_file("a.pcap", capture.bytes()), LinkType::linux_sll2);
        expect_two_packets(write_gzip("a.pcap.gz", capture.bytes()), LinkType::linux_sll2);
      }
    }
  }
}

TEST(PcapReader, ReadsEveryLinkTypeThatThePacketsCanHave) {
  for (const LinkType link : {LinkType::ethernet, LinkType::raw_ip, LinkType::loopback,
                              LinkType::linux_sll, LinkType::linux_sll2}) {
    CaptureBuilder capture({.link = link});
    capture.add_packet(kPacket, 60).add_packet(kPacket, 61);
    expect_two_packets(write_file("a.pcap", capture.bytes()), link);
  }
}

TEST(PcapReader, FileThatEndsAnywhereIsOneClearError) {
  for (const bool pcapng : {false, true}) {
    const CaptureBuilder empty({.pcapng = pcapng});
    const std::size_t header = empty.bytes().size();
    CaptureBuilder capture({.pcapng = pcapng});
    capture.add_packet(kPacket, kPacket.size());
    const std::span<const std::byte> bytes = capture.bytes();
    EXPECT_EQ(error_of(bytes), "");
    EXPECT_EQ(error_of(bytes.first(header)), "");  // a capture without packets
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      if (size == header) continue;
      ASSERT_THAT(error_of(bytes.first(size)),
                  HasSubstr(size < header ? "damaged.pcap: " : "damaged.pcap: packet 1: "))
          << size;
    }
  }
}

TEST(PcapReader, GzipFileThatEndsTooEarlyOrIsDamagedIsAnError) {
  CaptureBuilder capture;
  for (int i = 0; i < 100; ++i) capture.add_packet(kPacket, kPacket.size());
  std::ifstream file(write_gzip("a.pcap.gz", capture.bytes()), std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  std::vector<std::byte> gzip(text.size());
  std::memcpy(gzip.data(), text.data(), text.size());
  EXPECT_EQ(error_of(gzip), "");
  EXPECT_THAT(error_of(std::span(gzip).first(gzip.size() - 1)),
              HasSubstr("unexpected end of file"));
  gzip[gzip.size() - 5] ^= std::byte{1};
  EXPECT_THAT(error_of(gzip), HasSubstr("incorrect"));
}

TEST(PcapReader, FilesThatAreNotACaptureSayWhatTheyAre) {
  EXPECT_THAT(error_of({}), HasSubstr("the file is empty"));
  const std::vector<std::byte> text(100, std::byte{'x'});
  EXPECT_THAT(error_of(text), HasSubstr("not a capture"));
  const auto missing = PcapReader::open("/no/such/file.pcap");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message, "/no/such/file.pcap: cannot open: No such file or directory");
}

TEST(PcapReader, UnknownLinkTypesAreNamed) {
  // IEEE 802.11 with radiotap headers.
  const CaptureBuilder capture({.link_number = 127});
  EXPECT_THAT(error_of(capture.bytes()),
              HasSubstr("damaged.pcap: unknown link type 127 (IEEE802_11_RADIO)"));
}

TEST(PcapReader, ImpossiblePacketSizeIsNamed) {
  CaptureBuilder capture;
  capture.add_packet(kPacket, kPacket.size());
  std::vector<std::byte> bytes = capture.bytes();
  bytes[24 + 8 + 3] = std::byte{0x7f};
  EXPECT_THAT(error_of(bytes), HasSubstr("packet 1: invalid packet capture length"));
}

TEST(PcapReader, BlocksOfPcapngWithImpossibleLengthsAreErrors) {
  CaptureBuilder capture({.pcapng = true});
  const std::size_t header = capture.bytes().size();
  capture.add_packet(kPacket, kPacket.size());
  for (const std::size_t at : {header + 4, header + 20}) {  // of the block, and of the packet
    for (const std::byte value : {std::byte{0x00}, std::byte{0xff}}) {
      std::vector<std::byte> bytes = capture.bytes();
      for (std::size_t i = 0; i < 4; ++i) bytes[at + i] = value;
      if (at == header + 20 && value == std::byte{0x00}) continue;  // a packet without bytes
      EXPECT_THAT(error_of(bytes), HasSubstr("damaged.pcap: packet 1: ")) << at;
    }
  }
}

}  // namespace
}  // namespace vpfs
