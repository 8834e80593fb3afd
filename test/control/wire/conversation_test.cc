#include "control/wire/conversation.h"

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/control/wire/conversation_fixture.h"
#include "test/support/control/unknown_field.h"

namespace vpfs::control {
namespace {

using namespace std::chrono_literals;
using test::frame_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(ConversationTest, HelloIsAnsweredByTheOwnersHelloWithVersions) {
  talk();
  Envelope hello;
  hello.set_id(9);
  hello.mutable_hello()->set_version(1);
  hello.mutable_hello()->set_least(0);
  give(hello);
  const Envelope answer = heard_one();
  EXPECT_EQ(answer.id(), 9U);
  EXPECT_TRUE(answer.answer());
  EXPECT_EQ(answer.hello().name(), "fake");
  EXPECT_EQ(answer.hello().version(), 1U);
  EXPECT_EQ(answer.hello().least(), 1U);
}

TEST_F(ConversationTest, ANewerPortSpeaksToTheVersionBeforeAndToNoOlderOne) {
  versions_ = {.newest = 3, .least = 2};
  talk();
  Envelope hello;
  hello.set_id(1);
  hello.mutable_hello()->set_version(2);
  hello.mutable_hello()->set_least(1);
  give(hello);
  EXPECT_EQ(heard_one().hello().version(), 3U);

  talk();
  hello.mutable_hello()->set_version(1);
  give(hello);
  const Envelope refused = heard_one();
  EXPECT_EQ(refused.error().code(), Error::UNSUPPORTED);
  EXPECT_THAT(refused.error().text(), HasSubstr("versions 2 to 3"));
  EXPECT_THAT(refused.error().text(), HasSubstr("version 1"));
  EXPECT_TRUE(conversation_->ended());
  EXPECT_EQ(counters_.versions, 1U);
}

TEST_F(ConversationTest, APeerOfALaterVersionThatSpeaksThisOneTooIsServed) {
  talk();
  Envelope hello;
  hello.set_id(1);
  hello.mutable_hello()->set_version(2);
  hello.mutable_hello()->set_least(1);
  test::add_unknown(*hello.mutable_hello());
  test::add_unknown(hello);
  give(hello);
  EXPECT_EQ(heard_one().hello().version(), 1U);
  Envelope request = reload(2);
  test::add_unknown(*request.mutable_reload());
  give(request);
  ASSERT_EQ(questions_.size(), 1U);
  answer_with_ack(0);
  EXPECT_EQ(heard_one().id(), 2U);
}

TEST_F(ConversationTest, BeforeHelloNothingIsDone) {
  talk();
  give(reload(4));
  EXPECT_THAT(heard_one().error().text(), HasSubstr("the first message has to be Hello"));
  EXPECT_TRUE(conversation_->ended());
  EXPECT_TRUE(questions_.empty());
}

TEST_F(ConversationTest, RequestsGoToTheOwnerAndAnswersHaveTheirNumbers) {
  greet();
  give(frame_of(reload(7)) + frame_of(reload(8)));
  ASSERT_EQ(questions_.size(), 2U);
  answer_with_ack(1);
  EXPECT_EQ(heard_one().id(), 8U);
  answer_with_ack(0);
  answer_with_ack(0);  // again: it was answered
  const Envelope answer = heard_one();
  EXPECT_EQ(answer.id(), 7U);
  EXPECT_TRUE(answer.answer());
}

TEST_F(ConversationTest, NothingIsAnsweredToTheNumberZero) {
  greet();
  give(reload(0));
  answer_with_ack(0);
  EXPECT_TRUE(heard().empty());
}

TEST_F(ConversationTest, AMessageThatThisVersionDoesNotKnowIsToldSoAndTheConnectionStays) {
  greet();
  // id 3 and field 77, a message.
  std::string unknown = {8, 3};
  unknown += std::string("\xea\x04\x02", 3) + "hi";
  give(test::length_field(static_cast<std::uint32_t>(unknown.size())) + unknown);
  const Envelope answer = heard_one();
  EXPECT_EQ(answer.id(), 3U);
  EXPECT_EQ(answer.error().code(), Error::UNSUPPORTED);
  EXPECT_THAT(answer.error().text(), HasSubstr("number 77"));
  EXPECT_EQ(counters_.unknown, 1U);
  give(reload(4));
  EXPECT_EQ(questions_.size(), 1U);
}

TEST_F(ConversationTest, OtherMessagesThanRequestsAreNotGivenToTheOwner) {
  greet();
  for (auto* body : {"report", "ack", "flows", "stats_reply", "error", "hello"}) {
    Envelope message;
    message.set_id(5);
    const auto* field = Envelope::descriptor()->FindFieldByName(body);
    ASSERT_NE(field, nullptr);
    message.GetReflection()->MutableMessage(&message, field);
    give(message);
    EXPECT_TRUE(heard_one().has_error()) << body;
  }
  EXPECT_TRUE(questions_.empty());
  EXPECT_FALSE(conversation_->ended());
}

TEST_F(ConversationTest, BrokenFramingEndsItWithAReason) {
  for (const std::string& bad : {test::length_field(0xffffffff), test::length_field(0),
                                 test::length_field(2) + "\xff\xff"}) {
    greet();
    give(bad);
    EXPECT_TRUE(conversation_->ended());
    EXPECT_FALSE(conversation_->broken().empty());
    EXPECT_THAT(heard_one().error().text(), HasSubstr("not the control protocol"));
    give(reload(1));
  }
  EXPECT_TRUE(questions_.empty());
  EXPECT_EQ(counters_.broken, 3U);
}

TEST_F(ConversationTest, OnlyACallerThatMayChangeSomethingMaySendLongMessages) {
  limits_.frame = 1000;
  limits_.frame_of_writers = 100000;
  Envelope large = reload(1);
  large.mutable_rule()->set_action(Rule::APPLY);
  large.mutable_rule()->set_file(std::string(50000, 'x'));
  greet(Rights::change);
  give(large);
  EXPECT_EQ(questions_.size(), 1U);
  greet(Rights::read);
  give(large);
  EXPECT_TRUE(conversation_->ended());
  // Nor may any peer before Hello.
  talk(Rights::change);
  give(large);
  EXPECT_THAT(conversation_->broken(), HasSubstr("longer than allowed"));
}

TEST_F(ConversationTest, ARefusedChangeIsRecordedAndNotDone) {
  greet(Rights::read);
  give(reload(5));
  const Envelope answer = heard_one();
  EXPECT_EQ(answer.error().code(), Error::NOT_PERMITTED);
  EXPECT_THAT(answer.error().text(), HasSubstr("alice (uid 5)"));
  EXPECT_THAT(records_, ElementsAre(HasSubstr("reload refused refused: alice")));
  EXPECT_TRUE(questions_.empty());
  EXPECT_EQ(counters_.not_permitted, 1U);
  // Reading is not recorded.
  greet(Rights::own);
  Envelope status;
  status.set_id(6);
  status.mutable_status();
  give(status);
  EXPECT_EQ(heard_one().error().place(), "control.readers");
  EXPECT_EQ(records_.size(), 1U);
}

TEST_F(ConversationTest, ARightThatAReloadTakesAwayIsGoneAtOnce) {
  greet();
  Caller caller = conversation_->caller();
  caller.rights = Rights::own;
  conversation_->set_caller(caller);
  give(reload(5));
  EXPECT_EQ(heard_one().error().code(), Error::NOT_PERMITTED);
}

TEST_F(ConversationTest, PeersThatAreNotKnownMayNotAskTooOften) {
  greet(Rights::own);
  Envelope stats;
  stats.set_id(5);
  stats.mutable_stats();
  admits_ = false;
  give(stats);
  EXPECT_EQ(heard_one().error().code(), Error::UNAVAILABLE);
  EXPECT_TRUE(questions_.empty());
  greet(Rights::read);
  give(stats);
  EXPECT_EQ(questions_.size(), 1U);
}

TEST_F(ConversationTest, RequestsBeyondTheBoundWaitForAnswers) {
  limits_.requests_in_flight = 3;
  greet();
  std::string many;
  for (std::uint64_t id = 1; id <= 10; ++id) many += frame_of(reload(id));
  give(many);
  EXPECT_EQ(questions_.size(), 3U);
  EXPECT_FALSE(conversation_->wants_input());
  for (std::size_t i = 0; i < 10; ++i) {
    ASSERT_LT(i, questions_.size());
    answer_with_ack(i);
    while (conversation_->handle(clock_.now())) {
    }
  }
  EXPECT_EQ(heard().size(), 10U);
  EXPECT_TRUE(conversation_->wants_input());
}

TEST_F(ConversationTest, OneTurnHandlesFewMessages) {
  limits_.requests_in_flight = 1000;
  limits_.frames_in_a_turn = 4;
  greet();
  std::string many;
  for (std::uint64_t id = 1; id <= 10; ++id) many += frame_of(reload(id));
  const auto room = conversation_->room();
  std::memcpy(room.data(), many.data(), many.size());
  conversation_->received(many.size());
  EXPECT_TRUE(conversation_->handle(clock_.now()));
  EXPECT_EQ(questions_.size(), 4U);
  EXPECT_TRUE(conversation_->handle(clock_.now()));
  EXPECT_FALSE(conversation_->handle(clock_.now()));
  EXPECT_EQ(questions_.size(), 10U);
}

TEST_F(ConversationTest, APeerThatReadsNothingIsNotReadFromAndThenTooSlow) {
  limits_.answers_before_pause = 1000;
  limits_.answers = 2000;
  greet();
  for (std::uint64_t id = 1; id <= 3; ++id) give(reload(id));
  Envelope large;
  large.mutable_ack()->set_text(std::string(1500, 'x'));
  conversation_->answered(questions_[0].ticket, large);
  EXPECT_FALSE(conversation_->wants_input());
  EXPECT_FALSE(conversation_->too_slow());
  conversation_->answered(questions_[1].ticket, large);
  EXPECT_FALSE(conversation_->too_slow());
  conversation_->answered(questions_[2].ticket, large);
  EXPECT_TRUE(conversation_->too_slow());
}

TEST_F(ConversationTest, AnAnswerThatNoClientTakesBecomesAnError) {
  greet();
  give(reload(3));
  Envelope large;
  large.mutable_ack()->set_text(std::string(kMostAnswer + 1, 'x'));
  conversation_->answered(questions_[0].ticket, std::move(large));
  EXPECT_EQ(heard_one().error().code(), Error::UNAVAILABLE);
}

Envelope watch(std::uint64_t id, std::chrono::microseconds period) {
  Envelope request;
  request.set_id(id);
  request.mutable_watch()->set_period_us(static_cast<std::uint64_t>(period.count()));
  request.mutable_watch()->set_rules(true);
  return request;
}

TEST_F(ConversationTest, AWatchAsksEachPeriodAndNeverTwiceAtOnce) {
  greet();
  give(watch(5, 100ms));
  ASSERT_EQ(questions_.size(), 1U);
  EXPECT_TRUE(questions_[0].request.stats().rules());
  EXPECT_FALSE(conversation_->next_watch());
  clock_.advance(250ms);
  conversation_->run_watches(clock_.now());
  EXPECT_EQ(questions_.size(), 1U);
  answer_with_ack(0);
  EXPECT_EQ(heard_one().id(), 5U);
  EXPECT_LE(*conversation_->next_watch(), clock_.now());
  conversation_->run_watches(clock_.now());
  ASSERT_EQ(questions_.size(), 2U);
  answer_with_ack(1);
  EXPECT_EQ(heard_one().id(), 5U);
  EXPECT_EQ(*conversation_->next_watch(), clock_.now());
  clock_.advance(1ms);
  conversation_->run_watches(clock_.now());
  answer_with_ack(2);
  EXPECT_EQ(*conversation_->next_watch(), clock_.now() + 99ms);
}

TEST_F(ConversationTest, AWatchHasALeastPeriodWhichIsLongerForPeersThatAreNotKnown) {
  greet(Rights::read);
  give(watch(5, 0us));
  answer_with_ack(0);
  EXPECT_EQ(*conversation_->next_watch(), clock_.now() + limits_.least_watch_period);
  greet(Rights::own);
  give(watch(5, 0us));
  answer_with_ack(1);
  EXPECT_EQ(*conversation_->next_watch(), clock_.now() + limits_.least_watch_period_of_others);
  greet(Rights::read);
  give(watch(5, std::chrono::microseconds::max()));
  answer_with_ack(2);
  EXPECT_LE(*conversation_->next_watch(), clock_.now() + 1h);
}

TEST_F(ConversationTest, AWatchSkipsPeriodsWhilePeersDoNotRead) {
  limits_.answers_before_pause = 100;
  greet();
  give(watch(5, 100ms));
  Envelope large;
  large.mutable_ack()->set_text(std::string(500, 'x'));
  conversation_->answered(questions_[0].ticket, large);
  clock_.advance(1s);
  conversation_->run_watches(clock_.now());
  EXPECT_EQ(questions_.size(), 1U);
  EXPECT_GT(*conversation_->next_watch(), clock_.now() - 1ns);
  conversation_->output().clear();
  clock_.advance(100ms);
  conversation_->run_watches(clock_.now());
  EXPECT_EQ(questions_.size(), 2U);
}

TEST_F(ConversationTest, AWatchEndsWithAnErrorAndThereAreFew) {
  greet();
  for (std::uint64_t id = 1; id <= limits_.watches; ++id) give(watch(id, 100ms));
  EXPECT_EQ(questions_.size(), limits_.watches);
  give(watch(99, 100ms));
  EXPECT_EQ(heard_one().error().code(), Error::UNAVAILABLE);
  Envelope error;
  *error.mutable_error() = make_error(Error::UNAVAILABLE, "", "no");
  conversation_->answered(questions_[0].ticket, error);
  EXPECT_EQ(heard_one().id(), 1U);
  give(watch(99, 100ms));
  EXPECT_EQ(questions_.size(), limits_.watches + 1);
  give(watch(0, 100ms));
  EXPECT_EQ(questions_.size(), limits_.watches + 1);
}

TEST_F(ConversationTest, ACycleIsAnsweredAtOnceFlowsFirst) {
  owner_.on_cycle([](const Cycle& cycle, CycleAnswer& answer) {
    EXPECT_EQ(answer.report.flows_size(), 0);
    EXPECT_EQ(answer.flows.flows_size(), 0);
    if (cycle.sequence() == 1) answer.flows.add_flows()->set_name("a");
    answer.report.add_flows()->set_flow(static_cast<std::uint32_t>(cycle.sequence()));
  });
  greet();
  for (std::uint64_t sequence = 1; sequence <= 3; ++sequence) {
    Envelope cycle;
    cycle.set_id(10 + sequence);
    cycle.mutable_cycle()->set_term(4);
    cycle.mutable_cycle()->set_sequence(sequence);
    give(cycle);
    const auto messages = heard();
    ASSERT_EQ(messages.size(), sequence == 1 ? 2U : 1U);
    if (sequence == 1) {
      EXPECT_EQ(messages[0].flows().flows(0).name(), "a");
      EXPECT_EQ(messages[0].id(), 0U);
    }
    const Envelope& report = messages.back();
    EXPECT_EQ(report.id(), 10 + sequence);
    EXPECT_EQ(report.report().sequence(), sequence);
    EXPECT_EQ(report.report().term(), 4U);
    ASSERT_EQ(report.report().flows_size(), 1);
    EXPECT_EQ(report.report().flows(0).flow(), sequence);
  }
  EXPECT_THAT(records_, ElementsAre(HasSubstr("cycle ok")));
  EXPECT_EQ(owner_.links(), 1U);
  conversation_.reset();
  EXPECT_EQ(owner_.links(), 0U);
}

TEST_F(ConversationTest, ACallerThatMayOnlyReadCannotBeACoordinator) {
  greet(Rights::read);
  Envelope cycle;
  cycle.set_id(1);
  cycle.mutable_cycle();
  give(cycle);
  EXPECT_EQ(heard_one().error().code(), Error::NOT_PERMITTED);
  EXPECT_EQ(owner_.cycles(), 0U);
}

TEST_F(ConversationTest, OnlyACallerThatMaySendCyclesHasMemoryKeptForThem) {
  Envelope cycle;
  cycle.set_id(1);
  for (int i = 0; i < 1000; ++i) cycle.mutable_cycle()->add_allocations();
  for (const Rights rights : {Rights::own, Rights::read}) {
    greet(rights);
    give(cycle);
    EXPECT_EQ(conversation_->memory_kept(), 0U);
  }
  greet(Rights::change);
  give(cycle);
  EXPECT_GT(conversation_->memory_kept(), 1000 * sizeof(Allocation));
}

TEST(Answer, ThatIsNeverGivenIsAnError) {
  std::vector<Envelope> answers;
  {
    const Answer answer([&](Envelope envelope) { answers.push_back(std::move(envelope)); });
    const Answer copy = answer;
  }
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].error().code(), Error::INTERNAL);
}

TEST(Answer, TheFirstCounts) {
  std::vector<Envelope> answers;
  {
    const Answer answer([&](Envelope envelope) { answers.push_back(std::move(envelope)); });
    answer(Ack());
    answer(make_error(Error::INTERNAL, "", ""));
  }
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_TRUE(answers[0].has_ack());
}

}  // namespace
}  // namespace vpfs::control
