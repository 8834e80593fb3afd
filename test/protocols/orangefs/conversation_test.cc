#include "protocols/orangefs/conversation.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "protocols/orangefs/errors.h"
#include "protocols/orangefs/message.h"
#include "test/protocols/orangefs/captured.h"
#include "test/protocols/orangefs/conversation_messages.h"
#include "test/support/replay.h"

namespace vpfs::orangefs {
namespace {

TEST(OrangefsConversation, HoldsOnlyIoAndSmallIo) {
  OrangefsConversation conversation;
  EXPECT_EQ(feed(conversation, Sender::client, request_message(1, getattr(5))).action,
            Step::Action::forward);
  EXPECT_EQ(
      feed(conversation, Sender::client, request_message(2, io_request(IoType::read, 0, 1000)))
          .action,
      Step::Action::hold);
  EXPECT_EQ(conversation.held().key, 2U);
  EXPECT_EQ(conversation.held().kind, IoKind::read);
  EXPECT_EQ(conversation.held().bytes, 1000U);
  EXPECT_EQ(conversation.held().file_system, 7);
  EXPECT_EQ(feed(conversation, Sender::client, request_message(3, small_write(4096))).action,
            Step::Action::hold);
  EXPECT_EQ(conversation.held().kind, IoKind::write);
  EXPECT_EQ(conversation.held().bytes, 4096U);
}

// The server has a queue for each handle, whatever the file system.
TEST(OrangefsConversation, ARequestIsInTheQueueOfItsHandleUntilItIsAnswered) {
  OrangefsConversation conversation;
  conversation.hold_metadata(true);
  (void)feed(conversation, Sender::client, request_message(1, io_request(IoType::read, 0, 9000)));
  EXPECT_EQ(conversation.held().handle, 200U);
  (void)feed(conversation, Sender::client, request_message(2, io_request(IoType::write, 0, 9000)));
  (void)feed(conversation, Sender::client, request_message(3, small_write(4096)));
  EXPECT_EQ(conversation.held().handle, 200U);
  (void)feed(conversation, Sender::client, request_message(4, getattr(5)));
  EXPECT_EQ(conversation.held().handle, 100U);
  for (Tag tag = 1; tag <= 4; ++tag) EXPECT_TRUE(conversation.is_queued(tag));
  EXPECT_FALSE(conversation.is_queued(5));

  (void)feed(conversation, Sender::server, io_response(1, 1 << 20));
  (void)feed(conversation, Sender::server, io_response(2, 0));
  EXPECT_FALSE(conversation.is_queued(1)) << "its data come";
  EXPECT_FALSE(conversation.is_queued(2)) << "the server waits for its data";
  EXPECT_TRUE(conversation.is_queued(3));
}

TEST(OrangefsConversation, AsksForMoreUntilARequestIsWholeAndNeverTwice) {
  const Buffer message = request_message(9, io_request(IoType::write, 0, 65536));
  OrangefsConversation conversation;
  for (std::size_t size = 0; size < message.size(); ++size) {
    const Step step = conversation.next(Sender::client, std::span(message).first(size));
    ASSERT_EQ(step.action, Step::Action::need_more);
    ASSERT_GT(step.size, size);
    ASSERT_LE(step.size, message.size());
  }
  EXPECT_EQ(feed(conversation, Sender::client, message).action, Step::Action::hold);
}

TEST(OrangefsConversation, ReadEndsWithItsLastDataByte) {
  OrangefsConversation conversation;
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

TEST(OrangefsConversation, ReadIsClippedAtTheEndOfTheDatafile) {
  OrangefsConversation conversation;
  (void)feed(conversation, Sender::client,
             request_message(4, io_request(IoType::read, 100, 10 << 20)));
  EXPECT_FALSE(feed(conversation, Sender::server, io_response(4, 1100)).finished);
  const Step last = feed(conversation, Sender::server, raw_message(BmiMode::eager, 4, 1000));
  ASSERT_TRUE(last.finished);
  EXPECT_EQ(last.finished->bytes, 1000U);
}

TEST(OrangefsConversation, ReadPastTheEndIsOverWithItsResponse) {
  OrangefsConversation conversation;
  (void)feed(conversation, Sender::client,
             request_message(4, io_request(IoType::read, 5000, 1000)));
  const Step step = feed(conversation, Sender::server, io_response(4, 5000));
  ASSERT_TRUE(step.finished);
  EXPECT_EQ(step.finished->bytes, 0U);
}

TEST(OrangefsConversation, FlowDataIsNeverTakenForAMessage) {
  OrangefsConversation conversation;
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

TEST(OrangefsConversation, WriteEndsWithItsCompletion) {
  OrangefsConversation conversation;
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

TEST(OrangefsConversation, AnErrorResponseEndsAnIo) {
  OrangefsConversation conversation;
  (void)feed(conversation, Sender::client,
             request_message(6, io_request(IoType::write, 0, 300'000)));
  const Step step =
      feed(conversation, Sender::server, error_message(6, Op::io, status_from_errno(EACCES)));
  ASSERT_TRUE(step.finished);
  EXPECT_TRUE(step.finished->failed);
  EXPECT_EQ(step.finished->bytes, 0U);
}

TEST(OrangefsConversation, ManyOperationsInterleaveOnOneConnection) {
  OrangefsConversation conversation;
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

// The server does not look at the NUL behind a text, so it must not be a way around the scheduler.
TEST(OrangefsConversation, AnIoWhoseTextsHaveNoNulIsHeld) {
  OrangefsConversation conversation;
  Buffer message = request_message(1, io_request(IoType::read, 0, 1000, "4711"));
  int changed = 0;
  for (const std::string_view text : {"S:s0", "jobid", "4711"}) {
    const auto bytes = std::as_bytes(std::span(text));
    const auto found = std::ranges::search(message, bytes);
    ASSERT_FALSE(found.empty()) << text;
    *found.end() = std::byte{0xee};
    ++changed;
  }
  EXPECT_EQ(changed, 3);
  EXPECT_EQ(feed(conversation, Sender::client, message).action, Step::Action::hold);
  EXPECT_EQ(conversation.held_hint("jobid"), "4711");
}

TEST(OrangefsConversation, TheServerMayNotAnswerARequestThatIsHeld) {
  for (const bool released : {false, true}) {
    OrangefsConversation conversation;
    const Buffer message = request_message(1, io_request(IoType::read, 0, 1000));
    ASSERT_EQ(conversation.next(Sender::client, message).action, Step::Action::hold);
    if (released) conversation.released(1);
    const Step step = conversation.next(Sender::server, io_response(1, 1000));
    EXPECT_EQ(step.action, released ? Step::Action::forward : Step::Action::lost_framing);
    if (released) continue;
    EXPECT_NE(conversation.problem().find("tag 1"), std::string::npos) << conversation.problem();
    EXPECT_FALSE(conversation.refuse(1).empty()) << "it can still be refused";
  }
}

TEST(OrangefsConversation, IsAtRestWhenRequestsThatPassedAreAnswered) {
  OrangefsConversation conversation;
  EXPECT_TRUE(conversation.at_rest());
  (void)feed(conversation, Sender::client, request_message(1, getattr(7)));
  EXPECT_FALSE(conversation.at_rest());
  (void)feed(conversation, Sender::server, raw_message(BmiMode::eager, 1, 100));
  EXPECT_TRUE(conversation.at_rest());
}

TEST(OrangefsConversation, GarbageAndOversizedRequestsLoseTheFraming) {
  OrangefsConversation conversation;
  const Buffer garbage(24, std::byte{0x41});
  EXPECT_EQ(conversation.next(Sender::client, garbage).action, Step::Action::lost_framing);
  EXPECT_FALSE(conversation.problem().empty());
  EXPECT_EQ(conversation.next(Sender::client, raw_message(BmiMode::unexpected, 1, 16385)).action,
            Step::Action::lost_framing);
  EXPECT_EQ(conversation.next(Sender::server, raw_message(BmiMode::unexpected, 1, 16)).action,
            Step::Action::lost_framing);
}

TEST(OrangefsConversation, UnknownMessagesWithSoundFramingPass) {
  OrangefsConversation conversation;
  EXPECT_EQ(feed(conversation, Sender::client, raw_message(BmiMode::unexpected, 1, 100)).action,
            Step::Action::forward);
  EXPECT_EQ(feed(conversation, Sender::client, raw_message(BmiMode::unexpected, 2, 3)).action,
            Step::Action::forward);
  EXPECT_EQ(feed(conversation, Sender::server, raw_message(BmiMode::eager, 4, 10)).action,
            Step::Action::forward);
}

TEST(OrangefsConversation, ShowsHintsAndExactlyOneUid) {
  OrangefsConversation conversation;
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

TEST(OrangefsConversation, LearnsTheClientsTimeoutFromGetconfig) {
  OrangefsConversation conversation;
  Request request;
  request.body = EmptyRequest{.op = Op::getconfig};
  (void)feed(conversation, Sender::client, request_message(1, request));
  EXPECT_FALSE(conversation.client_timeout());
  const std::string text =
      "<Defaults>\n  ServerJobBMITimeoutSecs 30\n"
      "  ClientJobBMITimeoutSecs 17\n</Defaults>\n"
      "<Filesystem>\n  Name vpfs\n  ID 9\n  RootHandle what\n</Filesystem>\n" +
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

TEST(OrangefsConversation, StopsReadingRequestsWhoseAnswersDoNotCome) {
  OrangefsConversation conversation;
  Request request;
  request.body = EmptyRequest{.op = Op::getconfig};
  Tag tag = 0;
  for (; tag < OrangefsConversation::kMostPassing; ++tag) {
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

TEST(OrangefsConversation, KnowsWhenAWriteWaitsForItsClient) {
  OrangefsConversation conversation;
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

TEST(OrangefsConversation, AReadsBytesFollowFromTheFilesSize) {
  OrangefsConversation conversation;
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

TEST(OrangefsConversation, RefusesAHeldRequestWithAnErrorOfItsOperation) {
  OrangefsConversation conversation;
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

TEST(OrangefsConversation, EveryIoOfEveryCaptureIsHeldOnceAndFinishesOnce) {
  int held = 0;
  for (const std::string& file : test::capture_files()) {
    const std::vector<test::CapturedStream> streams = test::captured_streams(file);
    for (std::size_t i = 0; i + 1 < streams.size(); i += 2) {
      for (const std::size_t window : {std::size_t{1}, std::size_t{300}, std::size_t{1} << 20}) {
        OrangefsConversation conversation;
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
}  // namespace vpfs::orangefs
