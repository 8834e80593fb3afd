#include "protocols/beegfs/file_io.h"

#include <limits>

#include <gtest/gtest.h>

#include "test/protocols/beegfs/captured.h"

namespace vpfs::beegfs {
namespace {

constexpr FileIo kIo{.offset = 4096,
                     .count = 524288,
                     .access_flags = 6,
                     .owner = FileOwner{.uid = 1001, .gid = 1002},
                     .file_handle = "1A2B3C4D#0-5F6E7D8C-1",
                     .client = 2,
                     .path = {.flags = 1, .owner = 1003, .directory = "2-5F6E7D8C-1"},
                     .target = 101};

std::vector<std::byte> write_message(const FileIo& io) {
  return encode_file_io({.type = MessageType::write_local_file}, io);
}

std::expected<FileIo, FileIoError> io_of(std::span<const std::byte> message) {
  return decode_file_io(*decode_message_header(message), message);
}

TEST(FileIo, WriteWithTheOwnerOfItsFileSurvivesTheWire) {
  const auto message = write_message(kIo);
  EXPECT_EQ(decode_message_header(message)->feature_flags, kWriteHasOwner);
  EXPECT_EQ(io_of(message), kIo);
}

TEST(FileIo, WriteAndReadWithoutOwnerSurviveTheWire) {
  FileIo io = kIo;
  io.owner.reset();
  EXPECT_EQ(io_of(write_message(io)), io);
  EXPECT_EQ(io_of(encode_file_io({.type = MessageType::read_local_file}, io)), io);
}

TEST(FileIo, PathWithoutOriginHasNoOwnerAndDirectory) {
  FileIo io = kIo;
  io.path = {.flags = 4};
  EXPECT_EQ(io_of(write_message(io)), io);
}

TEST(FileIo, TextsOfEveryAlignmentSurviveTheWire) {
  for (const std::string_view handle : {"", "a", "ab", "abc", "abcd", "abcde"}) {
    FileIo io = kIo;
    io.file_handle = handle;
    const auto message = write_message(io);
    EXPECT_EQ(io_of(message), io) << handle;
    EXPECT_EQ((message.size() - 2) % 4, 0U) << "all before the target is aligned";
  }
}

TEST(FileIo, MessageCutAtAnyByteIsTooShort) {
  const auto message = write_message(kIo);
  const auto header = decode_message_header(message);
  for (std::size_t size = kMessageHeaderSize; size < message.size(); ++size) {
    ASSERT_EQ(decode_file_io(*header, std::span(message).first(size)).error(),
              FileIoError::too_short);
  }
  EXPECT_EQ(decode_file_io(*header, {}).error(), FileIoError::too_short);
}

TEST(FileIo, NegativeCountAndNulInATextAreRefused) {
  FileIo io = kIo;
  for (const std::int64_t count : {std::int64_t{-1}, std::numeric_limits<std::int64_t>::min()}) {
    io.count = count;
    EXPECT_EQ(io_of(write_message(io)).error(), FileIoError::negative_count);
  }
  io = kIo;
  io.file_handle = std::string_view("a\0b", 3);
  EXPECT_EQ(io_of(write_message(io)).error(), FileIoError::bad_text);
  io = kIo;
  io.path.directory = std::string_view("\0", 1);
  EXPECT_EQ(io_of(write_message(io)).error(), FileIoError::bad_text);
}

TEST(FileIo, WriteAnswerIsWhatServersSend) {
  const auto answer = write_answer(4096);
  bool found = false;
  for (const auto& captured : test::captured_messages()) found |= captured.bytes == answer;
  EXPECT_TRUE(found);
}

TEST(FileIo, EveryCapturedIoEncodesToTheSameBytes) {
  int ios = 0;
  for (const auto& captured : test::captured_messages()) {
    const auto header = decode_message_header(captured.bytes);
    if (header->type != MessageType::write_local_file &&
        header->type != MessageType::read_local_file) {
      continue;
    }
    const auto io = decode_file_io(*header, captured.bytes);
    ASSERT_TRUE(io) << captured.name;
    EXPECT_EQ(encode_file_io(*header, *io), captured.bytes) << captured.name;
    ++ios;
  }
  EXPECT_GT(ios, 100);
}

}  // namespace
}  // namespace vpfs::beegfs
