// Which side sends, and which target and mirror a request is for.
#include "test/protocols/beegfs/conversation_fixture.h"

namespace vpfs::beegfs {
namespace {

TEST(BeegfsConversation, IsNotAtRestWhileWhatAServerSentIsHalfWay) {
  BeegfsConversation conversation;
  conversation.set_peer(PeerAddress::server);
  (void)conversation.next(Sender::client, write_request(0, 10, kWriteToMirror));
  EXPECT_FALSE(conversation.at_rest());
  (void)conversation.next(Sender::client, evil(10));
  EXPECT_FALSE(conversation.at_rest());
  (void)conversation.next(Sender::server, write_answer(10));
  EXPECT_TRUE(conversation.at_rest());
  EXPECT_FALSE(conversation.client_timeout());
}

// A client with a false target must not get another target's slots.
TEST_F(BeegfsConversationTest, TheTargetIsTheOneThatTheFileIsOnWhateverTheHeaderSays) {
  for (const MessageType type : {MessageType::read_local_file, MessageType::write_local_file}) {
    Buffer request = encode_file_io({.type = type, .target = 999, .user = 1001}, file_io(0, 100));
    EXPECT_EQ(client(request).action, Action::hold);
    EXPECT_EQ(conversation_.held().target, 101U);
    EXPECT_EQ(conversation_.held().device, 101U);
    (void)conversation_.refuse(conversation_.held().key);
    if (type == MessageType::write_local_file) (void)client(evil(100));
  }
}

TEST_F(BeegfsConversationTest, AMirroredFileIsOnItsGroup) {
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
  for (const PeerAddress address :
       {PeerAddress::unknown, PeerAddress::server, PeerAddress::not_servers}) {
    conversation_.set_peer(address);
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
    conversation.set_peer(PeerAddress::server);
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

// They carry data that nothing accounts for.
TEST(BeegfsConversation, ChunksMoveBetweenServersOnly) {
  for (const PeerAddress address :
       {PeerAddress::unknown, PeerAddress::server, PeerAddress::not_servers}) {
    for (const bool is_client : {false, true}) {
      for (const MessageType type : {MessageType::resync_local_file, MessageType::cp_chunk_paths}) {
        BeegfsConversation conversation;
        conversation.set_peer(address);
        const Buffer hello = peer_info(is_client ? NodeType::client : NodeType::storage, 1);
        EXPECT_EQ(conversation.next(Sender::client, hello).action, Action::forward);
        const bool passes = !is_client && address != PeerAddress::not_servers;
        EXPECT_EQ(conversation.next(Sender::client, make_message({.type = type}, evil(100))).action,
                  passes ? Action::forward : Action::lost_framing)
            << name(type);
        if (!passes) {
          EXPECT_NE(conversation.problem().find(name(type)), std::string::npos);
        }
      }
    }
  }
}

TEST(BeegfsConversation, APeerWithoutAnIntroductionIsAnUnknownNode) {
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

}  // namespace
}  // namespace vpfs::beegfs
