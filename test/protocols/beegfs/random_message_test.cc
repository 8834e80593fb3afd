#include <random>
#include <set>
#include <type_traits>
#include <utility>

#include <gtest/gtest.h>

#include "protocols/beegfs/message.h"
#include "test/protocols/beegfs/message_properties.h"
#include "test/protocols/beegfs/random_archive.h"

// Messages of every type with a body, including types that the captures lack.
namespace vpfs::beegfs {
namespace {

constexpr int kRounds = 100;

template <typename Alternative>
void check_random_messages(std::mt19937_64& random) {
  for (int round = 0; round < kRounds; ++round) {
    Alternative body;
    test::RandomArchive archive(random);
    Alternative::fields(archive, body);
    const std::vector<std::byte> bytes = encode_message({.body = body});
    const auto header = decode_message_header(bytes);
    ASSERT_TRUE(header);
    ASSERT_EQ(header->type, Alternative::kType);
    const auto message = decode_message(*header, bytes);
    ASSERT_TRUE(message) << name(header->type) << ": " << describe(message.error());
    EXPECT_EQ(message->body, Body(body)) << name(header->type);
    EXPECT_EQ(test::broken_property(bytes), std::nullopt) << name(header->type);
  }
}

template <std::size_t... kIndexes>
void check_all(std::mt19937_64& random, std::set<MessageType>& types,
               std::index_sequence<kIndexes...>) {
  const auto check = [&]<typename Alternative>(std::type_identity<Alternative>) {
    if constexpr (!std::is_same_v<Alternative, Opaque>) {
      check_random_messages<Alternative>(random);
      types.insert(Alternative::kType);
    }
  };
  (check(std::type_identity<std::variant_alternative_t<kIndexes, Body>>()), ...);
}

TEST(RandomMessage, OfEveryTypeSurvivesTheWire) {
  std::mt19937_64 random(20240817);
  std::set<MessageType> types;
  constexpr std::size_t kAlternatives = std::variant_size_v<Body>;
  check_all(random, types, std::make_index_sequence<kAlternatives>());
  EXPECT_EQ(types.size(), kAlternatives - 1) << "two bodies have the same type";
}

}  // namespace
}  // namespace vpfs::beegfs
