#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "test/control/coordinator/links_fixture.h"
#include "test/support/comes_true.h"

namespace vpfs::coordinator {
namespace {

using namespace std::chrono_literals;
using control::Envelope;
using test::comes_true;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Stages that the coordinator dials.
class StageLinksDiallingTest : public LinksFixture {
 protected:
  StageLinksDiallingTest() { config_.listen = {}; }

  [[nodiscard]] std::string path(const std::string& name) const {
    return folder_.path() / (name + ".sock");
  }
  void dial(const std::string& name, const std::string& called) {
    config_.dial.push_back({.name = called, .address = {.path = path(name), .host = ""}});
  }
  // The problem of the only stage that is absent.
  [[nodiscard]] std::string problem() {
    const auto list = absent();
    return list.size() == 1 ? list[0].problem : fmt::format("{} are absent", list.size());
  }
  [[nodiscard]] bool comes_to(const std::string& text) {
    return comes_true([&] { return problem().find(text) != std::string::npos; });
  }
};

TEST_F(StageLinksDiallingTest, AStageOfTheConfigurationIsDialledAndHasItsNameThere) {
  dial("ds1", "first");
  dial("ds2", "");
  StageSocket one(path("ds1"));
  StageSocket two(path("ds2"));
  open();
  FakeStage first = one.accept();
  const auto hello = first.receive();
  ASSERT_TRUE(hello && hello->has_hello());
  EXPECT_FALSE(hello->answer());
  EXPECT_EQ(hello->hello().role(), control::Hello::COORDINATOR);
  EXPECT_EQ(hello->hello().name(), "site");
  Envelope answer;
  answer.set_id(hello->id());
  answer.set_answer(true);
  *answer.mutable_hello() = stage_hello("as it calls itself");
  ASSERT_TRUE(first.send(answer));
  ASSERT_TRUE(handler_.wait_until_connected(1));
  EXPECT_EQ(handler_.last_hello().name, "first");
  EXPECT_TRUE(handler_.last_hello().was_dialled);
  EXPECT_EQ(handler_.last_hello().address, path("ds1"));

  const FakeStage second = two.accept_and_greet(stage_hello("its own"));
  ASSERT_TRUE(handler_.wait_until_connected(2));
  EXPECT_EQ(handler_.last_hello().name, "its own");
  EXPECT_THAT(absent(), IsEmpty());
  send_cycle(0, 3);
  EXPECT_EQ(first.answer_cycle()->sequence(), 3U);
}

TEST_F(StageLinksDiallingTest, AStageThatIsAwayIsAbsentAndDialledAgain) {
  dial("ds1", "first");
  open();
  EXPECT_TRUE(comes_to("there is no such socket")) << problem();
  EXPECT_EQ(absent()[0].name, "first");
  EXPECT_EQ(absent()[0].address, path("ds1"));
  std::optional<StageSocket> socket(path("ds1"));
  {
    const FakeStage stage = socket->accept_and_greet(stage_hello("x"));
    ASSERT_TRUE(handler_.wait_until_connected(1));
    EXPECT_THAT(absent(), IsEmpty());
  }
  ASSERT_TRUE(handler_.wait_until_connected(0));
  const FakeStage again = socket->accept_and_greet(stage_hello("x"));
  ASSERT_TRUE(handler_.wait_until_connected(1));
  EXPECT_EQ(handler_.stages()[0].times_joined, 2);
}

TEST_F(StageLinksDiallingTest, PausesGrowToTheirBoundAndBeginAnewAfterASuccess) {
  limits_.least_pause = 40ms;
  limits_.most_pause = 320ms;
  dial("ds1", "first");
  StageSocket socket(path("ds1"));
  open();
  using Clock = std::chrono::steady_clock;
  auto last = Clock::now();
  const auto next_pause = [&](bool greets) {
    const FakeStage stage = greets ? socket.accept_and_greet(stage_hello("x")) : socket.accept();
    const auto now = Clock::now();
    const auto pause = now - std::exchange(last, now);
    // Ends here.
    if (greets) EXPECT_TRUE(handler_.wait_until_connected(1));
    return pause;
  };
  (void)next_pause(false);
  // Only lower bounds: a machine may be slow.
  for (const auto least : {40ms, 80ms, 160ms, 320ms, 320ms}) {
    EXPECT_GE(next_pause(false) + 5ms, least);
  }
  EXPECT_GE(next_pause(true) + 5ms, 320ms);
  const auto after = next_pause(false);
  EXPECT_GE(after + 5ms, 40ms);
  EXPECT_LT(after, 320ms) << "unless this machine paused";
}

TEST_F(StageLinksDiallingTest, WhoeverAnswersWrongIsAbsentWithTheReason) {
  dial("ds1", "first");
  StageSocket socket(path("ds1"));
  open();
  control::Hello hello = stage_hello("x");
  hello.set_role(control::Hello::COORDINATOR);
  (void)socket.accept_and_greet(hello);
  EXPECT_TRUE(comes_to("role: it is not a stage")) << problem();
  hello = stage_hello("x");
  hello.set_version(7);
  hello.set_least(6);
  (void)socket.accept_and_greet(hello);
  EXPECT_TRUE(comes_to("version: ")) << problem();
  hello = stage_hello("x");
  hello.set_cost_model("other");
  (void)socket.accept_and_greet(hello);
  EXPECT_TRUE(comes_to("\"other\" is not \"cost\"")) << problem();
  FakeStage refusing = socket.accept();
  const auto asked = refusing.receive();
  Envelope error;
  error.set_id(asked->id());
  error.set_answer(true);
  *error.mutable_error() =
      control::make_error(control::Error::NOT_PERMITTED, "", "you may not send cycles");
  ASSERT_TRUE(refusing.send(error));
  EXPECT_TRUE(comes_to("it refuses: you may not send cycles")) << problem();
  FakeStage other = socket.accept();
  (void)other.send("SSH-2.0-OpenSSH_9.2\r\n");
  EXPECT_TRUE(comes_to("not the control protocol")) << problem();
  // It does not ask before it has answered.
  FakeStage asking = socket.accept();
  Envelope stats;
  stats.set_id(1);
  stats.mutable_stats();
  ASSERT_TRUE(asking.send(stats));
  EXPECT_TRUE(comes_to("the first message has to be Hello")) << problem();
  EXPECT_THAT(handler_.stages(), IsEmpty());
  const FakeStage good = socket.accept_and_greet(stage_hello("x"));
  EXPECT_TRUE(handler_.wait_until_connected(1));
}

TEST_F(StageLinksDiallingTest, AStageThatSaysNothingIsGivenUpAndDialledAgain) {
  limits_.hello = 200ms;
  dial("ds1", "first");
  StageSocket socket(path("ds1"));
  open();
  FakeStage silent = socket.accept();
  EXPECT_TRUE(silent.closed_within());
  EXPECT_TRUE(comes_to("it did not say Hello in time")) << problem();
  const FakeStage good = socket.accept_and_greet(stage_hello("x"));
  EXPECT_TRUE(handler_.wait_until_connected(1));
}

TEST_F(StageLinksDiallingTest, AStageWithALaterTermIsDialledAgainAfterTheLongestPause) {
  limits_.most_pause = 400ms;
  dial("ds1", "first");
  StageSocket socket(path("ds1"));
  open();
  FakeStage stage = socket.accept_and_greet(stage_hello("x"));
  ASSERT_TRUE(handler_.wait_until_connected(1));
  send_cycle(0, 1);
  const auto asked = stage.receive();
  Envelope error;
  error.set_id(asked->id());
  error.set_answer(true);
  *error.mutable_error() =
      control::make_error(control::Error::OUTDATED, "sequence", "the last one has term 8");
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(stage.send(error));
  EXPECT_TRUE(comes_to("another coordinator leads it: sequence: the last one has term 8"))
      << problem();
  const FakeStage again = socket.accept_and_greet(stage_hello("x"));
  EXPECT_GE(std::chrono::steady_clock::now() - begin + 5ms, 400ms);
  EXPECT_TRUE(handler_.wait_until_connected(1));
}

TEST_F(StageLinksDiallingTest, NoPeerThatDialsInTakesTheNameOfAStageOfTheConfiguration) {
  config_.listen.socket = folder_.path() / "stages.sock";
  dial("ds1", "first");
  dial("ds2", "");
  open();
  EXPECT_EQ(refusal_of(stage_hello("first")),
            fmt::format("name: first is a stage of the configuration (stages.dial), which is "
                        "dialled at {}: no other one may have its name",
                        path("ds1")));
  const FakeStage mount = joined("mount7");
  StageSocket socket(path("ds1"));
  const FakeStage first = socket.accept_and_greet(stage_hello("x"));
  ASSERT_TRUE(handler_.wait_until_connected(2));
  EXPECT_EQ(handler_.last_hello().name, "first");
}

TEST_F(StageLinksDiallingTest, StoppingWhileItDialsIsQuiet) {
  dial("ds1", "first");
  dial("ds2", "second");
  StageSocket socket(path("ds1"));
  open();
  FakeStage stage = socket.accept();
  stop();
  EXPECT_TRUE(stage.closed_within());
}

TEST_F(StageLinksDiallingTest, OnlyStagesOfItsPartAreDialled) {
  dial("ds1", "first");
  dial("ds2", "second");
  StageSocket one(path("ds1"));
  StageSocket two(path("ds2"));
  const auto serve = [this](const std::string& served) {
    links_->serve(
        [served](const std::string& stage, StageLinks::Comes) -> std::optional<control::Error> {
          if (stage == served) return std::nullopt;
          return control::make_error(control::Error::UNAVAILABLE, "member", "another serves it");
        });
  };
  open();
  on_thread([&] { serve("second"); });
  FakeStage not_own = one.accept();
  EXPECT_TRUE(not_own.closed_within());
  FakeStage second = two.accept_and_greet(stage_hello("ds2"));
  ASSERT_TRUE(handler_.wait_until([](const auto& stages) {
    return stages.size() == 1 && stages[0].name == "second" && stages[0].is_connected;
  }));
  EXPECT_THAT(absent(), IsEmpty()) << "the other one is not its own";
  on_thread([&] { serve("first"); });
  EXPECT_TRUE(second.closed_within());
  const FakeStage first = one.accept_and_greet(stage_hello("ds1"));
  ASSERT_TRUE(handler_.wait_until([](const auto& stages) {
    return stages.size() == 2 && !stages[0].is_connected && stages[1].is_connected;
  }));
}

}  // namespace
}  // namespace vpfs::coordinator
