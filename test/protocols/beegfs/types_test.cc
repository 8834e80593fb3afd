#include "protocols/beegfs/types.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace vpfs::beegfs {
namespace {

TEST(MessageTypes, NamesAreThoseOfTheProtocol) {
  EXPECT_EQ(name(MessageType::write_local_file), "WriteLocalFile");
  EXPECT_EQ(name(MessageType::read_local_file), "ReadLocalFileV2");
  EXPECT_EQ(name(MessageType::remove_node), "RemoveNode");
  EXPECT_EQ(name(MessageType::move_chunk_file_resp), "MoveChunkFileResp");
  EXPECT_EQ(name(MessageType{3011}), "");
  EXPECT_EQ(name(MessageType{0}), "");
}

TEST(MessageTypes, AnswersBelongToTheirRequests) {
  EXPECT_EQ(answer_of(MessageType::write_local_file), MessageType::write_local_file_resp);
  EXPECT_EQ(answer_of(MessageType::stat_storage_path), MessageType::stat_storage_path_resp);
  EXPECT_EQ(answer_of(MessageType::request_storage_data), MessageType::request_storage_data_resp);
  EXPECT_EQ(answer_of(MessageType::publish_capacities), MessageType::ack);
  EXPECT_EQ(answer_of(MessageType::read_local_file), std::nullopt);
  EXPECT_EQ(answer_of(MessageType::set_channel_direct), std::nullopt);
  EXPECT_EQ(answer_of(MessageType::write_local_file_resp), std::nullopt);
  EXPECT_EQ(answer_of(MessageType{3011}), std::nullopt);
}

// Except the read, whose answer has no type, and the two that are only sent as datagrams.
TEST(MessageTypes, EveryListedTypeIsARequestWithAnAnswerOrAnAnswerOrHasNone) {
  int listed = 0;
  for (std::uint32_t number = 0; number <= 0xffff; ++number) {
    const MessageType type{static_cast<std::uint16_t>(number)};
    if (name(type).empty()) continue;
    ++listed;
    const bool datagram_only =
        type == MessageType::heartbeat || type == MessageType::heartbeat_request;
    if (type == MessageType::read_local_file || datagram_only || is_answer(type)) continue;
    EXPECT_EQ(has_answer(type) || asks_for_ack(type), answer_of(type).has_value()) << name(type);
  }
  EXPECT_EQ(listed, 76);
}

TEST(OpsErrors, HaveTexts) {
  EXPECT_EQ(describe(OpsError::unknown_target), "unknown target");
  EXPECT_EQ(describe(OpsError{6}), "");
}

}  // namespace
}  // namespace vpfs::beegfs
