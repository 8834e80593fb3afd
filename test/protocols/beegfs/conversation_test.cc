// Over 500 lines: all tests share one fixture and one set of messages.

#include "protocols/beegfs/conversation.h"

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/byte_reader.h"
#include "base/byte_writer.h"
#include "test/protocols/beegfs/captured.h"
#include "test/support/replay.h"

namespace vpfs::beegfs {
namespace {

using Buffer = std::vector<std::byte>;
using Action = Step::Action;

Buffer words(std::initializer_list<std::uint32_t> numbers) {
  Buffer body;
  ByteWriter out(body);
  for (const std::uint32_t number : numbers) out.u32(number);
  return body;
}

Buffer peer_info(NodeType type, std::uint32_t number) {
  return make_message({.type = MessageType::peer_info},
                      words({static_cast<std::uint32_t>(type), number}));
}

FileIo file_io(std::int64_t offset, std::int64_t count) {
  return {.offset = offset,
          .count = count,
          .access_flags = 4,
          .file_handle = "1A#5-68A-1",
          .client = 7,
          .path = {.flags = PathInfo::kHasOrigin, .owner = 1001, .directory = "4-68A-1"},
          .target = 101};
}

Buffer read_request(std::int64_t offset, std::int64_t count, std::uint16_t flags = 0) {
  return encode_file_io(
      {.feature_flags = flags, .type = MessageType::read_local_file, .target = 101, .user = 1001},
      file_io(offset, count));
}

Buffer write_request(std::int64_t offset, std::int64_t count, std::uint16_t flags = 0) {
  return encode_file_io(
      {.feature_flags = flags, .type = MessageType::write_local_file, .target = 101, .user = 1001},
      file_io(offset, count));
}

Buffer word(std::int64_t value) {
  Buffer bytes;
  ByteWriter(bytes).i64(value);
  return bytes;
}

Buffer joined(std::initializer_list<Buffer> parts) {
  Buffer all;
  for (const Buffer& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// Data that look like messages.
Buffer evil(std::size_t size) {
  const Buffer message = write_request(0, 1'000'000);
  Buffer data;
  while (data.size() < size) data.insert(data.end(), message.begin(), message.end());
  data.resize(size);
  return data;
}

// A connection whose client has introduced itself.
class BeegfsConversationTest : public ::testing::Test {
 protected:
  BeegfsConversationTest() {
    EXPECT_EQ(client(make_message({.type = MessageType::set_channel_direct}, words({0}))).action,
              Action::forward);
    EXPECT_EQ(client(peer_info(NodeType::client, 7)).action, Action::forward);
  }
  Step client(std::span<const std::byte> bytes) {
    return conversation_.next(Sender::client, bytes);
  }
  Step server(std::span<const std::byte> bytes) {
    return conversation_.next(Sender::server, bytes);
  }
  // Holds and releases it.
  IoKey start(const Buffer& request) {
    const Step step = client(request);
    EXPECT_EQ(step.action, Action::hold);
    EXPECT_EQ(step.size, request.size());
    const IoKey key = conversation_.held().key;
    conversation_.released(key);
    return key;
  }

  BeegfsConversation conversation_;
};

TEST_F(BeegfsConversationTest, AReadSaysWhoAsksForWhat) {
  const Buffer request = read_request(4096, 65536);
  EXPECT_EQ(client(request).action, Action::hold);
  const IoDescription& held = conversation_.held();
  EXPECT_EQ(held.kind, IoKind::read);
  EXPECT_EQ(held.bytes, 65536U);
  EXPECT_EQ(held.uid, 1001U);
  EXPECT_EQ(held.node, 7U);
  EXPECT_EQ(held.target, 101U);
  EXPECT_EQ(held.owner, 1001U);
  EXPECT_EQ(held.directory, "4-68A-1");
  EXPECT_EQ(held.open_file, "1A#5-68A-1");
  EXPECT_EQ(conversation_.serial_client(), 7U);
}

TEST_F(BeegfsConversationTest, ARepetitionHasTheSameFingerprintAndNoOther) {
  (void)client(read_request(0, 4096));
  const std::uint64_t first = conversation_.held().fingerprint;
  (void)conversation_.refuse(conversation_.held().key);
  (void)client(read_request(0, 4096));
  EXPECT_EQ(conversation_.held().fingerprint, first);
  (void)conversation_.refuse(conversation_.held().key);
  (void)client(read_request(4096, 4096));
  EXPECT_NE(conversation_.held().fingerprint, first);
}

TEST_F(BeegfsConversationTest, NothingBehindAHeldRequestIsLookedAt) {
  (void)client(read_request(0, 100));
  const IoKey key = conversation_.held().key;
  EXPECT_EQ(client(read_request(100, 100)).action, Action::wait);
  conversation_.released(key);
  EXPECT_EQ(client(read_request(100, 100)).action, Action::wait) << "its answer is to come";
  const Step answer = server(joined({word(100), Buffer(100), word(0)}));
  EXPECT_EQ(answer.size, 116U);
  ASSERT_TRUE(answer.finished);
  EXPECT_EQ(answer.finished->key, key);
  EXPECT_EQ(client(read_request(100, 100)).action, Action::hold);
}

TEST_F(BeegfsConversationTest, AReadEndsWithItsLastWord) {
  const IoKey key = start(read_request(0, 1'000'000));
  Step step = server(joined({word(600'000), evil(1000)}));
  EXPECT_EQ(step.action, Action::forward);
  EXPECT_EQ(step.size, 600'008U);
  EXPECT_FALSE(step.finished);
  EXPECT_EQ(conversation_.moved(key), 600'000U);
  EXPECT_EQ(server(Buffer(7)).action, Action::need_more);
  step = server(word(400'000));
  EXPECT_EQ(step.size, 400'016U) << "with the word that ends it";
  ASSERT_TRUE(step.finished);
  EXPECT_EQ(step.finished->bytes, 1'000'000U);
  EXPECT_FALSE(step.finished->failed);
}

TEST_F(BeegfsConversationTest, AReadAtTheEndOfTheFileIsShort) {
  (void)start(read_request(0, 1000));
  EXPECT_FALSE(server(joined({word(300), Buffer(300)})).finished);
  const Step end = server(word(0));
  ASSERT_TRUE(end.finished);
  EXPECT_EQ(end.size, 8U);
  EXPECT_EQ(end.finished->bytes, 300U);
  EXPECT_FALSE(end.finished->failed);
}

TEST_F(BeegfsConversationTest, AReadMayFailAtOnceOrHalfWay) {
  (void)start(read_request(0, 1000));
  Step end = server(word(-15));
  ASSERT_TRUE(end.finished);
  EXPECT_TRUE(end.finished->failed);
  (void)start(read_request(0, 1000));
  EXPECT_FALSE(server(joined({word(300), Buffer(300)})).finished);
  end = server(word(-1));
  ASSERT_TRUE(end.finished);
  EXPECT_TRUE(end.finished->failed);
  EXPECT_EQ(end.finished->bytes, 300U);
}

TEST_F(BeegfsConversationTest, MoreDataThanAskedForIsNoAnswer) {
  (void)start(read_request(0, 1000));
  EXPECT_EQ(server(word(1001)).action, Action::lost_framing);
  EXPECT_NE(conversation_.problem(), "");
}

TEST_F(BeegfsConversationTest, DataOfAWriteFollowItWithoutBeingLookedAt) {
  const IoKey key = start(write_request(0, 3'000'000));
  const Buffer data = evil(4096);
  std::uint64_t left = 3'000'000;
  while (left > 0) {
    const Step step = client(data);
    ASSERT_EQ(step.action, Action::forward);
    ASSERT_GT(step.size, 0U);
    ASSERT_LE(step.size, left);
    left -= step.size;
    EXPECT_EQ(conversation_.moved(key), 3'000'000 - left);
  }
  EXPECT_EQ(client(read_request(0, 1)).action, Action::wait);
  const Buffer message = write_answer(3'000'000);
  EXPECT_EQ(server(std::span(message).first(47)).action, Action::need_more);
  const Step answer = server(message);
  ASSERT_TRUE(answer.finished);
  EXPECT_EQ(answer.size, 48U);
  EXPECT_EQ(answer.finished->key, key);
  EXPECT_EQ(answer.finished->bytes, 3'000'000U);
  EXPECT_FALSE(answer.finished->failed);
}

TEST_F(BeegfsConversationTest, WithNothingInHandItTellsWhoseTurnItIs) {
  const auto waits_for_client = [this] {
    const Step from_client = client({});
    const Step from_server = server({});
    return from_client.action == Action::need_more && !from_client.silent &&
           from_server.action == Action::need_more && from_server.silent;
  };
  const auto waits_for_server = [this] {
    const Step from_server = server({});
    return client({}).action == Action::wait && from_server.action == Action::need_more &&
           !from_server.silent;
  };
  EXPECT_TRUE(waits_for_client());
  (void)client(make_message({.type = MessageType::fsync_local_file}, Buffer(20)));
  EXPECT_FALSE(server({}).silent) << "that is to be answered";
  (void)server(make_message({.type = MessageType::fsync_local_file_resp}, word(0)));
  EXPECT_TRUE(waits_for_client());

  (void)start(write_request(0, 4096));
  const Step data = client({});
  EXPECT_EQ(data.action, Action::forward);
  EXPECT_EQ(data.size, 4096U);
  EXPECT_TRUE(waits_for_server());
  (void)server(write_answer(4096));
  EXPECT_TRUE(waits_for_client());

  (void)start(read_request(0, 4096));
  EXPECT_TRUE(waits_for_server());
  (void)server(joined({word(4096), evil(100)}));
  EXPECT_TRUE(waits_for_client()) << "the rest of the data need no look";
}

TEST_F(BeegfsConversationTest, AFailedWriteIsOverAndItsConnectionGoesOn) {
  (void)start(write_request(0, 10));
  EXPECT_EQ(client(evil(10)).action, Action::forward);
  Step answer = server(write_answer(-14));
  ASSERT_TRUE(answer.finished);
  EXPECT_TRUE(answer.finished->failed);
  (void)start(write_request(0, 10));
  EXPECT_EQ(client(evil(10)).action, Action::forward);
  answer = server(make_message({.type = MessageType::generic_response}, words({0, 0, 0})));
  ASSERT_TRUE(answer.finished) << "an answer of another type ends it too";
  EXPECT_TRUE(answer.finished->failed);
  EXPECT_EQ(client(read_request(0, 1)).action, Action::hold);
}

TEST_F(BeegfsConversationTest, ARefusedWriteIsAnsweredInItsTermsAndItsDataDropped) {
  (void)client(write_request(0, 5000));
  const IoKey key = conversation_.held().key;
  EXPECT_EQ(client(evil(100)).action, Action::wait);
  EXPECT_EQ(conversation_.refuse(key), write_answer(-22));
  const Step step = client(evil(100));
  EXPECT_EQ(step.action, Action::discard);
  EXPECT_EQ(step.size, 5000U);
  EXPECT_EQ(client(read_request(0, 1)).action, Action::hold);
}

TEST_F(BeegfsConversationTest, ARefusedReadIsACommunicationError) {
  (void)client(read_request(0, 5000));
  EXPECT_EQ(conversation_.refuse(conversation_.held().key), word(-3));
  EXPECT_EQ(client(read_request(0, 1)).action, Action::hold);
}

TEST_F(BeegfsConversationTest, ForgottenIosAreFollowedToTheirEnd) {
  const IoKey key = start(read_request(0, 100));
  conversation_.forget(key);
  const Step step = server(joined({word(100), Buffer(100), word(0)}));
  EXPECT_EQ(step.size, 116U);
  EXPECT_FALSE(step.finished);
  EXPECT_EQ(client(read_request(0, 1)).action, Action::hold);
}

TEST_F(BeegfsConversationTest, OtherMessagesPassOneToOneAndWhole) {
  const Buffer fsync = make_message({.type = MessageType::fsync_local_file}, Buffer(20));
  for (std::size_t size = 0; size < fsync.size(); ++size) {
    const Step step = client(std::span(fsync).first(size));
    ASSERT_EQ(step.action, Action::need_more);
    ASSERT_GT(step.size, size);
    ASSERT_LE(step.size, fsync.size());
  }
  EXPECT_EQ(client(fsync).action, Action::forward);
  EXPECT_FALSE(conversation_.at_rest());
  EXPECT_EQ(client(read_request(0, 1)).action, Action::wait);
  EXPECT_EQ(server(make_message({.type = MessageType::fsync_local_file_resp}, word(0))).action,
            Action::forward);
  EXPECT_TRUE(conversation_.at_rest());
  EXPECT_EQ(client(read_request(0, 1)).action, Action::hold);
}

TEST_F(BeegfsConversationTest, IsAtRestWhileNothingUnscheduledIsHalfWay) {
  ASSERT_TRUE(conversation_.client_timeout());
  EXPECT_EQ(conversation_.client_timeout()->timeout, std::chrono::seconds(600));
  EXPECT_TRUE(conversation_.at_rest());
  (void)client(write_request(0, 100));
  EXPECT_TRUE(conversation_.at_rest()) << "its data are with the client";
  conversation_.released(conversation_.held().key);
  EXPECT_FALSE(conversation_.at_rest());
  (void)client(evil(100));
  (void)server(write_answer(100));
  EXPECT_TRUE(conversation_.at_rest());
}

TEST(BeegfsConversation, IsNotAtRestWhileWhatAServerSentIsHalfWay) {
  BeegfsConversation conversation;
  conversation.trust_peer(true);
  (void)conversation.next(Sender::client, write_request(0, 10, kWriteToMirror));
  EXPECT_FALSE(conversation.at_rest());
  (void)conversation.next(Sender::client, evil(10));
  EXPECT_FALSE(conversation.at_rest());
  (void)conversation.next(Sender::server, write_answer(10));
  EXPECT_TRUE(conversation.at_rest());
  EXPECT_FALSE(conversation.client_timeout());
}

TEST_F(BeegfsConversationTest, AWriteOfNothingTakesNoSlotForItIsNeverAnswered) {
  EXPECT_EQ(client(write_request(0, 0)).action, Action::forward);
}

TEST_F(BeegfsConversationTest, AnUnknownMessageThatTurnsOutToHaveNoAnswerBlocksNothing) {
  EXPECT_EQ(client(make_message({.type = MessageType{9999}}, Buffer(3))).action, Action::forward);
  EXPECT_EQ(client(read_request(0, 1)).action, Action::hold);
}

TEST_F(BeegfsConversationTest, DatagramTypesAreAnsweredOnlyIfTheyAsk) {
  EXPECT_EQ(
      client(make_message({.type = MessageType::refresh_target_states}, words({0, 0}))).action,
      Action::forward);
  EXPECT_TRUE(conversation_.at_rest());
  EXPECT_EQ(
      client(make_message({.type = MessageType::refresh_target_states}, words({1, 65}))).action,
      Action::forward);
  EXPECT_FALSE(conversation_.at_rest());
}

// A client that lies here must not get another target's slots.
TEST_F(BeegfsConversationTest, TheTargetIsTheOneThatTheFileLiesOnWhateverTheHeaderSays) {
  for (const MessageType type : {MessageType::read_local_file, MessageType::write_local_file}) {
    Buffer request = encode_file_io({.type = type, .target = 999, .user = 1001}, file_io(0, 100));
    EXPECT_EQ(client(request).action, Action::hold);
    EXPECT_EQ(conversation_.held().target, 101U);
    EXPECT_EQ(conversation_.held().device, 101U);
    (void)conversation_.refuse(conversation_.held().key);
    if (type == MessageType::write_local_file) (void)client(evil(100));
  }
}

TEST_F(BeegfsConversationTest, AMirroredFileLiesOnItsGroup) {
  for (const MessageType type : {MessageType::read_local_file, MessageType::write_local_file}) {
    const bool is_read = type == MessageType::read_local_file;
    const std::uint16_t mirrored = is_read ? kReadMirrored : kWriteMirrored;
    (void)client(
        encode_file_io({.feature_flags = mirrored, .type = type, .target = 7}, file_io(0, 100)));
    EXPECT_EQ(conversation_.held().target, 7U) << "as the header says";
    EXPECT_EQ(conversation_.held().device, kMirrorGroup + 101);
    (void)conversation_.refuse(conversation_.held().key);
    if (!is_read) (void)client(evil(100));
    // Reads and writes have different flags.
    const std::uint16_t other = is_read ? kWriteMirrored : kReadMirrored;
    (void)client(
        encode_file_io({.feature_flags = other, .type = type, .target = 7}, file_io(0, 100)));
    EXPECT_EQ(conversation_.held().device, 101U);
    (void)conversation_.refuse(conversation_.held().key);
    if (!is_read) (void)client(evil(100));
  }
}

TEST_F(BeegfsConversationTest, TheFlagsOfMirrorsOfAClientMakeNoDifference) {
  for (const bool at_a_servers_address : {false, true}) {
    conversation_.trust_peer(at_a_servers_address);
    EXPECT_EQ(client(read_request(0, 10, kReadFromMirror)).action, Action::hold);
    (void)conversation_.refuse(conversation_.held().key);
    EXPECT_EQ(client(write_request(0, 10, kWriteToMirror)).action, Action::hold);
    (void)conversation_.refuse(conversation_.held().key);
    (void)client(evil(10));
  }
}

TEST(BeegfsConversation, WhatOtherServersSendPassesUnscheduled) {
  for (const bool introduced : {false, true}) {
    BeegfsConversation conversation;
    conversation.trust_peer(true);
    if (introduced) {
      (void)conversation.next(Sender::client, peer_info(NodeType::meta, 1));
    }
    EXPECT_EQ(conversation.next(Sender::client, read_request(0, 100)).action, Action::forward);
    Step step = conversation.next(Sender::server, joined({word(100), Buffer(100), word(0)}));
    EXPECT_EQ(step.size, 116U);
    EXPECT_FALSE(step.finished);
    const Buffer request = write_request(0, 1000, kWriteToMirror);
    step = conversation.next(Sender::client, request);
    EXPECT_EQ(step.action, Action::forward);
    EXPECT_EQ(step.size, request.size());
    EXPECT_EQ(conversation.next(Sender::client, evil(1000)).size, 1000U);
    step = conversation.next(Sender::server, write_answer(1000));
    EXPECT_EQ(step.action, Action::forward);
    EXPECT_FALSE(step.finished);
  }
}

TEST(BeegfsConversation, WhoeverDoesNotSayWhoItIsIsAnUnknownNode) {
  for (const bool introduced : {false, true}) {
    BeegfsConversation conversation;
    if (introduced) {
      (void)conversation.next(Sender::client, peer_info(NodeType::storage, 1));
    }
    for (const std::uint16_t flags : {std::uint16_t{0}, kReadFromMirror}) {
      EXPECT_EQ(conversation.next(Sender::client, read_request(0, 100, flags)).action,
                Action::hold);
      EXPECT_EQ(conversation.serial_client(), kUnknownNode);
      EXPECT_FALSE(conversation.held().node) << "though the request names one";
      EXPECT_EQ(conversation.held().uid, 1001U);
      EXPECT_TRUE(conversation.at_rest());
      (void)conversation.refuse(conversation.held().key);
    }
  }
}

TEST_F(BeegfsConversationTest, LostFramingIsSaid) {
  Buffer message = read_request(0, 1);
  message[12] = std::byte{0};
  EXPECT_EQ(client(message).action, Action::lost_framing);
  EXPECT_NE(conversation_.problem(), "");
  EXPECT_EQ(client(read_request(0, -1)).action, Action::lost_framing);
  Buffer cut = read_request(0, 1);
  cut.resize(cut.size() - 3);
  cut = make_message({.type = MessageType::read_local_file},
                     std::span(cut).subspan(kMessageHeaderSize));
  EXPECT_EQ(client(cut).action, Action::lost_framing);
}

TEST(BeegfsConversation, CapturedConnectionsGoOnToTheirLastByteAndEveryIoEnds) {
  for (const std::size_t window : {std::size_t{1}, std::size_t{300}, std::size_t{1} << 20}) {
    int ios = 0;
    for (const std::string& file : test::capture_files()) {
      SCOPED_TRACE(file);
      const std::vector<test::CapturedStream> streams = test::captured_streams(file);
      for (std::size_t i = 0; i + 1 < streams.size(); i += 2) {
        BeegfsConversation conversation;
        // Some connections began before their capture.
        (void)conversation.next(Sender::client, peer_info(NodeType::client, 1));
        vpfs::test::Replay client(conversation, streams[i]);
        vpfs::test::Replay server(conversation, streams[i + 1]);
        for (const auto& [from, size] : streams[i].order) {
          (from == Sender::client ? client : server).arrive(size, window);
          client.arrive(0, window);
        }
        EXPECT_EQ(client.at(), streams[i].bytes.size());
        EXPECT_EQ(server.at(), streams[i + 1].bytes.size());
        EXPECT_EQ(client.held(), server.finished());
        EXPECT_EQ(server.failed(), 0);
        EXPECT_TRUE(conversation.at_rest());
        ios += client.held();
      }
    }
    EXPECT_EQ(ios, 125) << "as many reads and writes as the captures have";
  }
}

// Any bytes in any pieces lead to a decision that makes progress and stays within its limits.
TEST(BeegfsConversation, AnyBytesLeadToADecision) {
  std::mt19937_64 random(4);
  const std::vector<Buffer> seeds = {read_request(0, 4096), write_request(0, 300),
                                     peer_info(NodeType::client, 3), write_answer(300), word(64)};
  for (int round = 0; round < 20'000; ++round) {
    BeegfsConversation conversation;
    (void)conversation.next(Sender::client, peer_info(NodeType::client, 7));
    for (int i = 0; i < 8; ++i) {
      Buffer bytes = seeds[random() % seeds.size()];
      for (std::uint64_t flips = random() % 3; flips > 0; --flips) {
        bytes[random() % bytes.size()] ^= static_cast<std::byte>(1U << random() % 8);
      }
      bytes.resize(random() % (bytes.size() + 1));
      const Step step = conversation.next(random() % 2 ? Sender::client : Sender::server, bytes);
      if (step.action == Action::lost_framing) break;
      if (step.action == Action::need_more) {
        ASSERT_GT(step.size, bytes.size());
        ASSERT_LE(step.size, Conversation::kMostNeeded);
      } else if (step.action == Action::hold) {
        ASSERT_LE(step.size, bytes.size());
        const IoKey key = conversation.held().key;
        if (random() % 2) {
          conversation.released(key);
        } else {
          ASSERT_FALSE(conversation.refuse(key).empty());
        }
      } else if (step.action != Action::wait) {
        ASSERT_GT(step.size, 0U);
      }
    }
  }
}

}  // namespace
}  // namespace vpfs::beegfs
