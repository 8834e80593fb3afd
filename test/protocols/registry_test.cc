#include "protocols/registry.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace vpfs {
namespace {

TEST(ProtocolRegistry, NamesEveryProtocolOnceAndInOrder) {
  const auto names = protocols();
  EXPECT_TRUE(std::ranges::is_sorted(names, {}, &Protocol::name));
  EXPECT_EQ(std::ranges::adjacent_find(names, {}, &Protocol::name), names.end());
  for (const Protocol& protocol : protocols()) {
    EXPECT_EQ(find_protocol(protocol.name), &protocol);
  }
}

TEST(ProtocolRegistry, KnowsNoOtherName) {
  for (const char* const name : {"", "orange", "orangefs2", "BeeGFS"}) {
    EXPECT_EQ(find_protocol(name), nullptr) << name;
  }
}

TEST(ProtocolRegistry, EveryRowIsComplete) {
  for (const Protocol& protocol : protocols()) {
    EXPECT_TRUE(protocol.attributes.has(Attribute::uid)) << protocol.name;
    const auto conversation = protocol.make_conversation(1);
    ASSERT_NE(conversation, nullptr) << protocol.name;
    EXPECT_EQ(conversation->next(Sender::client, {}).action, Step::Action::need_more);
    const auto transcript = protocol.make_transcript(false);
    ASSERT_NE(transcript, nullptr) << protocol.name;
    std::vector<TranscriptEntry> entries;
    transcript->finish(entries);
    EXPECT_TRUE(entries.empty()) << protocol.name;
    EXPECT_EQ(protocol.recognise({}).match, Recognition::Match::need_more) << protocol.name;
  }
}

}  // namespace
}  // namespace vpfs
