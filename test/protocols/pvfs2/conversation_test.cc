#include "protocols/pvfs2/conversation.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "protocols/pvfs2/errors.h"
#include "protocols/pvfs2/message.h"
#include "test/protocols/pvfs2/captured.h"
#include "test/support/file_requests.h"
#include "test/support/replay.h"

namespace vpfs::pvfs2 {
namespace {

using Buffer = std::vector<std::byte>;

Request io_request(IoType type, std::int64_t offset, std::int64_t size,
                   const std::string& job = "") {
  Request request;
  request.capability.issuer = "S:s0";
  request.capability.handles = {100, 200};
  request.hints.push_back({.type = HintType::handle, .raw_type = 3, .number = 100});
  if (!job.empty()) request.hints.push_back({.key = "jobid", .text = job});
  request.body = IoRequestBody{.handle = 200,
                               .fs_id = 7,
                               .io_type = type,
                               .distribution = SimpleStripe{},
                               .file_request = FileRequest::contiguous_bytes(),
                               .file_request_offset = offset,
                               .aggregate_size = size};
  return request;
}

Request small_write(std::size_t size) {
  Request request;
  request.body = SmallIoRequest{.handle = 200,
                                .fs_id = 7,
                                .io_type = IoType::write,
                                .distribution = SimpleStripe{},
                                .file_request = FileRequest::contiguous_bytes(),
                                .aggregate_size = static_cast<std::int64_t>(size),
                                .total_bytes = static_cast<std::int64_t>(size),
                                .data = Buffer(size, std::byte{0x5a})};
  return request;
}

Request getattr(std::uint32_t uid) {
  Request request;
  request.body = GetattrRequest{.handle = 100, .fs_id = 7, .credential = {.uid = uid}};
  return request;
}

Buffer raw_message(BmiMode mode, Tag tag, std::size_t payload_size) {
  const auto header = encode(BmiHeader{.mode = mode, .tag = tag, .payload_size = payload_size});
  Buffer message(header.begin(), header.end());
  message.resize(message.size() + payload_size, std::byte{0xcd});
  return message;
}

// Feeds a whole message and expects one step that covers it.
Step feed(Conversation& conversation, Sender from, const Buffer& message) {
  const Step step = conversation.next(from, message);
  EXPECT_EQ(step.size, message.size());
  return step;
}

Buffer io_response(Tag tag, std::int64_t bstream_size) {
  return response_message(tag, {.body = IoResponse{.bstream_size = bstream_size}});
}

TEST(Pvfs2Conversation, HoldsOnlyIoAndSmallIo) {
  Pvfs2Conversation conversation;
  EXPECT_EQ(feed(conversation, Sender::client, request_message(1, getattr(5))).action,
            Step::Action::forward);
  EXPECT_EQ(
      feed(conversation, Sender::client, request_message(2, io_request(IoType::read, 0, 1000)))
          .action,
      Step::Action::hold);
  EXPECT_EQ(conversation.held().key, 2U);
  EXPECT_EQ(conversation.held().kind, RequestKind::read);
  EXPECT_EQ(conversation.held().bytes, 1000U);
  EXPECT_EQ(conversation.held().file_system, 7);
  EXPECT_EQ(feed(conversation, Sender::client, request_message(3, small_write(4096))).action,
            Step::Action::hold);
  EXPECT_EQ(conversation.held().kind, RequestKind::write);
  EXPECT_EQ(conversation.held().bytes, 4096U);
}

TEST(Pvfs2Conversation, AsksForMoreUntilARequestIsWholeAndNeverTwice) {
  const Buffer message = request_message(9, io_request(IoType::write, 0, 65536));
  Pvfs2Conversation conversation;
  for (std::size_t size = 0; size < message.size(); ++size) {
    const Step step = conversation.next(Sender::client, std::span(message).first(size));
    ASSERT_EQ(step.action, Step::Action::need_more);
    ASSERT_GT(step.size, size);
    ASSERT_LE(step.size, message.size());
  }
  EXPECT_EQ(feed(conversation, Sender::client, message).action, Step::Action::hold);
}

TEST(Pvfs2Conversation, ReadEndsWithItsLastDataByte) {
  Pvfs2Conversation conversation;
  (void)feed(conversation, Sender::client,
             request_message(4, io_request(IoType::read, 0, 400'000)));
  EXPECT_FALSE(feed(conversation, Sender::server, io_response(4, 1 << 20)).finished);
  EXPECT_FALSE(
      feed(conversation, Sender::server, raw_message(BmiMode::rendezvous, 4, 262'144)).finished);
  const Step last =
      feed(conversation, Sender::server, raw_message(BmiMode::rendezvous, 4, 400'000 - 262'144));
  ASSERT_TRUE(last.finished);
  EXPECT_EQ(last.finished->key, 4U);
  EXPECT_EQ(last.finished->bytes, 400'000U);
  EXPECT_FALSE(last.finished->failed);
}

TEST(Pvfs2Conversation, ReadIsClippedAtTheEndOfTheDatafile) {
  Pvfs2Conversation conversation;
  (void)feed(conversation, Sender::client,
             request_message(4, io_request(IoType::read, 100, 10 << 20)));
  EXPECT_FALSE(feed(conversation, Sender::server, io_response(4, 1100)).finished);
  const Step last = feed(conversation, Sender::server, raw_message(BmiMode::eager, 4, 1000));
  ASSERT_TRUE(last.finished);
  EXPECT_EQ(last.finished->bytes, 1000U);
}

TEST(Pvfs2Conversation, ReadPastTheEndIsOverWithItsResponse) {
  Pvfs2Conversation conversation;
  (void)feed(conversation, Sender::client,
             request_message(4, io_request(IoType::read, 5000, 1000)));
  const Step step = feed(conversation, Sender::server, io_response(4, 5000));
  ASSERT_TRUE(step.finished);
  EXPECT_EQ(step.finished->bytes, 0U);
}

TEST(Pvfs2Conversation, FlowDataIsNeverTakenForAMessage) {
  Pvfs2Conversation conversation;
  // The data of this read look like a whole error response, and like a BMI header.
  const Buffer evil = error_message(4, Op::io, -5);
  const std::span<const std::byte> data = std::span(evil).subspan(kBmiHeaderSize);
  (void)feed(
      conversation, Sender::client,
      request_message(4, io_request(IoType::read, 0, static_cast<std::int64_t>(2 * data.size()))));
  (void)feed(conversation, Sender::server, io_response(4, 1 << 20));
  EXPECT_FALSE(feed(conversation, Sender::server, evil).finished);
  const Step last = feed(conversation, Sender::server, evil);
  ASSERT_TRUE(last.finished);
  EXPECT_EQ(last.finished->bytes, 2 * data.size());
  EXPECT_FALSE(last.finished->failed);
}

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

TEST(Pvfs2Conversation, StridedReadOfWholeFlowBuffersEndsAtItsLastByte) {
  Pvfs2Conversation conversation;
  // Half of 4 MiB is the other server's.
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

TEST(Pvfs2Conversation, StridedReadEndsWithTheDatafile) {
  Pvfs2Conversation conversation;
  (void)feed(conversation, Sender::client, request_message(4, strided_read(16384)));
  // 1000 bytes into the KiB that is read of the fourth 4 KiB.
  EXPECT_FALSE(feed(conversation, Sender::server, io_response(4, 3 * 4096 + 1000)).finished);
  const Step last =
      feed(conversation, Sender::server, raw_message(BmiMode::eager, 4, 3 * 1024 + 1000));
  ASSERT_TRUE(last.finished);
  EXPECT_EQ(last.finished->bytes, 3U * 1024 + 1000);
}

TEST(Pvfs2Conversation, StridedReadOfNothingIsOverWithItsResponse) {
  for (const std::int64_t bstream_size : {0, 65536}) {
    Pvfs2Conversation conversation;
    Request request = strided_read(16384);
    // Only bytes past the first strip are asked for.
    std::get<IoRequestBody>(request.body).file_request_offset = 16384 * 2;
    (void)feed(conversation, Sender::client, request_message(4, request));
    EXPECT_TRUE(feed(conversation, Sender::server, io_response(4, bstream_size)).finished);
  }
}

TEST(Pvfs2Conversation, ReadOfAStridedTypeWithoutBytesHereIsOverWithItsResponse) {
  Pvfs2Conversation conversation;
  Request request = strided_read(16384);
  auto& io = std::get<IoRequestBody>(request.body);
  // One KiB of every other strip: all of them are the other server's.
  io.file_request = vpfs::test::DatatypeBuilder().contiguous(1024).hvector(64, 1, 131072).request();
  io.aggregate_size = 64 * 1024;
  (void)feed(conversation, Sender::client, request_message(4, request));
  EXPECT_EQ(conversation.held().bytes, 0U);
  EXPECT_TRUE(feed(conversation, Sender::server, io_response(4, 64 << 20)).finished);
}

TEST(Pvfs2Conversation, ReadOfATwoDimensionalFileEndsAtItsLastByte) {
  Pvfs2Conversation conversation;
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

TEST(Pvfs2Conversation, TheSizeOfFlowBuffersDoesNotMatter) {
  for (const std::size_t buffer : {std::size_t{4096}, std::size_t{65536}, std::size_t{1} << 20}) {
    Pvfs2Conversation conversation;
    (void)feed(conversation, Sender::client, request_message(4, strided_read(16384)));
    EXPECT_FALSE(feed(conversation, Sender::server, io_response(4, 64 << 20)).finished);
    for (std::size_t done = 0; done < std::size_t{2} << 20; done += buffer) {
      const Step step =
          feed(conversation, Sender::server, raw_message(BmiMode::rendezvous, 4, buffer));
      ASSERT_EQ(step.finished.has_value(), done + buffer == std::size_t{2} << 20) << buffer;
    }
  }
}

TEST(Pvfs2Conversation, SaysOfWhichReadsTheEndWillNotShow) {
  Pvfs2Conversation conversation;
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

TEST(Pvfs2Conversation, ReadBackwardsPastTheEndIsOnlyBounded) {
  Pvfs2Conversation conversation;
  Request request = io_request(IoType::read, 0, 3000);
  std::get<IoRequestBody>(request.body).file_request =
      vpfs::test::DatatypeBuilder().hindexed({1000, 1000, 1000}, {9000, 5000, 1000}).request();
  (void)feed(conversation, Sender::client, request_message(1, request));
  EXPECT_TRUE(conversation.end_shows(1));
  (void)feed(conversation, Sender::server, io_response(1, 6000));
  EXPECT_FALSE(conversation.end_shows(1));
  conversation.forget(1);
  (void)feed(conversation, Sender::client, request_message(1, request));
  (void)feed(conversation, Sender::server, io_response(1, 20'000));
  EXPECT_TRUE(conversation.end_shows(1)) << "everything is there";
  EXPECT_TRUE(feed(conversation, Sender::server, raw_message(BmiMode::eager, 1, 3000)).finished);
}

TEST(Pvfs2Conversation, WriteEndsWithItsCompletion) {
  Pvfs2Conversation conversation;
  (void)feed(conversation, Sender::client,
             request_message(6, io_request(IoType::write, 0, 300'000)));
  EXPECT_FALSE(feed(conversation, Sender::server, io_response(6, 0)).finished);
  EXPECT_EQ(feed(conversation, Sender::client, raw_message(BmiMode::rendezvous, 6, 262'144)).action,
            Step::Action::forward);
  EXPECT_EQ(
      feed(conversation, Sender::client, raw_message(BmiMode::rendezvous, 6, 300'000 - 262'144))
          .action,
      Step::Action::forward);
  const Step last =
      feed(conversation, Sender::server,
           response_message(6, {.body = WriteCompletionResponse{.total_completed = 300'000}}));
  ASSERT_TRUE(last.finished);
  EXPECT_EQ(last.finished->bytes, 300'000U);
}

TEST(Pvfs2Conversation, AnErrorResponseEndsAnIo) {
  Pvfs2Conversation conversation;
  (void)feed(conversation, Sender::client,
             request_message(6, io_request(IoType::write, 0, 300'000)));
  const Step step =
      feed(conversation, Sender::server, error_message(6, Op::io, status_from_errno(EACCES)));
  ASSERT_TRUE(step.finished);
  EXPECT_TRUE(step.finished->failed);
  EXPECT_EQ(step.finished->bytes, 0U);
}

TEST(Pvfs2Conversation, ManyOperationsInterleaveOnOneConnection) {
  Pvfs2Conversation conversation;
  for (Tag tag = 1; tag <= 200; ++tag) {
    (void)feed(conversation, Sender::client,
               request_message(tag, io_request(tag % 2 ? IoType::read : IoType::write, 0, 1000)));
  }
  for (Tag tag = 200; tag >= 1; --tag) {
    EXPECT_FALSE(feed(conversation, Sender::server, io_response(tag, 1000)).finished);
  }
  int finished = 0;
  for (Tag tag = 1; tag <= 200; ++tag) {
    const Buffer message =
        tag % 2 ? raw_message(BmiMode::eager, tag, 1000)
                : response_message(tag, {.body = WriteCompletionResponse{.total_completed = 1000}});
    const Step step = feed(conversation, Sender::server, message);
    ASSERT_TRUE(step.finished);
    EXPECT_EQ(step.finished->key, tag);
    finished += step.finished->bytes == 1000 ? 1 : 0;
  }
  EXPECT_EQ(finished, 200);
}

TEST(Pvfs2Conversation, EqualRequestsWithDifferentTagsAreBothHeld) {
  Pvfs2Conversation conversation;
  const Request request = io_request(IoType::read, 0, 1000);
  EXPECT_EQ(feed(conversation, Sender::client, request_message(1, request)).action,
            Step::Action::hold);
  EXPECT_EQ(feed(conversation, Sender::client, request_message(2, request)).action,
            Step::Action::hold);
}

TEST(Pvfs2Conversation, ATagInUseLosesTheFraming) {
  Pvfs2Conversation conversation;
  const Buffer message = request_message(1, io_request(IoType::read, 0, 1000));
  (void)feed(conversation, Sender::client, message);
  EXPECT_EQ(conversation.next(Sender::client, message).action, Step::Action::lost_framing);
  EXPECT_NE(conversation.problem().find("tag 1"), std::string::npos);
}

TEST(Pvfs2Conversation, ATagMayComeAgainOnceItsIoIsOver) {
  Pvfs2Conversation conversation;
  const Buffer message = request_message(1, io_request(IoType::read, 5000, 1000));
  (void)feed(conversation, Sender::client, message);
  (void)feed(conversation, Sender::server, io_response(1, 0));
  EXPECT_EQ(feed(conversation, Sender::client, message).action, Step::Action::hold);
}

TEST(Pvfs2Conversation, GarbageAndOversizedRequestsLoseTheFraming) {
  Pvfs2Conversation conversation;
  const Buffer garbage(24, std::byte{0x41});
  EXPECT_EQ(conversation.next(Sender::client, garbage).action, Step::Action::lost_framing);
  EXPECT_FALSE(conversation.problem().empty());
  EXPECT_EQ(conversation.next(Sender::client, raw_message(BmiMode::unexpected, 1, 16385)).action,
            Step::Action::lost_framing);
  EXPECT_EQ(conversation.next(Sender::server, raw_message(BmiMode::unexpected, 1, 16)).action,
            Step::Action::lost_framing);
}

TEST(Pvfs2Conversation, UnknownMessagesWithSoundFramingPass) {
  Pvfs2Conversation conversation;
  EXPECT_EQ(feed(conversation, Sender::client, raw_message(BmiMode::unexpected, 1, 100)).action,
            Step::Action::forward);
  EXPECT_EQ(feed(conversation, Sender::client, raw_message(BmiMode::unexpected, 2, 3)).action,
            Step::Action::forward);
  EXPECT_EQ(feed(conversation, Sender::client, raw_message(BmiMode::rendezvous, 3, 70'000)).action,
            Step::Action::forward);
  EXPECT_EQ(feed(conversation, Sender::server, raw_message(BmiMode::eager, 4, 10)).action,
            Step::Action::forward);
  Buffer broken = request_message(5, io_request(IoType::read, 0, 1000));
  broken.resize(broken.size() - 8);  // an IO whose fields reach past its end
  const std::uint64_t size = broken.size() - kBmiHeaderSize;
  std::memcpy(broken.data() + 16, &size, sizeof size);
  EXPECT_EQ(feed(conversation, Sender::client, broken).action, Step::Action::forward);
}

TEST(Pvfs2Conversation, ShowsHintsAndExactlyOneUid) {
  Pvfs2Conversation conversation;
  const Buffer io = request_message(1, io_request(IoType::read, 0, 10, "climate"));
  (void)feed(conversation, Sender::client, io);
  EXPECT_EQ(conversation.held_hint("jobid"), "climate");
  EXPECT_FALSE(conversation.held_hint("other"));
  EXPECT_FALSE(conversation.held().uid);
  (void)feed(conversation, Sender::client, request_message(2, getattr(1000)));
  (void)feed(conversation, Sender::client, request_message(3, io_request(IoType::read, 0, 10)));
  EXPECT_EQ(conversation.held().uid, 1000U);
  (void)feed(conversation, Sender::client, request_message(4, getattr(1001)));
  (void)feed(conversation, Sender::client, request_message(5, io_request(IoType::read, 0, 10)));
  EXPECT_FALSE(conversation.held().uid);
  (void)feed(conversation, Sender::client, request_message(6, getattr(1000)));
  (void)feed(conversation, Sender::client, request_message(7, io_request(IoType::read, 0, 10)));
  EXPECT_FALSE(conversation.held().uid) << "two users have been seen; which one this is is unknown";
}

TEST(Pvfs2Conversation, LearnsTheClientsTimeoutFromGetconfig) {
  Pvfs2Conversation conversation;
  Request request;
  request.body = EmptyRequest{.op = Op::getconfig};
  (void)feed(conversation, Sender::client, request_message(1, request));
  EXPECT_FALSE(conversation.client_timeout());
  const std::string text =
      "<Defaults>\n  ServerJobBMITimeoutSecs 30\n"
      "  ClientJobBMITimeoutSecs 17\n</Defaults>\n"
      "<FileSystem>\n  Name vpfs\n  ID 9\n</FileSystem>\n" +
      std::string(30'000, '#');
  const Buffer response = response_message(
      1, {.body = GetconfigResponse{.size = static_cast<std::uint32_t>(text.size() + 1),
                                    .config = text}});
  EXPECT_EQ(conversation.next(Sender::server, std::span(response).first(1000)).action,
            Step::Action::need_more);
  EXPECT_EQ(feed(conversation, Sender::server, response).action, Step::Action::forward);
  ASSERT_TRUE(conversation.client_timeout());
  EXPECT_EQ(conversation.client_timeout()->timeout, std::chrono::seconds(17));
  EXPECT_EQ(conversation.client_timeout()->file_systems, std::vector<std::int64_t>{9});
}

// The contents of an extended attribute, say, are a client's own.
TEST(Pvfs2Conversation, NoAnswerIsTakenForAnotherRequests) {
  Pvfs2Conversation conversation;
  Request request;
  request.body = EmptyRequest{.op = Op::getconfig};
  (void)feed(conversation, Sender::client, request_message(1, getattr(0)));
  EXPECT_EQ(conversation.next(Sender::client, request_message(1, request)).action,
            Step::Action::lost_framing);
  EXPECT_EQ(conversation.problem(), "tag 1 of a request that is still under way is used again");
}

TEST(Pvfs2Conversation, StopsReadingRequestsWhoseAnswersDoNotCome) {
  Pvfs2Conversation conversation;
  Request request;
  request.body = EmptyRequest{.op = Op::getconfig};
  Tag tag = 0;
  for (; tag < Pvfs2Conversation::kMostPassing; ++tag) {
    ASSERT_EQ(feed(conversation, Sender::client, request_message(tag, request)).action,
              Step::Action::forward);
  }
  const Buffer next = request_message(tag, request);
  EXPECT_EQ(conversation.next(Sender::client, next).action, Step::Action::wait);
  (void)feed(conversation, Sender::server, error_message(7, Op::getconfig, -1));
  EXPECT_EQ(conversation.next(Sender::client, next).action, Step::Action::forward);
  EXPECT_EQ(conversation.next(Sender::client, request_message(tag + 1, request)).action,
            Step::Action::wait);
  conversation.forget_answers();
  EXPECT_EQ(conversation.next(Sender::client, request_message(tag + 1, request)).action,
            Step::Action::forward);
}

TEST(Pvfs2Conversation, KnowsWhenAWriteWaitsForItsClient) {
  Pvfs2Conversation conversation;
  (void)feed(conversation, Sender::client,
             request_message(3, io_request(IoType::write, 0, 100'000)));
  EXPECT_FALSE(conversation.awaits_client(3, false)) << "the server has not answered";
  (void)feed(conversation, Sender::server, response_message(3, {.body = IoResponse{}}));
  EXPECT_TRUE(conversation.awaits_client(3, false));
  (void)feed(conversation, Sender::client, raw_message(BmiMode::rendezvous, 3, 60'000));
  EXPECT_TRUE(conversation.awaits_client(3, false));
  (void)feed(conversation, Sender::client, raw_message(BmiMode::rendezvous, 3, 40'000));
  EXPECT_FALSE(conversation.awaits_client(3, false));
  EXPECT_TRUE(conversation.awaits_client(3, true)) << "of the last message some is not there yet";
  EXPECT_EQ(conversation.data_from_client(), 100'000U);
}

TEST(Pvfs2Conversation, AReadsBytesFollowFromTheFilesSize) {
  Pvfs2Conversation conversation;
  (void)feed(conversation, Sender::client,
             request_message(3, io_request(IoType::read, 0, 10'000'000)));
  EXPECT_NE(conversation.held().file, 0U);
  EXPECT_EQ(conversation.held().bytes, 10'000'000U);
  EXPECT_EQ(conversation.held_bytes_of(4096), 4096U);
  EXPECT_EQ(conversation.held_bytes_of(UINT64_MAX), 10'000'000U);
  (void)feed(conversation, Sender::server,
             response_message(3, {.body = IoResponse{.bstream_size = 4096}}));
  const Step step = feed(conversation, Sender::server, raw_message(BmiMode::rendezvous, 3, 4096));
  ASSERT_TRUE(step.finished);
  EXPECT_EQ(step.finished->file, conversation.held().file);
  EXPECT_EQ(step.finished->file_size, 4096U);
}

TEST(Pvfs2Conversation, RefusesAHeldRequestWithAnErrorOfItsOperation) {
  Pvfs2Conversation conversation;
  (void)feed(conversation, Sender::client, request_message(8, small_write(100)));
  const Buffer refusal = conversation.refuse(8);
  const auto header = decode_bmi_header(refusal);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->tag, 8U);
  const auto response = decode_response(std::span(refusal).subspan(kBmiHeaderSize));
  ASSERT_TRUE(response);
  EXPECT_EQ(op_of(response->body), Op::small_io);
  EXPECT_EQ(errno_from_status(response->status), ETIMEDOUT);
  // Its tag is free again.
  EXPECT_EQ(feed(conversation, Sender::client, request_message(8, small_write(100))).action,
            Step::Action::hold);
}

TEST(Pvfs2Conversation, WhatComesOfAForgottenIoPasses) {
  Pvfs2Conversation conversation;
  (void)feed(conversation, Sender::client,
             request_message(8, io_request(IoType::read, 0, 300'000)));
  (void)feed(conversation, Sender::server, io_response(8, 1 << 20));
  conversation.forget(8);
  const Step step =
      feed(conversation, Sender::server, raw_message(BmiMode::rendezvous, 8, 262'144));
  EXPECT_EQ(step.action, Step::Action::forward);
  EXPECT_FALSE(step.finished);
}

TEST(Pvfs2Conversation, EveryIoOfEveryCaptureIsHeldOnceAndFinishesOnce) {
  int held = 0;
  for (const std::string& file : test::capture_files()) {
    const std::vector<test::CapturedStream> streams = test::captured_streams(file);
    for (std::size_t i = 0; i + 1 < streams.size(); i += 2) {
      for (const std::size_t window : {std::size_t{1}, std::size_t{300}, std::size_t{1} << 20}) {
        Pvfs2Conversation conversation;
        vpfs::test::Replay client(conversation, streams[i]);
        vpfs::test::Replay server(conversation, streams[i + 1]);
        for (const auto& [from, size] : streams[i].order) {
          (from == Sender::client ? client : server).arrive(size, window);
          ASSERT_FALSE(HasFatalFailure()) << streams[i].name;
        }
        EXPECT_EQ(client.at(), streams[i].bytes.size()) << streams[i].name;
        EXPECT_EQ(server.at(), streams[i + 1].bytes.size()) << streams[i + 1].name;
        EXPECT_EQ(server.finished(), client.held()) << streams[i].name << " window " << window;
        held += client.held();
      }
    }
  }
  EXPECT_EQ(held, 3 * 32) << "the captures hold 32 I/Os";
}

}  // namespace
}  // namespace vpfs::pvfs2
