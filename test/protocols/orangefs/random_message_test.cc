#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "protocols/orangefs/attribute_fields.h"
#include "protocols/orangefs/io_fields.h"
#include "protocols/orangefs/management_fields.h"
#include "protocols/orangefs/message.h"
#include "protocols/orangefs/namespace_fields.h"
#include "protocols/orangefs/operation_table.h"
#include "test/protocols/orangefs/payload_properties.h"
#include "test/protocols/orangefs/random_archive.h"

// Messages of every operation, including operations that the captures lack.
namespace vpfs::orangefs {
namespace {

using test::random_struct;

constexpr int kRounds = 40;

template <typename Variant, typename Use, std::size_t... kIndexes>
void each_alternative(Use use, std::index_sequence<kIndexes...>) {
  (use(std::type_identity<std::variant_alternative_t<kIndexes, Variant>>()), ...);
}

// Calls use(body) with random bodies of every operation that Variant knows.
template <typename Variant, typename Use>
void each_random_body(Use use) {
  std::mt19937_64 random(20240817);
  each_alternative<Variant>(
      [&]<typename Body>(std::type_identity<Body>) {
        for (const Op op : kOpsOf<Body>) {
          for (int round = 0; round < kRounds; ++round) {
            Body body = random_struct<Body>(random);
            if constexpr (requires { body.op; }) body.op = op;
            use(random, op, std::move(body));
          }
        }
      },
      std::make_index_sequence<std::variant_size_v<Variant>>());
}

TEST(RandomMessage, RequestOfEveryOperationSurvivesTheWire) {
  std::set<Op> seen;
  each_random_body<RequestBody>([&](std::mt19937_64& random, Op op, auto body) {
    Request request{.capability = random_struct<Capability>(random),
                    .hints = random_struct<Hints>(random),
                    .body = std::move(body)};
    std::vector<std::byte> payload;
    encode_request(request, payload);
    const auto decoded = decode_request(payload);
    ASSERT_TRUE(decoded) << name(op) << ": " << describe(decoded.error());
    EXPECT_EQ(*decoded, request) << name(op);
    EXPECT_EQ(op_of(decoded->body), op);
    EXPECT_EQ(test::broken_property(payload), std::nullopt) << name(op);
    seen.insert(op);
  });
  EXPECT_EQ(seen.size(), 47U);  // of 0 to 51 all but 0, 14, 19, 27 and 37
}

TEST(RandomMessage, ResponseOfEveryOperationSurvivesTheWire) {
  std::set<Op> seen;
  each_random_body<ResponseBody>([&](std::mt19937_64&, Op op, auto body) {
    Response response{.body = std::move(body)};
    std::vector<std::byte> payload;
    encode_response(response, payload);
    const auto decoded = decode_response(payload);
    ASSERT_TRUE(decoded) << name(op) << ": " << describe(decoded.error());
    EXPECT_EQ(*decoded, response) << name(op);
    EXPECT_EQ(test::broken_property(payload), std::nullopt) << name(op);
    seen.insert(op);
  });
  EXPECT_EQ(seen.size(), 48U);  // the requests' and WRITE_COMPLETION
}

TEST(RandomMessage, ResponseWithAnErrorIsSixteenBytesForEveryOperation) {
  for (std::int32_t number = 0; number <= 60; ++number) {
    const Op op = static_cast<Op>(number);
    const std::vector<std::byte> message = error_message(7, op, -1073741826);
    ASSERT_EQ(message.size(), kBmiHeaderSize + 16);
    const auto decoded = decode_response(std::span(message).subspan(kBmiHeaderSize));
    ASSERT_EQ(decoded.has_value(), has_response(op)) << number;
    if (!decoded) continue;
    EXPECT_EQ(decoded->status, -1073741826);
    EXPECT_EQ(op_of(decoded->body), op);
  }
}

// A SMALL_IO's head, followed by its data, is the whole message.
TEST(RandomMessage, SmallIoHeadAndDataAreTheWholeMessage) {
  std::mt19937_64 random(4);
  for (int round = 0; round < kRounds; ++round) {
    Request request{.body = random_struct<SmallIoRequest>(random)};
    const auto& body = std::get<SmallIoRequest>(request.body);
    std::vector<std::byte> head = small_io_request_head(9, request);
    if (body.io_type == IoType::write) head.insert(head.end(), body.data.begin(), body.data.end());
    EXPECT_EQ(head, request_message(9, request));

    Response response{.body = random_struct<SmallIoResponse>(random)};
    const auto& answer = std::get<SmallIoResponse>(response.body);
    head = small_io_response_head(9, answer);
    if (answer.io_type == IoType::read) {
      head.insert(head.end(), answer.data.begin(), answer.data.end());
    }
    EXPECT_EQ(head, response_message(9, response));
  }
}

}  // namespace
}  // namespace vpfs::orangefs
