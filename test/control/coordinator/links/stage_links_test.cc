#include "control/coordinator/links/stage_links.h"

#include <chrono>
#include <string>
#include <vector>

#include "net/socket_options.h"
#include "test/control/coordinator/links_fixture.h"
#include "test/support/comes_true.h"
#include "test/support/control/raw_peer.h"

namespace vpfs::coordinator {
namespace {

using namespace std::chrono_literals;
using control::Envelope;
using control::Error;
using test::comes_true;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// Stages that dial the coordinator.
class StageLinksTest : public LinksFixture {};

TEST_F(StageLinksTest, AStageThatDialsIsAnsweredAndTakesPart) {
  open();
  FakeStage stage = dial_in();
  const auto answer = stage.greet(stage_hello("a"));
  ASSERT_TRUE(answer && answer->has_hello());
  EXPECT_TRUE(answer->answer());
  EXPECT_EQ(answer->id(), 1U);
  EXPECT_EQ(answer->hello().role(), control::Hello::COORDINATOR);
  EXPECT_EQ(answer->hello().name(), "site");
  ASSERT_TRUE(handler_.wait_until_connected(1));
  const StageHello hello = handler_.last_hello();
  EXPECT_EQ(hello.name, "a");
  EXPECT_FALSE(hello.was_dialled);
  EXPECT_EQ(hello.incarnation, 7U);
  EXPECT_EQ(hello.program, "fake-stage 1");
  EXPECT_TRUE(hello.takes_caps && hello.takes_elsewhere);
  EXPECT_FALSE(hello.takes_metadata_caps || hello.takes_site || hello.takes_users ||
               hello.is_aggregator);

  send_cycle(0, 5);
  EXPECT_EQ(stage.answer_cycle()->sequence(), 5U);
  EXPECT_TRUE(handler_.wait_until(
      [](const auto& stages) { return stages[0].reports == std::vector<std::uint64_t>{5}; }));
}

TEST_F(StageLinksTest, EveryCapabilityIsRead) {
  open();
  control::Hello hello = stage_hello("a");
  hello.set_term(9);
  for (const char* const each :
       {"metadata_caps", "site", "forward_as", "aggregator", "of the future"}) {
    hello.add_capabilities(each);
  }
  FakeStage stage = dial_in();
  ASSERT_TRUE(stage.greet(hello));
  ASSERT_TRUE(handler_.wait_until_connected(1));
  const StageHello seen = handler_.last_hello();
  EXPECT_TRUE(seen.takes_metadata_caps && seen.takes_site && seen.takes_users &&
              seen.is_aggregator);
  EXPECT_EQ(seen.term, 9U);
}

TEST_F(StageLinksTest, AHelloThatIsWrongIsRefusedWithItsPlace) {
  open();
  control::Hello hello = stage_hello("a");
  hello.set_version(9);
  hello.set_least(8);
  EXPECT_THAT(refusal_of(hello), ::testing::AllOf(HasSubstr("version: "), HasSubstr("8 to 9")));
  hello = stage_hello("a");
  hello.set_role(control::Hello::ADMINISTRATOR);
  EXPECT_THAT(refusal_of(hello), HasSubstr("role: only stages may dial here; administrators"));
  EXPECT_THAT(refusal_of(stage_hello("")), HasSubstr("name: a stage needs a name"));
  EXPECT_THAT(refusal_of(stage_hello(std::string(256, 'x'))), HasSubstr("name: a stage needs"));
  hello = stage_hello("a");
  hello.set_cost_model("other");
  EXPECT_EQ(refusal_of(hello), "cost_model: \"other\" is not \"cost\"");
  EXPECT_EQ(counters().refused, 5U);
  EXPECT_THAT(handler_.stages(), IsEmpty());
  const FakeStage good = joined("a");
}

TEST_F(StageLinksTest, ANameIsTakenOnce) {
  open();
  {
    const FakeStage first = joined("a");
    EXPECT_EQ(refusal_of(stage_hello("a")), "name: a is connected");
    const FakeStage other = joined("b");
  }
  ASSERT_TRUE(handler_.wait_until_connected(0));
  const FakeStage again = joined("a");
}

TEST_F(StageLinksTest, AMessageOtherThanHelloIsRefused) {
  open();
  Envelope stats;
  stats.set_id(3);
  stats.mutable_stats();
  FakeStage stage = dial_in();
  ASSERT_TRUE(stage.send(stats));
  const auto answer = stage.receive();
  ASSERT_TRUE(answer && answer->has_error());
  EXPECT_EQ(answer->id(), 3U);
  EXPECT_EQ(answer->error().text(), "the first message has to be Hello");
  EXPECT_TRUE(stage.closed_within());
  // The answer to a Hello that was not sent.
  FakeStage answering = dial_in();
  Envelope hello;
  hello.set_id(1);
  hello.set_answer(true);
  *hello.mutable_hello() = stage_hello("a");
  ASSERT_TRUE(answering.send(hello));
  EXPECT_TRUE(answering.receive()->has_error());
}

TEST_F(StageLinksTest, GarbageIsClosedAndCostsOthersNothing) {
  open();
  FakeStage good = joined("good");
  for (const std::string& garbage :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(200'000, '\xff'),
        std::string("\x16\x03\x01\x02\x00\x01", 6) + std::string(600, 'x'), std::string(64, '\0'),
        test::length_field(65'537), test::length_field(5) + std::string("\x0a\xff\xff\xff\x7f"),
        test::length_field(1) + "x"}) {
    FakeStage peer = dial_in();
    (void)peer.send(garbage, 200ms);
    EXPECT_TRUE(peer.closed_within()) << garbage.substr(0, 10);
  }
  send_cycle(0, 1);
  EXPECT_TRUE(good.answer_cycle());
}

TEST_F(StageLinksTest, AHelloThatIsTooLongIsClosed) {
  open();
  control::Hello hello = stage_hello("a");
  hello.set_program(std::string(70'000, 'x'));
  FakeStage stage = dial_in();
  EXPECT_FALSE(stage.greet(hello));
  EXPECT_TRUE(stage.closed_within());
}

TEST_F(StageLinksTest, ASilentPeerIsClosedAlthoughOthersDrip) {
  limits_.hello = 300ms;
  open();
  const FakeStage good = joined("good");
  FakeStage silent = dial_in();
  FakeStage dripping = dial_in();
  const std::string hello = [] {
    Envelope envelope;
    *envelope.mutable_hello() = stage_hello("slow");
    envelope.mutable_hello()->set_program(std::string(500, 'x'));  // drips for long enough
    return test::frame_of(envelope);
  }();
  bool was_closed = false;
  for (std::size_t i = 0; i + 1 < hello.size() && !was_closed; ++i) {
    was_closed = !dripping.send(hello.substr(i, 1));
    std::this_thread::sleep_for(20ms);
  }
  EXPECT_TRUE(was_closed);
  EXPECT_TRUE(silent.closed_within());
  EXPECT_EQ(counters().refused, 2U);
  EXPECT_TRUE(handler_.wait_until_connected(1));
}

TEST_F(StageLinksTest, OnlyWritersMayBeStages) {
  config_.listen.mode = 0666;
  std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
  open();
  std::string refusal;
  if (!test::run_as(12345, 12345, [&] {
        FakeStage stage = dial_in();
        const auto answer = stage.receive();
        if (answer) refusal = answer->error().text();
        EXPECT_TRUE(stage.closed_within());
      })) {
    GTEST_SKIP() << "this test may not become another user";
  }
  EXPECT_EQ(refusal, "uid 12345 may not be a stage here: name it in stages.listen.writers");
  EXPECT_EQ(counters().refused, 1U);
}

TEST_F(StageLinksTest, AWriterOfAnotherUserMayBeAStage) {
  config_.listen.mode = 0666;
  config_.listen.writers = {{.kind = control::Principal::Kind::uid, .name = "", .id = 12345}};
  std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
  open();
  if (!test::run_as(12345, 12345, [&] { const FakeStage stage = joined("a"); })) {
    GTEST_SKIP() << "this test may not become another user";
  }
  EXPECT_EQ(handler_.last_hello().address, "uid 12345");
}

TEST_F(StageLinksTest, MoreConnectionsThanAllowedAreRefused) {
  limits_.connections = 3;
  open();
  std::vector<FakeStage> stages;
  for (const char* const name : {"a", "b", "c"}) stages.push_back(joined(name));
  FakeStage another = dial_in();
  EXPECT_TRUE(another.closed_within());
  EXPECT_EQ(counters().refused, 1U);
  stages.pop_back();
  ASSERT_TRUE(handler_.wait_until_connected(2));
  const FakeStage later = joined("c");
}

TEST_F(StageLinksTest, ASilentPeerKeepsNoPlaceFromAStage) {
  limits_.connections = 3;
  open();
  const FakeStage good = joined("a");
  FakeStage oldest = dial_in();
  FakeStage next = dial_in();
  const FakeStage another = joined("b");
  EXPECT_TRUE(oldest.closed_within());
  EXPECT_EQ(counters().refused, 1U);
  EXPECT_TRUE(next.greet(stage_hello("c"))->has_hello());
  EXPECT_TRUE(handler_.wait_until_connected(3));
}

TEST_F(StageLinksTest, WhatAStageSaysOfItselfIsOneShortLine) {
  open();
  control::Hello hello = stage_hello("a");
  hello.set_program("vpfs-proxy\n" + std::string(10'000, 'x'));
  FakeStage stage = dial_in();
  ASSERT_TRUE(stage.greet(hello)->has_hello());
  EXPECT_LT(handler_.last_hello().program.size(), 600U);
  EXPECT_THAT(handler_.last_hello().program, StartsWith("vpfs-proxy\\nxxx"));
  EXPECT_EQ(refusal_of(stage_hello("b\n[error]")),
            "name: a stage needs a name of one line and at most 255 bytes");
}

TEST_F(StageLinksTest, FlowsReportsAndRefusalsReachTheHandler) {
  open();
  FakeStage stage = joined("a");
  send_cycle(0, 1);
  const auto asked = stage.receive();
  ASSERT_TRUE(asked && asked->has_cycle());
  Envelope flows;
  flows.mutable_flows()->add_flows()->set_name("job");
  ASSERT_TRUE(stage.send(flows));
  Envelope refusal;
  refusal.set_id(asked->id());
  refusal.set_answer(true);
  *refusal.mutable_error() = control::make_error(Error::UNSUPPORTED, "", "no such thing");
  ASSERT_TRUE(stage.send(refusal));
  EXPECT_TRUE(handler_.wait_until([](const auto& stages) {
    return stages[0].flows == 1 &&
           stages[0].refusals == std::vector<std::string>{"1: no such thing"};
  }));
}

TEST_F(StageLinksTest, AStageThatFollowsALaterTermIsLeftAlone) {
  open();
  FakeStage stage = joined("a");
  send_cycle(0, 1);
  const auto asked = stage.receive();
  Envelope report;
  report.set_id(asked->id());
  report.set_answer(true);
  report.mutable_report()->set_sequence(1);
  *report.mutable_report()->mutable_refused() =
      control::make_error(Error::OUTDATED, "sequence", "the last one has term 8");
  ASSERT_TRUE(stage.send(report));
  EXPECT_TRUE(stage.closed_within());
  // The host hears of the refusal first.
  EXPECT_TRUE(handler_.wait_until(
      [](const auto& stages) { return stages[0].reports.size() == 1 && !stages[0].is_connected; }));
}

TEST_F(StageLinksTest, AStageThatSendsWhatWasNotAskedForIsEnded) {
  limits_.unasked = 100;
  open();
  FakeStage good = joined("good");
  FakeStage flood = joined("flood");
  Envelope report;
  report.mutable_report()->set_sequence(1);
  const std::string frame = test::frame_of(report);
  for (int i = 0; i < 1000 && flood.send(frame); ++i) {
  }
  EXPECT_TRUE(flood.closed_within());
  EXPECT_TRUE(handler_.wait_until_connected(1));
  // With cycles in between it is not a flood.
  for (std::uint64_t cycle = 1; cycle <= 300; ++cycle) {
    send_cycle(0, cycle);
    ASSERT_TRUE(good.answer_cycle());
  }
  EXPECT_TRUE(handler_.wait_until_connected(1));
}

TEST_F(StageLinksTest, RequestsAreAnsweredOnceOrGivenUp) {
  open();
  FakeStage stage = joined("a");
  std::mutex mutex;
  std::vector<std::string> answers;
  const auto ask = [&](Duration patience) {
    on_thread([&, patience] {
      Envelope request;
      request.mutable_stats();
      links_->ask({0}, request, patience, [&](const Envelope& answer) {
        const std::lock_guard lock(mutex);
        answers.push_back(answer.has_error() ? answer.error().text() : answer.ack().text());
      });
    });
  };
  const auto has = [&](std::size_t count) {
    return comes_true([&] {
      const std::lock_guard lock(mutex);
      return answers.size() == count;
    });
  };
  const auto answer = [&](const std::string& text) {
    const auto asked = stage.receive();
    ASSERT_TRUE(asked && asked->has_stats());
    Envelope message;
    message.set_id(asked->id());
    message.set_answer(true);
    message.mutable_ack()->set_text(text);
    ASSERT_TRUE(stage.send(message));
    ASSERT_TRUE(stage.send(message));  // twice
  };
  ask(10s);
  answer("one");
  ASSERT_TRUE(has(1));
  ask(100ms);
  ASSERT_TRUE(has(2));
  answer("too late");
  ask(10s);
  answer("three");
  ASSERT_TRUE(has(3));
  ask(10s);
  on_thread([this] { links_->disconnect({0}, links_->joins(), "a reason"); });
  ASSERT_TRUE(has(4));
  EXPECT_THAT(answers, ElementsAre("one", "it did not answer in time", "three", "a reason"));
  EXPECT_TRUE(handler_.wait_until_connected(0));
}

TEST_F(StageLinksTest, OnlyAQuestionHasALongAnswer) {
  limits_.late_answer = 300ms;
  open();
  const auto ask = [&](const char* name, const Envelope& request) {
    FakeStage stage = joined(name);
    on_thread([&, number = static_cast<std::uint32_t>(handler_.stages().size() - 1)] {
      Envelope numbered = request;
      links_->ask({number}, numbered, 10ms, [](const Envelope&) {});
    });
    EXPECT_TRUE(stage.receive());
    return stage;
  };
  Envelope large;
  large.mutable_ack()->set_text(std::string(8 * kMiB, 'x'));
  const std::string frame = test::frame_of(large);
  Envelope told;
  told.mutable_site();
  FakeStage owes_ack = ask("a", told);
  owes_ack.send(frame);
  EXPECT_TRUE(owes_ack.closed_within());
  Envelope question;
  question.mutable_stats();
  FakeStage owes_stats = ask("b", question);
  EXPECT_TRUE(owes_stats.send(frame));
  send_cycle(1, 7);
  EXPECT_TRUE(owes_stats.answer_cycle());
  // It was given up, and its answer does not come at all.
  EXPECT_TRUE(comes_true(
      [&] { return !owes_stats.send(frame, 100ms) || owes_stats.closed_within(100ms); }));
  EXPECT_TRUE(handler_.wait_until_connected(0));
}

TEST_F(StageLinksTest, AStageIsToldThatItMayAskForNothing) {
  open();
  FakeStage stage = joined("a");
  Envelope request;
  request.set_id(42);
  request.mutable_stats();
  ASSERT_TRUE(stage.send(request));
  const auto answer = stage.receive();
  ASSERT_TRUE(answer && answer->has_error());
  EXPECT_EQ(answer->id(), 42U);
  EXPECT_EQ(answer->error().code(), Error::UNSUPPORTED);
}

TEST_F(StageLinksTest, AnEndInTheMiddleOfAMessageIsAnEnd) {
  open();
  Envelope report;
  report.mutable_report()->set_sequence(1);
  const std::string frame = test::frame_of(report);
  for (std::size_t cut = 0; cut < frame.size(); ++cut) {
    FakeStage stage = joined("a");
    ASSERT_TRUE(stage.send(frame.substr(0, cut)));
    stage = FakeStage::dial("/none");
    ASSERT_TRUE(handler_.wait_until_connected(0));
  }
  EXPECT_THAT(handler_.stages()[0].reports, IsEmpty());
}

TEST_F(StageLinksTest, APeerThatSendsALengthAloneTakesNoMemory) {
  open();
  FakeStage stage = joined("a");
  const auto most = static_cast<std::uint32_t>(limits_.frame_of_stages);
  ASSERT_TRUE(stage.send(test::length_field(most)));
  ASSERT_TRUE(stage.send(std::string(1000, '\0')));
  FakeStage other = joined("b");
  ASSERT_TRUE(other.send(test::length_field(most + 1)));
  EXPECT_TRUE(other.closed_within());
  EXPECT_TRUE(handler_.wait_until_connected(1));
}

TEST_F(StageLinksTest, ThousandsThatDialAtOnceAreAllAdmitted) {
  const std::size_t most = net::raise_open_file_limit();
  const std::size_t count = std::min<std::size_t>(2000, (most - 200) / 2);
  open();
  const auto begin = std::chrono::steady_clock::now();
  std::vector<FakeStage> stages;
  for (std::size_t i = 0; i < count; ++i) {
    stages.push_back(dial_in());
    Envelope hello;
    hello.set_id(1);
    *hello.mutable_hello() = stage_hello(fmt::format("stage {}", i));
    ASSERT_TRUE(stages.back().send(hello)) << i;
  }
  ASSERT_TRUE(handler_.wait_until_connected(count));
  const auto took = std::chrono::steady_clock::now() - begin;
  RecordProperty("milliseconds", static_cast<int>(took / 1ms));
  EXPECT_LT(took, 5s);
  for (FakeStage& each : stages) ASSERT_TRUE(each.receive()->has_hello());
  EXPECT_EQ(counters().refused, 0U);
}

TEST_F(StageLinksTest, StoppingEndsAllConnectionsQuietly) {
  open();
  FakeStage stage = joined("a");
  ASSERT_TRUE(handler_.wait_until_connected(1));
  stop();
  EXPECT_TRUE(stage.closed_within());
  EXPECT_FALSE(dial_in().connected());
  EXPECT_TRUE(handler_.stages()[0].is_connected);
}

}  // namespace
}  // namespace vpfs::coordinator
