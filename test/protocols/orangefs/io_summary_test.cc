#include "protocols/orangefs/io_summary.h"

#include <random>

#include <gtest/gtest.h>

#include "protocols/orangefs/attribute_fields.h"
#include "protocols/orangefs/io_fields.h"
#include "protocols/orangefs/management_fields.h"
#include "protocols/orangefs/namespace_fields.h"
#include "test/protocols/orangefs/captured.h"
#include "test/protocols/orangefs/payload_properties.h"
#include "test/protocols/orangefs/random_archive.h"

namespace vpfs::orangefs {
namespace {

using test::captured_payloads;
using test::random_struct;

std::vector<std::byte> encoded(const Request& request) {
  std::vector<std::byte> payload;
  encode_request(request, payload);
  return payload;
}

bool is_io(const test::CapturedPayload& payload) {
  const auto op = peek_operation(payload.bytes);
  return payload.is_request && (op == Op::io || op == Op::small_io);
}

TEST(IoSummary, AgreesWithTheDecoderOnEveryCapturedIo) {
  int seen = 0;
  for (const auto& payload : captured_payloads()) {
    if (!is_io(payload)) continue;
    ++seen;
    EXPECT_TRUE(summarise_io(payload.bytes)) << payload.name;
    EXPECT_EQ(test::broken_property(payload.bytes), std::nullopt) << payload.name;
  }
  EXPECT_GE(seen, 5);
}

TEST(IoSummary, AgreesWithTheDecoderOnEveryByteThatIsWrongOrMissing) {
  for (const auto& payload : captured_payloads()) {
    if (!is_io(payload)) continue;
    const std::size_t end = std::min<std::size_t>(payload.bytes.size(), 400);
    for (std::size_t at = 0; at < end; ++at) {
      ASSERT_EQ(test::broken_property(std::span(payload.bytes).first(at)), std::nullopt) << at;
      for (const unsigned flip : {0x01U, 0x80U, 0xffU}) {
        std::vector<std::byte> damaged = payload.bytes;
        damaged[at] ^= static_cast<std::byte>(flip);
        ASSERT_EQ(test::broken_property(damaged), std::nullopt) << payload.name << " at " << at;
      }
    }
  }
}

TEST(IoSummary, FindsTheHandleOfAMetadataRequest) {
  EXPECT_EQ(peek_handle(encoded({.body = TruncateRequest{.handle = 5, .fs_id = 1}})), 5U);
  EXPECT_EQ(peek_handle(encoded({.body = RmdirentRequest{.name = "a", .dirdata_handle = 6}})), 6U);
  EXPECT_EQ(peek_handle(encoded({.body = LookupPathRequest{.path = "a", .starting_handle = 7}})),
            7U);
  EXPECT_EQ(peek_handle(encoded({.body = StatfsRequest{.fs_id = 1}})), 0U);
  EXPECT_EQ(peek_handle({}), 0U);
}

TEST(IoSummary, FindsHints) {
  const Request request{.hints = {{.type = HintType::handle, .number = 1ULL << 40},
                                  {.key = "app", .text = "first"},
                                  {.raw_type = 99, .key = "jobid", .text = "job-7"},
                                  {.type = HintType::client_id, .number = 12},
                                  {.key = "app", .text = "second"}},
                        .body = IoRequestBody{.file_request = FileRequest::contiguous_bytes()}};
  const std::vector<std::byte> payload = encoded(request);
  const auto summary = summarise_io(payload);
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->hints.named("app"), "first");
  EXPECT_EQ(summary->hints.named("jobid"), "job-7");
  EXPECT_EQ(summary->hints.named("job"), std::nullopt);
  EXPECT_EQ(summary->hints.number(HintType::handle), 1ULL << 40);
  EXPECT_EQ(summary->hints.number(HintType::client_id), 12U);
  EXPECT_EQ(summary->hints.number(HintType::rank), std::nullopt);
  EXPECT_EQ(HintView().named("app"), std::nullopt);
}

TEST(IoSummary, EqualHintBytesAreEqualHints) {
  const auto payload_with = [](std::string job) {
    return encoded({.hints = {{.key = "jobid", .text = std::move(job)}},
                    .body = IoRequestBody{.file_request = FileRequest::contiguous_bytes()}});
  };
  const auto hints_of = [](const std::vector<std::byte>& payload) {
    const auto bytes = summarise_io(payload)->hints.bytes();
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  const auto one = payload_with("1");
  const auto two = payload_with("2");
  EXPECT_EQ(hints_of(one), hints_of(payload_with("1")));
  EXPECT_NE(hints_of(one), hints_of(two));
}

TEST(IoSummary, OtherRequestsAreNotSummarised) {
  const std::vector<std::byte> payload = encoded({.body = FlushRequest{.handle = 1}});
  ASSERT_FALSE(summarise_io(payload));
  EXPECT_EQ(summarise_io(payload).error(), DecodeError::unknown_operation);
}

TEST(IoSummary, PeeksAtTheOperation) {
  const std::vector<std::byte> payload = encoded({.body = FlushRequest{.handle = 1}});
  EXPECT_EQ(peek_operation(payload), Op::flush);
  EXPECT_EQ(peek_operation(std::span(payload).first(12)), Op::flush);
  EXPECT_EQ(peek_operation(std::span(payload).first(11)), std::nullopt);
  std::vector<std::byte> other_version = payload;
  other_version[1] = std::byte{0};
  EXPECT_EQ(peek_operation(other_version), std::nullopt);
}

template <typename Body>
void expect_uid_is_found() {
  std::mt19937_64 random(3);
  for (int round = 0; round < 20; ++round) {
    const Body body = random_struct<Body>(random);
    const std::vector<std::byte> payload = encoded({.body = body});
    EXPECT_EQ(peek_uid(payload), body.credential.uid) << name(*peek_operation(payload));
    EXPECT_EQ(peek_uid(std::span(payload).first(payload.size() - 1)), std::nullopt);
  }
}

TEST(IoSummary, FindsTheUidWhereverACredentialIs) {
  expect_uid_is_found<CreateRequest>();
  expect_uid_is_found<RemoveRequest>();
  expect_uid_is_found<GetattrRequest>();
  expect_uid_is_found<SetattrRequest>();
  expect_uid_is_found<LookupPathRequest>();
  expect_uid_is_found<CrdirentRequest>();
  expect_uid_is_found<MkdirRequest>();
  expect_uid_is_found<UnstuffRequest>();
  expect_uid_is_found<TreeRemoveRequest>();
  expect_uid_is_found<TreeGetFileSizeRequest>();
  expect_uid_is_found<TreeGetattrRequest>();
  expect_uid_is_found<TreeSetattrRequest>();
}

TEST(IoSummary, IoAndReaddirHaveNoUid) {
  EXPECT_EQ(peek_uid(encoded({.body = ReaddirRequest{}})), std::nullopt);
  EXPECT_EQ(
      peek_uid(encoded({.body = IoRequestBody{.file_request = FileRequest::contiguous_bytes()}})),
      std::nullopt);
}

}  // namespace
}  // namespace vpfs::orangefs
