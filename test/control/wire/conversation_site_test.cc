// What coordinators ask of a stage beside cycles.
#include <gmock/gmock.h>

#include "test/control/wire/conversation_fixture.h"

namespace vpfs::control {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Envelope site(std::uint64_t id) {
  Envelope request;
  request.set_id(id);
  request.mutable_site()->set_origin("site");
  return request;
}

Envelope stats_as(std::uint64_t id, std::uint32_t uid) {
  Envelope request;
  request.set_id(id);
  request.set_as_uid(uid);
  request.mutable_stats();
  return request;
}

TEST_F(ConversationTest, ASiteGoesToTheOwnerIfThePeerMayChangeEverything) {
  greet();
  give(site(2));
  ASSERT_EQ(questions_.size(), 1U);
  EXPECT_TRUE(questions_[0].request.has_site());
  questions_.clear();
  greet(Rights::read);
  give(site(2));
  EXPECT_EQ(heard_one().error().code(), Error::NOT_PERMITTED);
  EXPECT_TRUE(questions_.empty());
  EXPECT_THAT(records_, ElementsAre(HasSubstr("site refused")));
}

TEST_F(ConversationTest, AnswersForAnotherUserAreAsToThatUser) {
  greet();
  give(stats_as(2, 1001));
  ASSERT_EQ(questions_.size(), 1U);
  const Caller& caller = questions_[0].caller;
  EXPECT_EQ(caller.name, "uid 1001 through alice (uid 5)");
  EXPECT_EQ(caller.rights, Rights::own);
  EXPECT_EQ(caller.uid, 1001U);
  Envelope request = stats_as(3, 1001);
  request.mutable_status();
  give(request);
  EXPECT_EQ(heard_one().error().code(), Error::NOT_PERMITTED);
  request.mutable_reload();
  give(request);
  EXPECT_THAT(heard_one().error().text(), HasSubstr("uid 1001 through alice (uid 5) from unix"));
  EXPECT_EQ(questions_.size(), 1U);
  EXPECT_THAT(records_, ElementsAre(HasSubstr("reload refused")));
  EXPECT_EQ(counters_.not_permitted, 2U);
  give(stats_as(4, 0));
  EXPECT_EQ(questions_.back().caller.rights, Rights::own) << "root too";
}

TEST_F(ConversationTest, ARequestForAnotherUserIsNotOneOfManyUnknownPeers) {
  greet();
  admits_ = false;
  give(stats_as(2, 1001));
  EXPECT_EQ(questions_.size(), 1U);
}

TEST_F(ConversationTest, OnlyACallerThatMayChangeEverythingMayAskForAnotherUser) {
  for (const Rights rights : {Rights::own, Rights::read}) {
    greet(rights);
    give(stats_as(2, 5));
    const Envelope answer = heard_one();
    EXPECT_EQ(answer.error().code(), Error::NOT_PERMITTED);
    EXPECT_EQ(answer.error().place(), "as_uid");
    EXPECT_THAT(answer.error().text(), HasSubstr("alice (uid 5) from unix"));
  }
  EXPECT_TRUE(questions_.empty());
}

TEST_F(ConversationTest, AWatchForAnotherUserStaysOneAndEndsWithTheRightToIt) {
  Conversation& conversation = greet();
  Envelope request = stats_as(2, 1001);
  request.mutable_watch()->set_period_us(1'000'000);
  give(request);
  ASSERT_EQ(questions_.size(), 1U);
  EXPECT_EQ(questions_[0].caller.uid, 1001U);
  answer_with_ack(0);
  clock_.advance(1s);
  conversation.run_watches(clock_.now());
  ASSERT_EQ(questions_.size(), 2U);
  EXPECT_EQ(questions_[1].caller.rights, Rights::own);
  answer_with_ack(1);
  (void)heard();
  Caller reader = conversation.caller();
  reader.rights = Rights::read;
  conversation.set_caller(reader);
  EXPECT_EQ(heard_one().error().place(), "as_uid");
  EXPECT_FALSE(conversation.next_watch());
}

}  // namespace
}  // namespace vpfs::control
