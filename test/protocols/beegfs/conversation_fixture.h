#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "base/byte_writer.h"
#include "protocols/beegfs/conversation.h"
#include "test/protocols/beegfs/captured.h"

namespace vpfs::beegfs {

using Buffer = std::vector<std::byte>;
using Action = Step::Action;

inline Buffer words(std::initializer_list<std::uint32_t> numbers) {
  Buffer body;
  ByteWriter out(body);
  for (const std::uint32_t number : numbers) out.u32(number);
  return body;
}

inline Buffer peer_info(NodeType type, std::uint32_t number) {
  return make_message({.type = MessageType::peer_info},
                      words({static_cast<std::uint32_t>(type), number}));
}

inline FileIo file_io(std::int64_t offset, std::int64_t count) {
  return {.offset = offset,
          .count = count,
          .access_flags = 4,
          .file_handle = "1A#5-68A-1",
          .client = 7,
          .path = {.flags = PathInfo::kHasOrigin, .owner = 1001, .directory = "4-68A-1"},
          .target = 101};
}

inline Buffer read_request(std::int64_t offset, std::int64_t count, std::uint16_t flags = 0) {
  return encode_file_io(
      {.feature_flags = flags, .type = MessageType::read_local_file, .target = 101, .user = 1001},
      file_io(offset, count));
}

inline Buffer write_request(std::int64_t offset, std::int64_t count, std::uint16_t flags = 0) {
  return encode_file_io(
      {.feature_flags = flags, .type = MessageType::write_local_file, .target = 101, .user = 1001},
      file_io(offset, count));
}

inline Buffer word(std::int64_t value) {
  Buffer bytes;
  ByteWriter(bytes).i64(value);
  return bytes;
}

inline Buffer joined(std::initializer_list<Buffer> parts) {
  Buffer all;
  for (const Buffer& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// Data that look like messages.
inline Buffer evil(std::size_t size) {
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

}  // namespace vpfs::beegfs
