// Reads, writes and other messages of a client, and their answers.
#include <chrono>
#include <span>

#include "test/protocols/beegfs/conversation_fixture.h"

namespace vpfs::beegfs {
namespace {

TEST_F(BeegfsConversationTest, AReadNamesItsUserAndFile) {
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

TEST_F(BeegfsConversationTest, MoreDataThanAskedForIsNotAnAnswer) {
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
    return client({}).action == Action::need_more && server({}).action == Action::need_more;
  };
  const auto waits_for_server = [this] {
    return client({}).action == Action::wait && server({}).action == Action::need_more;
  };
  EXPECT_TRUE(waits_for_client());
  (void)client(make_message({.type = MessageType::fsync_local_file}, Buffer(20)));
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

// The server would wait for its data until it closes the connection.
TEST_F(BeegfsConversationTest, AWriteOfNothingIsNotPassedOnForItIsNeverAnswered) {
  EXPECT_EQ(client(read_request(0, 0)).action, Action::hold);
  (void)conversation_.refuse(conversation_.held().key);
  EXPECT_EQ(client(write_request(0, 0)).action, Action::lost_framing);
  EXPECT_NE(conversation_.problem(), "");
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

}  // namespace
}  // namespace vpfs::beegfs
