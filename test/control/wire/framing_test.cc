#include "control/wire/framing.h"

#include <cstring>

#include <gtest/gtest.h>

#include "test/support/control/raw_peer.h"

namespace vpfs::control {
namespace {

using test::frame_of;
using test::length_field;

Envelope numbered(std::uint64_t id, std::size_t text = 0) {
  Envelope envelope;
  envelope.set_id(id);
  envelope.mutable_ack()->set_text(std::string(text, 'x'));
  return envelope;
}

void give(FrameReader& reader, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto room = reader.room();
    const std::size_t size = std::min(room.size(), bytes.size());
    std::memcpy(room.data(), bytes.data(), size);
    reader.received(size);
    bytes.remove_prefix(size);
  }
}

// The ids of all whole messages.
std::vector<std::uint64_t> take(FrameReader& reader) {
  std::vector<std::uint64_t> ids;
  for (;;) {
    const bool ready = reader.ready();
    const auto frame = reader.next();
    EXPECT_TRUE(frame);
    EXPECT_EQ(ready, frame->has_value());
    if (!frame || !*frame) return ids;
    Envelope envelope;
    EXPECT_TRUE(decode(**frame, envelope));
    ids.push_back(envelope.id());
  }
}

TEST(FrameReader, CutsTheSameMessagesWhereverTheStreamIsSplit) {
  const std::string stream =
      frame_of(numbered(1)) + frame_of(numbered(2, 40)) + frame_of(numbered(300, 3));
  for (std::size_t split = 0; split <= stream.size(); ++split) {
    FrameReader reader(1000);
    give(reader, std::string_view(stream).substr(0, split));
    std::vector<std::uint64_t> ids = take(reader);
    give(reader, std::string_view(stream).substr(split));
    for (const std::uint64_t id : take(reader)) ids.push_back(id);
    EXPECT_EQ(ids, (std::vector<std::uint64_t>{1, 2, 300})) << split;
    EXPECT_EQ(reader.buffered(), 0U);
  }
}

TEST(FrameReader, CutsAMessageThatArrivesByteByByte) {
  FrameReader reader(20000);
  const std::string stream = frame_of(numbered(7, 10000));
  for (std::size_t i = 0; i + 1 < stream.size(); ++i) {
    give(reader, std::string_view(stream).substr(i, 1));
    ASSERT_TRUE(take(reader).empty());
  }
  give(reader, std::string_view(stream).substr(stream.size() - 1));
  EXPECT_EQ(take(reader), std::vector<std::uint64_t>{7});
}

TEST(FrameReader, RefusesALengthBeyondItsBoundsAsSoonAsItIsThere) {
  for (const std::uint32_t length : {0U, 1U, 101U, 0x7fffffffU, 0xffffffffU}) {
    FrameReader reader(100);
    give(reader, length_field(length).substr(0, 3));
    ASSERT_TRUE(reader.next());
    give(reader, length_field(length).substr(3));
    const auto frame = reader.next();
    ASSERT_FALSE(frame) << length;
    EXPECT_EQ(frame.error(), length < 2 ? FrameError::too_short : FrameError::too_long);
  }
}

TEST(FrameReader, TheLastLengthWithinBoundsIsTaken) {
  FrameReader reader(100);
  Envelope envelope = numbered(1, 1);
  while (envelope.ByteSizeLong() < 100) envelope.mutable_ack()->mutable_text()->push_back('x');
  ASSERT_EQ(envelope.ByteSizeLong(), 100U);
  give(reader, frame_of(envelope));
  EXPECT_EQ(take(reader), std::vector<std::uint64_t>{1});
}

TEST(FrameReader, MemoryFollowsWhatHasArrivedAndIsGivenBack) {
  constexpr std::size_t kMost = 64 << 20;
  FrameReader reader(kMost);
  give(reader, length_field(kMost));
  ASSERT_TRUE(reader.next());
  EXPECT_LE(reader.capacity(), 8192U);
  const std::string part(100000, 'x');
  std::size_t arrived = 4;
  for (int i = 0; i < 20; ++i) {
    give(reader, part);
    arrived += part.size();
    ASSERT_TRUE(reader.next());
    ASSERT_LE(reader.capacity(), 2 * arrived + 8192);
  }
  FrameReader large(kMost);
  give(large, frame_of(numbered(1, 1 << 20)));
  EXPECT_EQ(take(large).size(), 1U);
  (void)large.room();
  EXPECT_LE(large.capacity(), 8192U);
}

TEST(AppendFrame, AppendsNothingOfAMessageThatIsTooLong) {
  std::string out = "before";
  EXPECT_FALSE(append_frame(numbered(1, 1000), 999, out));
  EXPECT_EQ(out, "before");
  EXPECT_TRUE(append_frame(numbered(1), 999, out));
  EXPECT_GT(out.size(), 6U);
}

TEST(AppendFrame, TextsThatAreNotUtf8ArriveWithReplacements) {
  Envelope envelope;
  envelope.mutable_ack()->set_text("caf\xe9");
  envelope.mutable_ack()->add_warnings("good");
  envelope.mutable_ack()->add_warnings("\xff");
  ::testing::internal::CaptureStderr();
  FrameReader reader(1000);
  give(reader, frame_of(envelope));
  const auto frame = reader.next();
  Envelope arrived;
  ASSERT_TRUE(decode(**frame, arrived));
  EXPECT_EQ(arrived.ack().text(), "caf\xEF\xBF\xBD");
  EXPECT_EQ(arrived.ack().warnings(0), "good");
  EXPECT_EQ(arrived.ack().warnings(1), "\xEF\xBF\xBD");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(AppendFrame, EveryTextOfAMessageIsMadeUtf8) {
  Envelope envelope;
  envelope.mutable_rule_reply()->add_rules()->add_words("\xff");
  envelope.mutable_rule_reply()->add_history()->add_differences()->set_after("x\xff");
  envelope.mutable_rule_reply()->set_text("\xc3\xa4");
  FrameReader reader(1000);
  give(reader, frame_of(envelope));
  Envelope arrived;
  ASSERT_TRUE(decode(**reader.next(), arrived));
  EXPECT_EQ(arrived.rule_reply().rules(0).words(0), "\xEF\xBF\xBD");
  EXPECT_EQ(arrived.rule_reply().history(0).differences(0).after(), "x\xEF\xBF\xBD");
  EXPECT_EQ(arrived.rule_reply().text(), "\xc3\xa4");
}

TEST(AppendFrame, ReplacementsCountForTheLongestMessage) {
  Envelope envelope;
  envelope.mutable_ack()->set_text(std::string(100, '\xff'));
  std::string out = "before";
  EXPECT_FALSE(append_frame(envelope, 299, out));
  EXPECT_EQ(out, "before");
  EXPECT_TRUE(append_frame(envelope, 310, out));
}

TEST(Decode, ATextThatIsNotUtf8IsNotAMessageAndFillsNoLog) {
  const std::string bytes = {42, 3, 10, 1, '\xff'};
  Envelope envelope;
  ::testing::internal::CaptureStderr();
  EXPECT_FALSE(decode(std::as_bytes(std::span(bytes)), envelope));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(Decode, KeepsFieldsThatThisVersionDoesNotKnow) {
  // Field 77 of the Envelope, a number, and field 9 of the Ack inside, a text.
  std::string bytes = {8, 5, 42, 6, 74, 4, 'l', 'a', 't', 'e'};
  bytes += std::string("\xe8\x04\x2a", 3);
  Envelope envelope;
  ASSERT_TRUE(decode(std::as_bytes(std::span(bytes)), envelope));
  EXPECT_TRUE(envelope.has_ack());
  const std::string again = envelope.SerializeAsString();
  EXPECT_NE(again.find("late"), std::string::npos);
  EXPECT_NE(again.find(std::string("\xe8\x04\x2a", 3)), std::string::npos);
}

TEST(MessageMemory, EachMessageIsEmptyAndMayBeLargerThanWhatIsKept) {
  MessageMemory memory;
  for (const int parts : {1000, 0, 5, 20'000, 1}) {
    Envelope& message = memory.begin();
    EXPECT_EQ(message.body_case(), Envelope::BODY_NOT_SET);
    for (int i = 0; i < parts; ++i) {
      message.mutable_cycle()->add_allocations()->set_flow(static_cast<std::uint32_t>(i));
    }
    ASSERT_EQ(message.cycle().allocations_size(), parts);
    for (int i = 0; i < parts; ++i) {
      EXPECT_EQ(message.cycle().allocations(i).flow(), static_cast<std::uint32_t>(i));
    }
    memory.end(std::size_t{256} * 1024);
  }
}

TEST(MessageMemory, IsKeptFromOneMessageToTheNextUpToABound) {
  MessageMemory memory;
  const auto use = [&memory](int parts, std::size_t most) {
    Envelope& message = memory.begin();
    for (int i = 0; i < parts; ++i) message.mutable_cycle()->add_allocations();
    memory.end(most);
    return memory.kept();
  };
  EXPECT_EQ(use(1, 0), 0U);
  const std::size_t kept = use(1000, 1 << 20);
  EXPECT_GT(kept, 1000 * sizeof(Allocation));
  EXPECT_EQ(use(1000, 1 << 20), kept) << "it has room for the same again";
  EXPECT_EQ(use(1, 1 << 20), kept);
  EXPECT_EQ(use(1'000'000, 1 << 20), 0U);
}

}  // namespace
}  // namespace vpfs::control
