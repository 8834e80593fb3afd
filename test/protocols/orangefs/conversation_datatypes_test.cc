// The ends of reads and writes of datatypes with holes, as the conversation sees them.

#include <cstddef>
#include <span>
#include <utility>
#include <variant>

#include <gtest/gtest.h>

#include "protocols/orangefs/conversation.h"
#include "protocols/orangefs/message.h"
#include "test/protocols/orangefs/conversation_messages.h"
#include "test/support/file_requests.h"

namespace vpfs::orangefs {
namespace {

// A read of the second of two datafiles: every fourth KiB of `kilobytes`.
Request strided_read(int kilobytes, Distribution distribution = SimpleStripe{}) {
  Request request = io_request(IoType::read, 0, 0);
  auto& io = std::get<IoRequestBody>(request.body);
  io.server_nr = 1;
  io.server_ct = 2;
  io.distribution = std::move(distribution);
  io.file_request =
      vpfs::test::DatatypeBuilder().contiguous(1024).hvector(kilobytes / 4, 1, 4096).request();
  io.aggregate_size = std::int64_t{kilobytes} / 4 * 1024;
  return request;
}

TEST(OrangefsConversation, StridedReadOfWholeFlowBuffersEndsAtItsLastByte) {
  OrangefsConversation conversation;
  // The other server has half of the 4 MiB.
  (void)feed(conversation, Sender::client, request_message(4, strided_read(16384)));
  EXPECT_EQ(conversation.held().bytes, 2U << 20);
  EXPECT_TRUE(conversation.end_shows(4));
  EXPECT_FALSE(feed(conversation, Sender::server, io_response(4, 64 << 20)).finished);
  for (int message = 0; message < 8; ++message) {
    EXPECT_TRUE(conversation.end_shows(4));
    const Step step =
        feed(conversation, Sender::server, raw_message(BmiMode::rendezvous, 4, 262'144));
    ASSERT_EQ(step.finished.has_value(), message == 7);
  }
}

TEST(OrangefsConversation, StridedReadEndsWithTheDatafile) {
  OrangefsConversation conversation;
  (void)feed(conversation, Sender::client, request_message(4, strided_read(16384)));
  // 1000 bytes into the KiB that is read of the fourth 4 KiB.
  EXPECT_FALSE(feed(conversation, Sender::server, io_response(4, 3 * 4096 + 1000)).finished);
  const Step last =
      feed(conversation, Sender::server, raw_message(BmiMode::eager, 4, 3 * 1024 + 1000));
  ASSERT_TRUE(last.finished);
  EXPECT_EQ(last.finished->bytes, 3U * 1024 + 1000);
}

TEST(OrangefsConversation, StridedReadOfNothingIsOverWithItsResponse) {
  for (const std::int64_t bstream_size : {0, 65536}) {
    OrangefsConversation conversation;
    Request request = strided_read(16384);
    // The read asks only for bytes past the first strip.
    std::get<IoRequestBody>(request.body).file_request_offset = 16384 * 2;
    (void)feed(conversation, Sender::client, request_message(4, request));
    EXPECT_TRUE(feed(conversation, Sender::server, io_response(4, bstream_size)).finished);
  }
}

TEST(OrangefsConversation, ReadOfAStridedTypeWithoutBytesHereIsOverWithItsResponse) {
  OrangefsConversation conversation;
  Request request = strided_read(16384);
  auto& io = std::get<IoRequestBody>(request.body);
  // One KiB of every other strip; the other server has all of them.
  io.file_request = vpfs::test::DatatypeBuilder().contiguous(1024).hvector(64, 1, 131072).request();
  io.aggregate_size = 64 * 1024;
  (void)feed(conversation, Sender::client, request_message(4, request));
  EXPECT_EQ(conversation.held().bytes, 0U);
  EXPECT_TRUE(feed(conversation, Sender::server, io_response(4, 64 << 20)).finished);
}

TEST(OrangefsConversation, ReadOfATwoDimensionalFileEndsAtItsLastByte) {
  OrangefsConversation conversation;
  Request request = io_request(IoType::read, 0, 2 << 20);
  auto& io = std::get<IoRequestBody>(request.body);
  io.server_nr = 1;
  io.server_ct = 2;
  io.distribution = TwoDStripe{.groups = 2, .strip_size = 65536, .factor = 4};
  (void)feed(conversation, Sender::client, request_message(4, request));
  EXPECT_EQ(conversation.held().bytes, 1U << 20);
  EXPECT_FALSE(feed(conversation, Sender::server, io_response(4, 600'000)).finished);
  EXPECT_FALSE(
      feed(conversation, Sender::server, raw_message(BmiMode::rendezvous, 4, 262'144)).finished);
  EXPECT_FALSE(
      feed(conversation, Sender::server, raw_message(BmiMode::rendezvous, 4, 262'144)).finished);
  EXPECT_TRUE(feed(conversation, Sender::server, raw_message(BmiMode::eager, 4, 600'000 - 524'288))
                  .finished);
}

TEST(OrangefsConversation, TheSizeOfFlowBuffersDoesNotMatter) {
  for (const std::size_t buffer : {std::size_t{4096}, std::size_t{65536}, std::size_t{1} << 20}) {
    OrangefsConversation conversation;
    (void)feed(conversation, Sender::client, request_message(4, strided_read(16384)));
    EXPECT_FALSE(feed(conversation, Sender::server, io_response(4, 64 << 20)).finished);
    for (std::size_t done = 0; done < std::size_t{2} << 20; done += buffer) {
      const Step step =
          feed(conversation, Sender::server, raw_message(BmiMode::rendezvous, 4, buffer));
      ASSERT_EQ(step.finished.has_value(), done + buffer == std::size_t{2} << 20) << buffer;
    }
  }
}

TEST(OrangefsConversation, SaysOfWhichReadsTheEndWillNotShow) {
  OrangefsConversation conversation;
  const VarStrip unknown{.strips = "as it comes"};
  (void)feed(conversation, Sender::client, request_message(1, strided_read(16384, unknown)));
  EXPECT_TRUE(conversation.end_shows(1)) << "the response may be the end";
  (void)feed(conversation, Sender::server, io_response(1, 64 << 20));
  EXPECT_FALSE(conversation.end_shows(1));
  EXPECT_FALSE(feed(conversation, Sender::server, raw_message(BmiMode::eager, 1, 1000)).finished);
  EXPECT_EQ(conversation.moved(1), 1000U);

  Request write = strided_read(16384, unknown);
  std::get<IoRequestBody>(write.body).io_type = IoType::write;
  (void)feed(conversation, Sender::client, request_message(2, write));
  EXPECT_TRUE(conversation.end_shows(2)) << "a write has its completion";
  (void)feed(conversation, Sender::client, request_message(3, small_write(1000)));
  EXPECT_TRUE(conversation.end_shows(3)) << "one answer";
  EXPECT_TRUE(conversation.end_shows(77)) << "nothing outstanding";
}

TEST(OrangefsConversation, ReadBackwardsPastTheEndIsOnlyBounded) {
  OrangefsConversation conversation;
  Request request = io_request(IoType::read, 0, 3000);
  std::get<IoRequestBody>(request.body).file_request =
      vpfs::test::DatatypeBuilder().hindexed({1000, 1000, 1000}, {9000, 5000, 1000}).request();
  (void)feed(conversation, Sender::client, request_message(1, request));
  EXPECT_TRUE(conversation.end_shows(1));
  (void)feed(conversation, Sender::server, io_response(1, 6000));
  EXPECT_FALSE(conversation.end_shows(1));
  EXPECT_FALSE(feed(conversation, Sender::server, raw_message(BmiMode::eager, 1, 3000)).finished)
      << "it may be wrong about what is bounded";
  conversation.ended(1);
  (void)feed(conversation, Sender::client, request_message(1, request));
  (void)feed(conversation, Sender::server, io_response(1, 20'000));
  EXPECT_TRUE(conversation.end_shows(1)) << "everything is there";
  EXPECT_TRUE(feed(conversation, Sender::server, raw_message(BmiMode::eager, 1, 3000)).finished);
}

}  // namespace
}  // namespace vpfs::orangefs
