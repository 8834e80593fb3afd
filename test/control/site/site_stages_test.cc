#include "control/site/site_stages.h"

#include <gmock/gmock.h>

#include "test/control/coordinator/stages_of_test.h"
#include "test/support/manual_clock.h"

namespace vpfs::coordinator {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

control::Site site_with(const std::string& rule) {
  control::Site site;
  site.set_origin("main");
  site.add_rules()->set_name(rule);
  return site;
}

class SiteStagesTest : public ::testing::Test {
 protected:
  SiteStagesTest() { stages_.use(requests_); }

  allocation::StageId join(const std::string& name) {
    const allocation::StageId stage = requests_.add(name);
    stages_.joined(stage);
    return stage;
  }
  // What an administrator would be told now.
  std::vector<std::string> told() {
    std::vector<std::string> lines = {"nothing yet"};
    stages_.when_answered(0s, [&](std::vector<std::string> all) { lines = std::move(all); });
    context_.restart();
    context_.run();
    return lines;
  }
  std::string rule_of(const std::string& stage) {
    const auto* const asked = requests_.open(stage);
    return asked == nullptr ? "not asked" : asked->request.site().rules(0).name();
  }
  const SiteStages::Member member(const std::string& name) {
    for (const SiteStages::Member& each : stages_.members()) {
      if (each.hello->name == name) return each;
    }
    ADD_FAILURE() << name;
    return {};
  }

  asio::io_context context_;
  test::ManualClock clock_{TimePoint(std::chrono::seconds(100))};
  StagesOfTest requests_;
  SiteStages stages_{context_, clock_};
};

TEST_F(SiteStagesTest, AStageGetsTheRulesWhenItJoinsAndAfterEachChange) {
  join("ds1");
  EXPECT_EQ(requests_.asked.size(), 0U) << "no rules were set yet";
  EXPECT_TRUE(stages_.set(site_with("a")));
  EXPECT_EQ(rule_of("ds1"), "a");
  join("ds2");
  EXPECT_EQ(rule_of("ds2"), "a");
  requests_.acknowledge("ds1");
  requests_.acknowledge("ds2");
  EXPECT_TRUE(member("ds1").has_newest);
  EXPECT_TRUE(stages_.set(site_with("b")));
  EXPECT_FALSE(member("ds1").has_newest);
  EXPECT_EQ(rule_of("ds1"), "b");
}

TEST_F(SiteStagesTest, TheSameRulesAreNotSentAgain) {
  stages_.set(site_with("a"));
  join("ds1");
  requests_.acknowledge("ds1");
  EXPECT_FALSE(stages_.set(site_with("a")));
  EXPECT_EQ(requests_.asked.size(), 1U);
}

TEST_F(SiteStagesTest, RulesHaveTheTermOfTheCoordinatorWhenTheyAreSent) {
  std::uint64_t term = 4;
  stages_.lead([&] { return term; }, nullptr);
  control::Site of_parent = site_with("a");
  of_parent.set_term(9);
  stages_.set(of_parent);
  join("ds1");
  EXPECT_EQ(requests_.open("ds1")->request.site().term(), 4U);
  requests_.acknowledge("ds1");
  of_parent.set_term(10);
  EXPECT_FALSE(stages_.set(of_parent)) << "the rules are the same";
  term = 5;
  join("ds2");
  EXPECT_EQ(requests_.open("ds2")->request.site().term(), 5U);
}

TEST_F(SiteStagesTest, NothingIsSentUnlessTheCoordinatorLeads) {
  bool leads = false;
  stages_.lead(nullptr, [&] { return leads; });
  join("ds1");
  stages_.set(site_with("a"));
  stages_.tick();
  EXPECT_EQ(requests_.asked.size(), 0U);
  EXPECT_FALSE(member("ds1").has_newest);
  EXPECT_THAT(told(),
              ElementsAre("ds1: was not sent the rules: this coordinator may lead no more"));
  leads = true;
  stages_.tick();
  EXPECT_EQ(rule_of("ds1"), "a");
}

TEST_F(SiteStagesTest, ManyChangesWhileAStageIsSlowBecomeOneMessage) {
  join("ds1");
  for (const char* rule : {"a", "b", "c", "d"}) stages_.set(site_with(rule));
  EXPECT_EQ(requests_.times_asked("ds1"), 1U);
  requests_.acknowledge("ds1");
  EXPECT_FALSE(member("ds1").has_newest);
  EXPECT_EQ(requests_.times_asked("ds1"), 2U);
  EXPECT_EQ(rule_of("ds1"), "d");
  requests_.acknowledge("ds1");
  EXPECT_TRUE(member("ds1").has_newest);
}

TEST_F(SiteStagesTest, WarningsAndRefusalsAreToldByTheNameOfTheStage) {
  for (const char* name : {"ds3", "ds1", "ds2"}) join(name);
  StageHello old;
  old.name = "ds4";
  stages_.joined(requests_.add(old));
  requests_.missing = {{.name = "ds5", .address = "/run/ds5", .problem = "refused"},
                       {.name = "", .address = "/run/ds6", .problem = ""}};
  stages_.set(site_with("gold"));
  requests_.acknowledge("ds1", {"rule gold: the protocol does not show it"});
  requests_.refuse("ds2", control::Error::INVALID, "rules[0]", "is bad");
  EXPECT_THAT(
      told(),
      ElementsAre("ds1: rule gold: the protocol does not show it", "ds2: rules[0]: is bad",
                  "ds3 has not answered yet",
                  "ds4 does not take rules of a coordinator: its program is an older version",
                  "ds5 is not connected: it gets the rules when it comes",
                  "/run/ds6 is not connected: it gets the rules when it comes"));
  EXPECT_EQ(requests_.times_asked("ds4"), 0U);
}

TEST_F(SiteStagesTest, AWaitingCallerIsToldAtOnceWhenAllHaveAnswered) {
  join("ds1");
  join("ds2");
  stages_.set(site_with("a"));
  std::vector<std::vector<std::string>> told;
  for (int i = 0; i < 2; ++i) {
    stages_.when_answered(1h,
                          [&](std::vector<std::string> all) { told.push_back(std::move(all)); });
  }
  context_.poll();
  EXPECT_EQ(told.size(), 0U);
  requests_.acknowledge("ds1");
  context_.poll();
  EXPECT_EQ(told.size(), 0U);
  requests_.acknowledge("ds2", {"w"});
  context_.poll();
  ASSERT_EQ(told.size(), 2U);
  EXPECT_THAT(told[0], ElementsAre("ds2: w"));
}

TEST_F(SiteStagesTest, AStageThatLeavesIsNotWaitedForAndItsAnswerIsNotTakenForAnothers) {
  const allocation::StageId stage = join("ds1");
  stages_.set(site_with("a"));
  const auto late = requests_.open("ds1")->done;
  stages_.left(stage);
  EXPECT_THAT(told(), IsEmpty());
  // Another stage has the number.
  requests_.hellos[stage.index].name = "ds2";
  stages_.joined(stage);
  control::Envelope ack;
  ack.mutable_ack()->add_warnings("of ds1");
  late(ack);
  EXPECT_FALSE(member("ds2").has_newest);
  EXPECT_THAT(member("ds2").warnings, IsEmpty());
}

TEST_F(SiteStagesTest, AStageThatCouldNotIsAskedAgainAfterAWhileAndOneThatRefusesIsNot) {
  join("ds1");
  join("ds2");
  stages_.set(site_with("a"));
  requests_.refuse("ds1", control::Error::UNAVAILABLE, "control.journal", "the disk is full");
  requests_.refuse("ds2", control::Error::INVALID, "", "no");
  clock_.set(clock_.now() + 9s);
  stages_.tick();
  EXPECT_EQ(requests_.times_asked("ds1"), 1U);
  clock_.set(clock_.now() + 2s);
  stages_.tick();
  EXPECT_EQ(requests_.times_asked("ds1"), 2U);
  EXPECT_EQ(requests_.times_asked("ds2"), 1U);
}

TEST_F(SiteStagesTest, RulesThatAreTooLongForAMessageAreNotSent) {
  SiteStages stages(context_, clock_, {.most_bytes = 100});
  stages.use(requests_);
  stages.joined(requests_.add("ds1"));
  stages.set(site_with(std::string(200, 'x')));
  EXPECT_EQ(requests_.asked.size(), 0U);
  EXPECT_THAT(stages.members()[0].problem, ::testing::HasSubstr("a stage takes 100"));
  stages.set(site_with("x"));
  EXPECT_EQ(requests_.asked.size(), 1U);
}

TEST_F(SiteStagesTest, CyclesComeBetweenWhenManyStagesAreSentTheRules) {
  SiteStages stages(context_, clock_, {.stages_at_once = 10});
  stages.use(requests_);
  for (int i = 0; i < 25; ++i) stages.joined(requests_.add("ds" + std::to_string(i)));
  stages.set(site_with("a"));
  EXPECT_EQ(requests_.asked.size(), 10U);
  bool told = false;
  stages.when_answered(1h, [&](const std::vector<std::string>&) { told = true; });
  // Answers of the first ones do not bring more of them into this turn, and a newer version goes to
  // those that have none yet.
  stages.set(site_with("b"));
  for (int i = 0; i < 10; ++i) requests_.acknowledge("ds" + std::to_string(i));
  EXPECT_EQ(requests_.asked.size(), 10U);
  std::size_t before = 10;
  for (std::size_t turn = 0; before < 35 && turn < 10; ++turn) {
    context_.restart();
    context_.poll_one();
    EXPECT_LE(requests_.asked.size(), before + 10);
    before = requests_.asked.size();
    EXPECT_FALSE(told);
  }
  ASSERT_EQ(requests_.asked.size(), 35U) << "ten of them twice";
  for (int i = 0; i < 25; ++i) {
    const std::string name = "ds" + std::to_string(i);
    EXPECT_EQ(rule_of(name), "b");
    requests_.acknowledge(name);
  }
  context_.restart();
  context_.poll();
  EXPECT_TRUE(told);
}

TEST_F(SiteStagesTest, LongRulesGoToFewerStagesAtOnce) {
  SiteStages stages(context_, clock_, {.bytes_at_once = 1000});
  stages.use(requests_);
  for (int i = 0; i < 9; ++i) stages.joined(requests_.add("ds" + std::to_string(i)));
  stages.set(site_with(std::string(400, 'x')));
  EXPECT_EQ(requests_.asked.size(), 3U);
  context_.poll();
  EXPECT_EQ(requests_.asked.size(), 9U);
}

TEST_F(SiteStagesTest, AStageThatLeavesBeforeItsTurnIsNotSentTheRules) {
  SiteStages stages(context_, clock_, {.stages_at_once = 1});
  stages.use(requests_);
  stages.joined(requests_.add("ds0"));
  const allocation::StageId second = requests_.add("ds1");
  stages.joined(second);
  stages.set(site_with("a"));
  stages.left(second);
  requests_.acknowledge("ds0");
  bool told = false;
  stages.when_answered(1h, [&](const std::vector<std::string>&) { told = true; });
  context_.poll();
  EXPECT_TRUE(told);
  EXPECT_EQ(requests_.asked.size(), 1U);
}

TEST_F(SiteStagesTest, LinesAreBounded) {
  SiteStages stages(context_, clock_, {.most_lines = 2});
  stages.use(requests_);
  requests_.missing.assign(5, {.name = "ds", .address = "", .problem = ""});
  std::vector<std::string> lines;
  stages.when_answered(0s, [&](std::vector<std::string> all) { lines = std::move(all); });
  context_.run();
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_THAT(lines[2], ::testing::StartsWith("and 3 more"));
}

}  // namespace
}  // namespace vpfs::coordinator
