#include "tools/decode/tcp_segment.h"

#include <gtest/gtest.h>

#include "test/tools/decode/capture_builder.h"

namespace vpfs {
namespace {

using test::ipv4_host;
using test::ipv6_host;
using test::packet_of;

const std::vector<std::byte> kPayload(33, std::byte{0x5a});

TcpSegment segment_between(HostPort from, HostPort to) {
  return {.from = from, .to = to, .sequence = 0xfedcba98, .ack = true, .payload = kPayload};
}

TEST(TcpSegment, IsFoundInEveryLinkTypeAndIpVersion) {
  for (const LinkType link : {LinkType::ethernet, LinkType::raw_ip, LinkType::loopback,
                              LinkType::linux_sll, LinkType::linux_sll2}) {
    for (const TcpSegment& sent : {segment_between(ipv4_host(1, 40000), ipv4_host(2, 3334)),
                                   segment_between(ipv6_host(1, 40000), ipv6_host(2, 3334))}) {
      const std::vector<std::byte> packet = packet_of(link, sent);
      const auto found = parse_tcp(link, packet);
      ASSERT_TRUE(found) << static_cast<int>(link);
      EXPECT_EQ(found->from, sent.from);
      EXPECT_EQ(found->to, sent.to);
      EXPECT_EQ(found->sequence, sent.sequence);
      EXPECT_TRUE(found->ack);
      EXPECT_FALSE(found->syn);
      EXPECT_TRUE(std::ranges::equal(found->payload, kPayload));
    }
  }
}

TEST(TcpSegment, PaddingOfTheFrameIsNotPayload) {
  auto packet = packet_of(LinkType::ethernet, segment_between(ipv4_host(1, 1), ipv4_host(2, 2)));
  packet.resize(packet.size() + 6);
  EXPECT_EQ(parse_tcp(LinkType::ethernet, packet)->payload.size(), kPayload.size());
}

TEST(TcpSegment, VlanTagsAreSkipped) {
  auto packet = packet_of(LinkType::ethernet, segment_between(ipv4_host(1, 1), ipv4_host(2, 2)));
  const std::vector<std::byte> tag = {std::byte{0x81}, std::byte{0}, std::byte{0}, std::byte{7}};
  packet.insert(packet.begin() + 12, tag.begin(), tag.end());
  EXPECT_TRUE(parse_tcp(LinkType::ethernet, packet));
}

TEST(TcpSegment, CutPacketsAreShorterOrNone) {
  for (const TcpSegment& sent : {segment_between(ipv4_host(1, 1), ipv4_host(2, 2)),
                                 segment_between(ipv6_host(1, 1), ipv6_host(2, 2))}) {
    const auto packet = packet_of(LinkType::ethernet, sent);
    for (std::size_t size = 0; size < packet.size(); ++size) {
      const auto found = parse_tcp(LinkType::ethernet, std::span(packet).first(size));
      const std::size_t headers = packet.size() - kPayload.size();
      ASSERT_EQ(found.has_value(), size >= headers) << size;
      if (found) ASSERT_EQ(found->payload.size(), size - headers);
    }
  }
}

TEST(TcpSegment, OtherTrafficIsNone) {
  auto packet = packet_of(LinkType::ethernet, segment_between(ipv4_host(1, 1), ipv4_host(2, 2)));
  auto udp = packet;
  udp[14 + 9] = std::byte{17};
  EXPECT_FALSE(parse_tcp(LinkType::ethernet, udp));
  auto arp = packet;
  arp[13] = std::byte{6};
  EXPECT_FALSE(parse_tcp(LinkType::ethernet, arp));
  auto fragment = packet;
  fragment[14 + 6] = std::byte{0x20};
  EXPECT_FALSE(parse_tcp(LinkType::ethernet, fragment));
}

TEST(TcpSegment, HostsPrintWithTheirPorts) {
  EXPECT_EQ(to_string(ipv4_host(9, 3334)), "10.0.0.9:3334");
  EXPECT_EQ(to_string(ipv6_host(9, 3334)), "[fe80:0:0:0:0:0:0:9]:3334");
}

}  // namespace
}  // namespace vpfs
