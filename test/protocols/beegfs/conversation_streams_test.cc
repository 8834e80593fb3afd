// Whole connections, damaged ones, and bytes that are none.
#include <random>
#include <span>
#include <string>
#include <vector>

#include "test/protocols/beegfs/conversation_fixture.h"
#include "test/support/replay.h"

namespace vpfs::beegfs {
namespace {

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
