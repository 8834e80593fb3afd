// Changes of a site's rules while their store is slow, full, away, or another coordinator's.

#include "control/site/site_book.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <asio/post.hpp>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/system_clock.h"
#include "control/site/site_message.h"
#include "control/wire/protocol.h"
#include "test/support/comes_true.h"
#include "test/support/control/scripted_store.h"

namespace vpfs::coordinator {
namespace {

using namespace std::chrono_literals;
using control::Envelope;
using control::Rule;
using control::SiteStore;
using test::comes_true;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Answer = std::expected<Envelope, control::Error>;
using Why = SiteStore::Why;

class SiteBookTest : public ::testing::Test {
 protected:
  SiteBookTest() { open(); }
  ~SiteBookTest() override {
    book_->stop();
    state_.hold(false);
  }

  // A coordinator that begins with what is stored.
  void open() {
    if (book_) book_->stop();
    book_.reset();
    caller_.reset();
    control::StateStore::Loaded loaded;
    for (const std::string& each : state_.kept()) loaded.records.push_back({.text = each});
    std::vector<std::string> notes;
    auto live = control::LiveState::replay(loaded, grammar_, wall_clock_now(), notes);
    ASSERT_TRUE(live) << live.error().message;
    live_ = std::move(*live);
    rules_.emplace(*live_, names_, wall_clock_now);
    caller_.emplace(thread_,
                    [this](std::function<void()> what) { asio::post(context_, std::move(what)); });
    book_.emplace(
        context_, clock_, *caller_, *live_, *rules_, live_->is_behind(), [this] { ++lost_; },
        SiteBook::Limits{
            .patience = 300ms, .pause = 20ms, .most_waiting = 5, .most_bytes = most_bytes_});
  }

  static Envelope start(const std::string& name, std::uint32_t confirm_seconds = 0,
                        const std::string& word = "") {
    Envelope envelope;
    Rule& rule = *envelope.mutable_rule();
    rule.set_action(Rule::START);
    rule.set_name(name);
    rule.set_condition("jobid=" + name);
    rule.add_words("weight=2");
    if (!word.empty()) rule.add_words(word);
    rule.set_confirm_seconds(confirm_seconds);
    return envelope;
  }
  static Envelope job(const std::string& jobid, const std::string& account = "") {
    Envelope envelope;
    control::Job& started = *envelope.mutable_job();
    started.set_action(control::Job::START);
    started.set_jobid(jobid);
    started.add_clients("10.0.0.1");
    started.set_account(account);
    return envelope;
  }
  static Envelope apply(const std::string& text) {
    Envelope envelope;
    envelope.mutable_rule()->set_action(Rule::APPLY);
    envelope.mutable_rule()->set_file(text);
    return envelope;
  }
  [[nodiscard]] std::size_t site_bytes() const { return to_site(*live_, "").ByteSizeLong(); }
  // The place of its answer in answers_.
  std::size_t ask(const Envelope& envelope) {
    answers_.emplace_back();
    const std::size_t place = answers_.size() - 1;
    book_->change(envelope, {.name = "ops", .rights = control::Rights::change}, {},
                  [this, place](Answer answer) { answers_[place] = std::move(answer); });
    return place;
  }
  const Answer& answer(std::size_t place) {
    EXPECT_TRUE(comes_true(context_, [&] { return answers_[place].has_value(); }));
    return *answers_[place];
  }
  [[nodiscard]] std::string error(std::size_t place) {
    const Answer& answered = answer(place);
    return answered ? "" : answered.error().place() + ": " + answered.error().text();
  }
  [[nodiscard]] std::vector<std::string> in_force() const {
    std::vector<std::string> names;
    for (const auto& rule : live_->composed().config.rules) names.push_back(rule.name);
    return names;
  }
  [[nodiscard]] std::size_t writes() {
    const std::lock_guard lock(state_.mutex);
    return state_.writes;
  }

  std::size_t most_bytes_ = kMostSiteBytes;
  test::ScriptedStore::State state_;
  control::StoreThread thread_{std::make_unique<test::ScriptedStore>(state_)};
  asio::io_context context_;
  SystemClock clock_;
  control::HostNames names_;
  stage::Config grammar_ = site_grammar(nullptr);
  std::optional<control::StoreCaller> caller_;
  std::unique_ptr<control::LiveState> live_;
  std::optional<control::RuleAdministration> rules_;
  std::optional<SiteBook> book_;
  std::vector<std::optional<Answer>> answers_;
  int lost_ = 0;
};

TEST_F(SiteBookTest, AChangeIsInForceOnceItIsKept) {
  state_.hold(true);
  const std::size_t first = ask(start("a"));
  ASSERT_TRUE(comes_true(context_, [&] { return writes() == 1; }));
  EXPECT_FALSE(answers_[first]);
  EXPECT_THAT(in_force(), IsEmpty());
  state_.hold(false);
  const Answer& answered = answer(first);
  ASSERT_TRUE(answered) << answered.error().text();
  EXPECT_EQ(answered->rule_reply().text(), "rule a started; this is version 1");
  EXPECT_THAT(in_force(), ElementsAre("a"));
  EXPECT_THAT(state_.kept(), SizeIs(1));
}

TEST_F(SiteBookTest, ChangesWaitForThoseBefore) {
  state_.hold(true);
  const std::size_t first = ask(start("a"));
  const std::size_t same = ask(start("a"));
  const std::size_t second = ask(start("b"));
  state_.hold(false);
  EXPECT_TRUE(answer(first));
  EXPECT_THAT(error(same), HasSubstr("a"));
  ASSERT_TRUE(answer(second));
  EXPECT_EQ(answer(second)->rule_reply().version(), 2U);
  open();
  EXPECT_THAT(in_force(), ElementsAre("b", "a"));
}

TEST_F(SiteBookTest, AFullStoreChangesNothing) {
  state_.fail(Why::refused, "disk full", 2);  // the record, and then the whole book
  const std::size_t place = ask(start("a"));
  EXPECT_EQ(error(place), "store: disk full; nothing was changed");
  EXPECT_THAT(in_force(), IsEmpty());
  EXPECT_TRUE(answer(ask(start("b"))));
  open();
  EXPECT_THAT(in_force(), ElementsAre("b"));
}

TEST_F(SiteBookTest, AStoreThatTakesOnlyTheWholeBookGetsIt) {
  ASSERT_TRUE(answer(ask(start("a"))));
  state_.fail(Why::refused, "the file was moved");
  ASSERT_TRUE(answer(ask(start("b"))));
  EXPECT_EQ(state_.replaced, 1U);
  open();
  EXPECT_THAT(in_force(), ElementsAre("b", "a"));
}

TEST_F(SiteBookTest, AStoreThatDoesNotAnswerIsAskedUntilItDoes) {
  state_.fail(Why::unreachable, "no endpoint answers", 5);
  EXPECT_TRUE(answer(ask(start("a"))));
  EXPECT_THAT(state_.kept(), SizeIs(1));
}

TEST_F(SiteBookTest, ACallerIsToldThatTheOutcomeIsNotKnown) {
  state_.fail(Why::unreachable, "no endpoint answers", 30);
  const std::size_t place = ask(start("a"));
  const std::size_t later = ask(start("b"));
  EXPECT_THAT(error(place), HasSubstr("it is not known whether the change was made"));
  EXPECT_THAT(error(later), HasSubstr("nothing was changed"));
  EXPECT_TRUE(comes_true(context_, [&] { return !in_force().empty(); }))
      << "the store answers again";
  EXPECT_THAT(in_force(), ElementsAre("a"));
  EXPECT_TRUE(answer(ask(start("c"))));
  open();
  EXPECT_THAT(in_force(), ElementsAre("c", "a"));
}

TEST_F(SiteBookTest, AChangeThatMakesTheMessageToStagesTooLongIsRefused) {
  most_bytes_ = 2000;
  open();
  int jobs = 0;
  while (jobs < 100 && answer(ask(job("j" + std::to_string(jobs), std::string(100, 'a'))))) ++jobs;
  EXPECT_GT(jobs, 8);
  EXPECT_LT(jobs, 20);
  EXPECT_LE(site_bytes(), most_bytes_);
  EXPECT_THAT(error(answers_.size() - 1),
              AllOf(HasSubstr("bytes, and stages take 2000"), HasSubstr("nothing was changed")));
  EXPECT_EQ(live_->composed().config.jobs.size(), static_cast<std::size_t>(jobs));
  // What is shorter goes on, and what takes away.
  while (answer(ask(start("r" + std::to_string(jobs))))) ++jobs;
  EXPECT_FALSE(in_force().empty());
  EXPECT_LE(site_bytes(), most_bytes_);
  Envelope stop = job("j0");
  stop.mutable_job()->set_action(control::Job::STOP);
  EXPECT_TRUE(answer(ask(stop)));
  EXPECT_TRUE(answer(ask(start("last"))));
}

TEST_F(SiteBookTest, ASetThatTakesThePlaceOfALongOneIsTaken) {
  most_bytes_ = 2000;
  open();
  const auto set_of = [](const std::string& name, int count) {
    std::string text = "rules:\n";
    for (int i = 0; i < count; ++i) {
      text += fmt::format("  - {{name: {0}{1}, match: 'jobid={0}{1}{2}', weight: 2}}\n", name, i,
                          std::string(40, 'x'));
    }
    return text;
  };
  ASSERT_EQ(error(ask(apply(set_of("a", 18)))), "");
  EXPECT_GT(site_bytes(), most_bytes_ / 2);
  EXPECT_EQ(error(ask(apply(set_of("b", 16)))), "");
  EXPECT_THAT(error(ask(apply(set_of("c", 40)))), HasSubstr("bytes, and stages take 2000"));
  EXPECT_LE(site_bytes(), most_bytes_);
  EXPECT_THAT(in_force(), SizeIs(16));
}

TEST_F(SiteBookTest, NoChangeIsLongerThanItWasTakenFor) {
  const std::string long_name(100, 'n');
  Envelope with_rule = job(long_name, "account");
  for (std::uint32_t uid : {1U, 70'000U, 4'000'000'000U}) with_rule.mutable_job()->add_uids(uid);
  with_rule.mutable_job()->add_words("weight=3");
  with_rule.mutable_job()->set_time_limit_seconds(3600);
  Envelope change = start("a", 0, "rate=1MiB/s");
  change.mutable_rule()->set_action(Rule::CHANGE);
  change.mutable_rule()->clear_condition();
  for (const Envelope& each : {start("a", 0, "for=1h"), start("b"), change, job("j"), with_rule}) {
    const std::size_t before = site_bytes();
    control::ReadRequest read;
    const auto prepared =
        rules_->prepare(each, {.name = "ops", .rights = control::Rights::change}, read);
    ASSERT_TRUE(prepared) << prepared.error().text();
    const SiteGrowth growth = growth_of(prepared->operation, live_->book().state());
    ASSERT_EQ(error(ask(each)), "");
    EXPECT_LE(site_bytes(), before + growth.most);
    EXPECT_GE(site_bytes() + 200, before + growth.most);
  }
}

TEST_F(SiteBookTest, TooManyThatWaitAreRefused) {
  state_.hold(true);
  std::vector<std::size_t> places;
  for (int i = 0; i < 7; ++i) places.push_back(ask(start("r" + std::to_string(i))));
  EXPECT_THAT(error(places.back()), HasSubstr("too many changes wait"));
  state_.hold(false);
  EXPECT_TRUE(answer(places.front()));
}

TEST_F(SiteBookTest, AnotherLeaderEndsIt) {
  state_.fail(Why::lost, "another coordinator leads");
  const std::size_t place = ask(start("a"));
  const std::size_t later = ask(start("b"));
  EXPECT_THAT(error(place), HasSubstr("it is not known whether the change was made"));
  EXPECT_EQ(lost_, 1);
  book_->stop();
  EXPECT_EQ(error(later), "leader: this coordinator leads no more; nothing was changed");
  EXPECT_THAT(error(ask(start("c"))), HasSubstr("leader: "));
  EXPECT_THAT(state_.kept(), IsEmpty());
}

TEST_F(SiteBookTest, WhatEndsByItselfEndsAlsoWithoutAStore) {
  ASSERT_TRUE(answer(ask(start("a", 1))));  // to be confirmed within a second
  EXPECT_THAT(in_force(), ElementsAre("a"));
  state_.fail(Why::refused, "disk full", 3);
  EXPECT_TRUE(comes_true(context_, [&] {
    book_->tick();
    return in_force().empty();
  }));
  EXPECT_TRUE(comes_true(context_, [&] {
    book_->tick();
    return state_.kept().size() == 1 && state_.replaced == 1;
  })) << "the whole book follows, once there is room";
  EXPECT_TRUE(answer(ask(start("b"))));
  open();
  EXPECT_THAT(in_force(), ElementsAre("b"));
}

TEST_F(SiteBookTest, WhatEndedBetweenTwoLeadersIsKeptBeforeAnythingElse) {
  ASSERT_TRUE(answer(ask(start("a", 1))));
  std::this_thread::sleep_for(1100ms);
  open();
  EXPECT_TRUE(live_->is_behind());
  EXPECT_THAT(in_force(), IsEmpty());
  EXPECT_TRUE(answer(ask(start("b"))));
  open();
  EXPECT_FALSE(live_->is_behind());
  EXPECT_THAT(in_force(), ElementsAre("b"));
}

TEST_F(SiteBookTest, ALongStoreIsReplacedByTheBook) {
  ASSERT_TRUE(answer(ask(start("a"))));
  {
    const std::lock_guard lock(state_.mutex);
    state_.wants_replacing = true;
  }
  ASSERT_TRUE(answer(ask(start("b"))));
  EXPECT_TRUE(comes_true(context_, [&] { return state_.kept().size() == 1; }));
  // A store that cannot be made shorter takes changes all the same.
  {
    const std::lock_guard lock(state_.mutex);
    state_.wants_replacing = true;
  }
  ASSERT_TRUE(answer(ask(start("c"))));
  open();
  EXPECT_THAT(in_force(), ElementsAre("c", "b", "a"));
}

// The record is in the store, and the answer was lost. Then the store refuses it.
TEST_F(SiteBookTest, ARefusalAfterALostAnswerIsNotTakenForNothing) {
  state_.carries_out = true;
  state_.fail(Why::unreachable, "no answer");
  state_.fail(Why::refused, "the store is full");
  EXPECT_THAT(error(ask(start("a"))), HasSubstr("it is not known whether the change was made"));
  ASSERT_TRUE(answer(ask(start("b"))));
  EXPECT_THAT(in_force(), ElementsAre("b"));
  open();
  EXPECT_THAT(in_force(), ElementsAre("b")) << "the whole book has replaced what was stored";
}

TEST_F(SiteBookTest, ARefusalAfterTheCallerWasToldLeavesNoRecordTwice) {
  state_.carries_out = true;
  state_.fail(Why::unreachable, "no answer", 20);  // longer than the caller waits
  state_.fail(Why::refused, "the store is full");
  EXPECT_THAT(error(ask(start("a"))), HasSubstr("it is not known whether the change was made"));
  EXPECT_TRUE(comes_true(context_, [&] { return state_.replaced > 0; }));
  ASSERT_TRUE(answer(ask(start("b"))));
  open();
  EXPECT_THAT(in_force(), ElementsAre("b"));
}

TEST_F(SiteBookTest, WhatIsDueEndsAlsoWhileTheStoreRefuses) {
  ASSERT_TRUE(answer(ask(start("a", 0, "for=1s"))));
  state_.fail(Why::refused, "disk full", 1000);
  EXPECT_THAT(error(ask(start("b"))), HasSubstr("nothing was changed"));
  EXPECT_TRUE(comes_true(context_, [&] {
    book_->tick();
    return in_force().empty();
  }));
  EXPECT_LT(writes(), 20U) << "a store that refuses is asked less and less often";
}

// A change that was prepared before something ended, and is made after it.
TEST_F(SiteBookTest, AChangeIsPreparedAgainIfSomethingEndedMeanwhile) {
  grammar_ = site_grammar(&names_);
  ASSERT_TRUE(answer(ask(start("a", 0, "for=1s"))));
  std::this_thread::sleep_for(1100ms);
  control::ReadRequest read;
  const control::Caller caller = {.name = "ops", .rights = control::Rights::change};
  ASSERT_TRUE(rules_->names_of(start("b"), caller, read).empty());
  ASSERT_TRUE(read.change) << "it was prepared";
  answers_.emplace_back();
  book_->change(start("b"), caller, std::move(read),
                [this](Answer answered) { answers_.back() = std::move(answered); });
  ASSERT_TRUE(answer(answers_.size() - 1));
  open();
  EXPECT_THAT(in_force(), ElementsAre("b"));
}

}  // namespace
}  // namespace vpfs::coordinator
