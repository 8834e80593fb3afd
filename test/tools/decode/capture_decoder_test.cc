#include "tools/decode/capture_decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "protocols/orangefs/message.h"
#include "test/tools/decode/capture_builder.h"

namespace vpfs {
namespace {

using orangefs::Op;
using test::ipv4_host;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

const HostPort kClient = ipv4_host(1, 40000);
const HostPort kServer = ipv4_host(2, 3334);

const std::vector<std::byte> kRequest =
    orangefs::request_message(1, {.body = orangefs::EmptyRequest{.op = Op::mgmt_noop}});
const std::vector<std::byte> kResponse =
    orangefs::response_message(1, {.body = orangefs::EmptyResponse{.op = Op::mgmt_noop}});

struct Told {
  CaptureTotals totals;
  std::vector<std::string> about;
};

Told tell(const std::vector<TcpSegment>& segments, CaptureDecoder::Options options = {}) {
  Told told;
  CaptureDecoder decoder(std::move(options), [&](const CaptureDecoder::Line& line) {
    if (line.entry == nullptr) told.about.push_back(line.about);
  });
  for (const TcpSegment& segment : segments) {
    const auto packet = test::packet_of(LinkType::ethernet, segment);
    decoder.add(LinkType::ethernet, {.bytes = packet});
  }
  told.totals = decoder.finish();
  return told;
}

TcpSegment syn(const HostPort& from, const HostPort& to, std::uint32_t sequence) {
  return {.from = from, .to = to, .sequence = sequence, .syn = true};
}
TcpSegment data(const HostPort& from, const HostPort& to, std::uint32_t sequence,
                std::span<const std::byte> payload) {
  return {.from = from, .to = to, .sequence = sequence, .ack = true, .payload = payload};
}
TcpSegment accepted(const HostPort& from, const HostPort& to, std::uint32_t sequence) {
  return {.from = from, .to = to, .sequence = sequence, .syn = true, .ack = true};
}

TEST(CaptureDecoder, TellsAConnectionFromItsBeginning) {
  const Told told =
      tell({syn(kClient, kServer, 9), accepted(kServer, kClient, 99),
            data(kClient, kServer, 10, kRequest), data(kServer, kClient, 100, kResponse)});
  EXPECT_TRUE(told.totals.ok());
  EXPECT_EQ(told.totals.connections, 1U);
  EXPECT_EQ(told.totals.stream_bytes, kRequest.size() + kResponse.size());
  EXPECT_THAT(told.totals.messages,
              ElementsAre(Pair("REQ MGMT_NOOP UNEXP", 1), Pair("RESP MGMT_NOOP EAGER", 1)));
  EXPECT_THAT(told.about, ElementsAre("10.0.0.1:40000 -> 10.0.0.2:3334 orangefs"));
}

TEST(CaptureDecoder, TellsAConnectionThatBeganBeforeFromItsRequests) {
  // The client has the lower port here: only the bytes tell.
  const HostPort client = ipv4_host(1, 1000);
  const Told told =
      tell({data(client, kServer, 10, kRequest), data(kServer, client, 100, kResponse)});
  EXPECT_TRUE(told.totals.ok());
  EXPECT_THAT(told.about,
              ElementsAre("10.0.0.1:1000 -> 10.0.0.2:3334 orangefs, began before the capture"));
}

TEST(CaptureDecoder, SamePortsAgainAreAnotherConnection) {
  const Told told = tell({syn(kClient, kServer, 9), data(kClient, kServer, 10, kRequest),
                          syn(kClient, kServer, 5000), data(kClient, kServer, 5001, kRequest)});
  EXPECT_TRUE(told.totals.ok());
  EXPECT_EQ(told.totals.connections, 2U);
  EXPECT_EQ(told.totals.stream_bytes, 2 * kRequest.size());
}

TEST(CaptureDecoder, MissingSegmentIsAFault) {
  const std::span<const std::byte> request(kRequest);
  const Told told = tell({syn(kClient, kServer, 9), data(kClient, kServer, 10, request.first(30)),
                          data(kClient, kServer, 50, request.subspan(40))});
  EXPECT_FALSE(told.totals.ok());
  EXPECT_THAT(told.about.back(), HasSubstr("10 bytes are missing in the stream of "
                                           "10.0.0.1:40000 at offset 30"));
}

TEST(CaptureDecoder, BytesOfAnotherProtocolAreAFaultUnlessPortsLeaveThemOut) {
  const std::vector<std::byte> text(50, std::byte{'x'});
  const HostPort other = ipv4_host(3, 22);
  const std::vector<TcpSegment> segments = {syn(kClient, kServer, 9),
                                            data(kClient, kServer, 10, kRequest),
                                            data(kClient, other, 10, text)};
  const Told all = tell(segments);
  EXPECT_FALSE(all.totals.ok());
  EXPECT_THAT(all.about.back(), HasSubstr("50 bytes of no protocol that vpfs knows"));
  const Told some = tell(segments, {.ports = {3334}});
  EXPECT_TRUE(some.totals.ok());
  EXPECT_EQ(some.totals.connections, 1U);
}

TEST(CaptureDecoder, FewerBytesThanTellTheProtocolAreAFault) {
  const Told told =
      tell({syn(kClient, kServer, 9), data(kClient, kServer, 10, std::span(kRequest).first(23))});
  EXPECT_FALSE(told.totals.ok());
  EXPECT_EQ(told.totals.decoded_bytes, 0U);
  EXPECT_EQ(told.totals.stream_bytes, 23U);
}

TEST(CaptureDecoder, MessageInManySegmentsIsOneMessage) {
  std::vector<TcpSegment> segments = {syn(kClient, kServer, 9)};
  for (std::size_t i = 0; i < kRequest.size(); ++i) {
    segments.push_back(data(kClient, kServer, 10 + static_cast<std::uint32_t>(i),
                            std::span(kRequest).subspan(i, 1)));
  }
  EXPECT_TRUE(tell(segments).totals.ok());
  std::reverse(segments.begin() + 1, segments.end());
  EXPECT_TRUE(tell(segments).totals.ok());
}

}  // namespace
}  // namespace vpfs
