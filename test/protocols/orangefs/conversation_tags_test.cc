// What a client may not pass, and which tags are in use (decision 0076).
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

#include <gtest/gtest.h>

#include "protocols/orangefs/conversation.h"
#include "protocols/orangefs/errors.h"
#include "protocols/orangefs/message.h"
#include "test/protocols/orangefs/conversation_messages.h"

namespace vpfs::orangefs {
namespace {

TEST(OrangefsConversation, EqualRequestsWithDifferentTagsAreBothHeld) {
  OrangefsConversation conversation;
  const Request request = io_request(IoType::read, 0, 1000);
  EXPECT_EQ(feed(conversation, Sender::client, request_message(1, request)).action,
            Step::Action::hold);
  EXPECT_EQ(feed(conversation, Sender::client, request_message(2, request)).action,
            Step::Action::hold);
}

TEST(OrangefsConversation, ATagInUseLosesTheFraming) {
  OrangefsConversation conversation;
  const Buffer message = request_message(1, io_request(IoType::read, 0, 1000));
  (void)feed(conversation, Sender::client, message);
  EXPECT_EQ(conversation.next(Sender::client, message).action, Step::Action::lost_framing);
  EXPECT_NE(conversation.problem().find("tag 1"), std::string::npos);
}

// A server answers what it cannot read with an error under its tag, which would end the I/O here,
// and its data would pass unscheduled.
TEST(OrangefsConversation, ATagInUseIsNotThatOfAMessageThatCannotBeRead) {
  Buffer other_version = request_message(1, getattr(7));
  const std::uint32_t version = 8000;
  std::memcpy(other_version.data() + kBmiHeaderSize, &version, sizeof version);
  Request internal;
  internal.body = EmptyRequest{.op = Op::proto_error};
  const Buffer io = request_message(1, io_request(IoType::write, 0, 300'000));
  for (const Buffer& bad :
       {other_version, request_message(1, internal), raw_message(BmiMode::unexpected, 1, 3)}) {
    OrangefsConversation behind;
    (void)feed(behind, Sender::client, io);
    behind.released(1);
    (void)feed(behind, Sender::server, io_response(1, 0));
    EXPECT_EQ(behind.next(Sender::client, bad).action, Step::Action::lost_framing);

    OrangefsConversation before;
    EXPECT_EQ(feed(before, Sender::client, bad).action, Step::Action::forward);
    EXPECT_EQ(before.next(Sender::client, io).action, Step::Action::lost_framing);

    OrangefsConversation answered;
    (void)feed(answered, Sender::client, bad);
    (void)feed(answered, Sender::server, error_message(1, Op::proto_error, -1));
    EXPECT_TRUE(answered.at_rest());
    EXPECT_EQ(feed(answered, Sender::client, io).action, Step::Action::hold);
  }
}

TEST(OrangefsConversation, ATagMayComeAgainOnceItsIoIsOver) {
  OrangefsConversation conversation;
  const Buffer message = request_message(1, io_request(IoType::read, 5000, 1000));
  (void)feed(conversation, Sender::client, message);
  (void)feed(conversation, Sender::server, io_response(1, 0));
  EXPECT_EQ(feed(conversation, Sender::client, message).action, Step::Action::hold);
}

// Its data would pass unscheduled: a server skips what it does not know, as the length of a name.
TEST(OrangefsConversation, AnIoThatCannotBeReadLosesTheFraming) {
  Buffer cut = request_message(5, io_request(IoType::read, 0, 1000));
  cut.resize(cut.size() - 8);  // its fields reach past its end
  const std::uint64_t size = cut.size() - kBmiHeaderSize;
  std::memcpy(cut.data() + 16, &size, sizeof size);
  Buffer name = request_message(5, io_request(IoType::read, 0, 1000));
  const std::string_view known = "simple_stripe";
  const auto at = std::ranges::search(name, std::as_bytes(std::span(known)));
  ASSERT_FALSE(at.empty());
  at.begin()[-4] = std::byte{12};  // of 13 letters, as far as the length says
  for (const Buffer& bad : {cut, name, request_message(5, io_request(IoType::read, -1, 1001)),
                            request_message(5, io_request(IoType::write, 0, -1))}) {
    OrangefsConversation conversation;
    EXPECT_EQ(conversation.next(Sender::client, bad).action, Step::Action::lost_framing);
    EXPECT_EQ(conversation.problem().substr(0, 2), "IO") << conversation.problem();
  }
}

// The server would read no more of the connection, and keep the slots of what is behind.
TEST(OrangefsConversation, DataThatNoWriteWaitsForLoseTheFraming) {
  const Buffer write = request_message(1, io_request(IoType::write, 0, 1000));
  const auto after = [&](int steps) {
    auto conversation = std::make_unique<OrangefsConversation>();
    if (steps > 0) (void)feed(*conversation, Sender::client, write);
    if (steps > 1) conversation->released(1);
    if (steps > 1) (void)feed(*conversation, Sender::server, io_response(1, 0));
    return conversation;
  };
  const auto action = [](OrangefsConversation& conversation, Tag tag, std::uint64_t size) {
    return conversation.next(Sender::client, raw_message(BmiMode::eager, tag, size)).action;
  };
  EXPECT_EQ(action(*after(0), 1, 0), Step::Action::lost_framing) << "no write";
  EXPECT_EQ(action(*after(1), 1, 1000), Step::Action::lost_framing) << "the server has not agreed";
  EXPECT_EQ(action(*after(2), 2, 1000), Step::Action::lost_framing) << "another tag";
  EXPECT_EQ(action(*after(2), 1, 1001), Step::Action::lost_framing) << "too much";
  const auto whole = after(2);
  EXPECT_EQ(action(*whole, 1, 1000), Step::Action::forward);
  EXPECT_EQ(action(*whole, 1, 1), Step::Action::lost_framing) << "too much behind it";
  const auto forgotten = after(2);
  forgotten->forget(1);
  EXPECT_EQ(action(*forgotten, 1, 1000), Step::Action::forward) << "late data";
  EXPECT_EQ(action(*forgotten, 1, 1), Step::Action::lost_framing) << "more than was announced";
  const auto failed = after(2);
  EXPECT_TRUE(feed(*failed, Sender::server,
                   error_message(1, Op::write_completion, status_from_errno(ENOSPC)))
                  .finished);
  EXPECT_EQ(feed(*failed, Sender::client, raw_message(BmiMode::eager, 1, 600)).action,
            Step::Action::forward)
      << "it did not know yet";
  EXPECT_EQ(action(*failed, 1, 401), Step::Action::lost_framing);
  const auto whole_all_the_same = after(2);
  (void)feed(*whole_all_the_same, Sender::server,
             error_message(1, Op::write_completion, status_from_errno(ENOSPC)));
  (void)feed(*whole_all_the_same, Sender::client, raw_message(BmiMode::eager, 1, 1000));
  EXPECT_EQ(feed(*whole_all_the_same, Sender::client, write).action, Step::Action::hold)
      << "nothing more of it can come";
  const auto early = after(2);
  ASSERT_EQ(feed(*early, Sender::client, raw_message(BmiMode::eager, 1, 1000)).action,
            Step::Action::forward);
  EXPECT_EQ(
      early
          ->next(Sender::server,
                 response_message(1, {.body = WriteCompletionResponse{.total_completed = 999}}))
          .action,
      Step::Action::lost_framing)
      << "the server did not take all";
}

// For example, a client chooses the contents of an extended attribute.
TEST(OrangefsConversation, NoAnswerIsTakenForAnotherRequests) {
  OrangefsConversation conversation;
  Request request;
  request.body = EmptyRequest{.op = Op::getconfig};
  (void)feed(conversation, Sender::client, request_message(1, getattr(0)));
  EXPECT_EQ(conversation.next(Sender::client, request_message(1, request)).action,
            Step::Action::lost_framing);
  EXPECT_EQ(conversation.problem(), "tag 1 of a request that is still under way is used again");
}

TEST(OrangefsConversation, WhatComesOfAForgottenIoPasses) {
  OrangefsConversation conversation;
  (void)feed(conversation, Sender::client,
             request_message(8, io_request(IoType::read, 0, 300'000)));
  (void)feed(conversation, Sender::server, io_response(8, 1 << 20));
  conversation.forget(8);
  const Step step =
      feed(conversation, Sender::server, raw_message(BmiMode::rendezvous, 8, 262'144));
  EXPECT_EQ(step.action, Step::Action::forward);
  EXPECT_FALSE(step.finished);
}

// What is still on its way would be taken for the answer.
TEST(OrangefsConversation, TheTagOfAForgottenRequestStaysInUse) {
  const Buffer read = request_message(3, io_request(IoType::read, 0, 300'000));
  for (const bool goes_along : {false, true}) {
    OrangefsConversation first;
    (void)feed(first, Sender::client, read);
    first.released(3);
    (void)feed(first, Sender::server, io_response(3, 1 << 20));
    first.forget(3);
    (void)feed(first, Sender::client, request_message(4, getattr(7)));
    first.forget_answers();
    EXPECT_TRUE(first.at_rest());
    SavedState state;
    first.save(state);
    OrangefsConversation second;
    second.restore(state);
    OrangefsConversation& conversation = goes_along ? second : first;
    EXPECT_EQ(feed(conversation, Sender::server, io_response(3, 0)).action, Step::Action::forward);
    EXPECT_EQ(feed(conversation, Sender::server, error_message(4, Op::getattr, -1)).action,
              Step::Action::forward);
    EXPECT_EQ(feed(conversation, Sender::client, request_message(4, getattr(7))).action,
              Step::Action::forward)
        << "its only answer has come";
    EXPECT_EQ(conversation.next(Sender::client, read).action, Step::Action::lost_framing);
  }
}

TEST(OrangefsConversation, ForgetsABoundedNumberOfRequests) {
  OrangefsConversation conversation;
  Tag tag = 1;
  for (; tag <= OrangefsConversation::kMostForgotten + 1; ++tag) {
    ASSERT_EQ(feed(conversation, Sender::client, request_message(tag, getattr(7))).action,
              Step::Action::forward);
    conversation.forget_answers();
  }
  EXPECT_EQ(conversation.next(Sender::client, request_message(tag, getattr(7))).action,
            Step::Action::lost_framing);
}

TEST(OrangefsConversation, ATagIsFreeOnceSilenceHasEndedItsRead) {
  OrangefsConversation conversation;
  const Buffer read = request_message(3, io_request(IoType::read, 0, 300'000));
  (void)feed(conversation, Sender::client, read);
  conversation.released(3);
  (void)feed(conversation, Sender::server, io_response(3, 1 << 20));
  conversation.ended(3);
  EXPECT_EQ(feed(conversation, Sender::client, read).action, Step::Action::hold);
}

}  // namespace
}  // namespace vpfs::orangefs
