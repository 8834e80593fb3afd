#include "protocols/orangefs/message.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

#include "protocols/orangefs/message_trace.h"
#include "test/protocols/orangefs/captured.h"
#include "test/protocols/orangefs/payload_properties.h"

namespace vpfs::orangefs {
namespace {

using test::broken_property;
using test::captured_payloads;
using test::CapturedPayload;

bool decodes(const CapturedPayload& payload, std::span<const std::byte> bytes) {
  return payload.is_request ? decode_request(bytes).has_value()
                            : decode_response(bytes).has_value();
}

DecodeError error_of(const CapturedPayload& payload, std::span<const std::byte> bytes) {
  return payload.is_request ? decode_request(bytes).error() : decode_response(bytes).error();
}

std::uint32_t load32(std::span<const std::byte> bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i > 0; --i) {
    value = value << 8 | std::to_integer<std::uint32_t>(bytes[at + i - 1]);
  }
  return value;
}
void store32(std::span<std::byte> bytes, std::size_t at, std::uint32_t value) {
  for (std::size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<std::byte>(value >> 8 * i);
}

std::vector<WireTrace::Range> length_fields(const CapturedPayload& payload) {
  WireTrace trace;
  if (payload.is_request) {
    EXPECT_TRUE(decode_request(payload.bytes, &trace)) << payload.name;
  } else {
    EXPECT_TRUE(decode_response(payload.bytes, &trace)) << payload.name;
  }
  return trace.lengths;
}

TEST(Message, EveryCapturedPayloadDecodesAndEncodesToTheSameBytes) {
  ASSERT_GT(captured_payloads().size(), 80U);
  for (const CapturedPayload& payload : captured_payloads()) {
    EXPECT_TRUE(decodes(payload, payload.bytes)) << payload.name;
    EXPECT_EQ(broken_property(payload.bytes), std::nullopt) << payload.name;
  }
}

TEST(Message, PayloadCutAtAnyByteIsTruncated) {
  for (const CapturedPayload& payload : captured_payloads()) {
    const std::span<const std::byte> bytes = payload.bytes;
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      ASSERT_FALSE(decodes(payload, bytes.first(size))) << payload.name << " cut at " << size;
    }
    ASSERT_EQ(error_of(payload, bytes.first(bytes.size() - 1)), DecodeError::truncated);
  }
}

TEST(Message, OneByteTooManyIsTrailing) {
  for (const CapturedPayload& payload : captured_payloads()) {
    std::vector<std::byte> longer = payload.bytes;
    longer.push_back(std::byte{0});
    ASSERT_FALSE(decodes(payload, longer)) << payload.name;
    ASSERT_EQ(error_of(payload, longer), DecodeError::trailing_bytes) << payload.name;
  }
}

TEST(Message, LengthThatIsTooLongForTheMessageIsTruncated) {
  for (const CapturedPayload& payload : captured_payloads()) {
    for (const auto& [offset, size] : length_fields(payload)) {
      ASSERT_EQ(size, 4U);
      std::vector<std::byte> damaged = payload.bytes;
      const auto rest = static_cast<std::uint32_t>(damaged.size() - offset - 4);
      for (const std::uint32_t wrong : {rest + 1, 0x7fffffffU, 0x80000000U, 0xffffffffU}) {
        store32(damaged, offset, wrong);
        ASSERT_FALSE(decodes(payload, damaged)) << payload.name << " length at " << offset;
        ASSERT_EQ(error_of(payload, damaged), DecodeError::truncated) << payload.name;
      }
    }
  }
}

// A slightly wrong length may still give a message; the properties then hold for it.
TEST(Message, AnyWrongLengthKeepsTheProperties) {
  for (const CapturedPayload& payload : captured_payloads()) {
    for (const auto& [offset, size] : length_fields(payload)) {
      std::vector<std::byte> damaged = payload.bytes;
      const std::uint32_t right = load32(damaged, offset);
      for (const std::uint32_t wrong :
           {0U, 1U, right - 1, right + 1, right + 4, right + 8, right * 2, right / 2}) {
        store32(damaged, offset, wrong);
        ASSERT_EQ(broken_property(damaged), std::nullopt)
            << payload.name << " length at " << offset << " is " << wrong;
      }
    }
  }
}

TEST(Message, AnyDamagedWordKeepsTheProperties) {
  constexpr std::size_t kFarEnough = 512;  // beyond are only elements of long lists
  for (const CapturedPayload& payload : captured_payloads()) {
    const std::size_t end = std::min(payload.bytes.size(), kFarEnough);
    for (std::size_t offset = 0; offset + 4 <= end; offset += 4) {
      std::vector<std::byte> damaged = payload.bytes;
      for (const std::uint32_t wrong : {0U, 3U, 0xffffffffU}) {
        store32(damaged, offset, wrong);
        ASSERT_EQ(broken_property(damaged), std::nullopt)
            << payload.name << " word at " << offset << " is " << wrong;
      }
    }
  }
}

TEST(Message, OtherProtocolVersionsAreRefusedAndMinorOnesAccepted) {
  std::vector<std::byte> payload;
  encode_request({.body = EmptyRequest{.op = Op::getconfig}}, payload);
  const CapturedPayload request{.name = "GETCONFIG", .is_request = true, .bytes = payload};
  store32(payload, 0, 7004);
  EXPECT_TRUE(decodes(request, payload));
  for (const std::uint32_t version : {0U, 6999U, 8000U}) {
    store32(payload, 0, version);
    EXPECT_EQ(error_of(request, payload), DecodeError::bad_version);
  }
  store32(payload, 0, kProtocolVersion);
  store32(payload, 4, 1);
  EXPECT_EQ(error_of(request, payload), DecodeError::bad_encoding);
}

TEST(Message, OperationsThatNeverPassTheWireAreUnknown) {
  for (const Op op : {Op::invalid, Op::write_completion, Op::perf_update, Op::job_timer,
                      Op::precreate_pool_refiller, static_cast<Op>(52), static_cast<Op>(-1)}) {
    std::vector<std::byte> payload;
    encode_request({.body = EmptyRequest{.op = op}}, payload);
    ASSERT_FALSE(decode_request(payload)) << static_cast<int>(op);
    EXPECT_EQ(decode_request(payload).error(), DecodeError::unknown_operation);
  }
}

// The offsets that docs/wire-orangefs.md gives for the commonest IO request.
TEST(Message, FieldsOfAnIoRequestAreAtTheirDocumentedOffsets) {
  Request request;
  request.capability.issuer = "S:s0";
  request.capability.handles = {0x11, 0x22};
  request.hints = {{.type = HintType::handle, .number = 0x11}};
  request.body = IoRequestBody{.handle = 0x22,
                               .fs_id = 5,
                               .io_type = IoType::write,
                               .server_nr = 6,
                               .server_ct = 7,
                               .distribution = SimpleStripe{.strip_size = 8},
                               .file_request = FileRequest::contiguous_bytes(),
                               .file_request_offset = 9,
                               .aggregate_size = 10};
  std::vector<std::byte> payload;
  encode_request(request, payload);
  ASSERT_EQ(payload.size(), 264U);
  const std::array<std::pair<std::size_t, std::uint32_t>, 16> expected = {{{0, 7000},
                                                                           {4, 2},
                                                                           {8, 3},
                                                                           {64, 0x11},
                                                                           {72, 0x22},
                                                                           {80, 1},
                                                                           {84, 3},
                                                                           {88, 0x11},
                                                                           {96, 0x22},
                                                                           {104, 5},
                                                                           {112, 2},
                                                                           {116, 3},
                                                                           {120, 6},
                                                                           {124, 7},
                                                                           {128, 13},
                                                                           {152, 8}}};
  for (const auto& [offset, value] : expected) EXPECT_EQ(load32(payload, offset), value) << offset;
  EXPECT_EQ(load32(payload, 160), 0U);
  EXPECT_EQ(load32(payload, 248), 9U);
  EXPECT_EQ(load32(payload, 256), 10U);
}

TEST(Message, ModeOfAResponseFollowsItsSize) {
  const auto mode_of = [](std::size_t data) {
    const std::vector<std::byte> message =
        response_message(3, {.body = GetconfigResponse{.config = std::string(data, 'x')}});
    return decode_bmi_header(message)->mode;
  };
  EXPECT_EQ(mode_of(100), BmiMode::eager);
  EXPECT_EQ(mode_of(20000), BmiMode::rendezvous);
}

}  // namespace
}  // namespace vpfs::orangefs
