// What was done, as administrators and users may ask about it.
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "control/admin/past_questions.h"
#include "test/control/host/administration_rig.h"

namespace vpfs::control {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class PastTest : public AdministrationTest {
 protected:
  void SetUp() override {
    AdministrationTest::SetUp();
    ASSERT_EQ(why_not(ask(job_of("mine", 1001, {"10.0.0.1"}))), "");
    ASSERT_EQ(why_not(ask(job_of("theirs", 1002, {"10.0.0.2"}))), "");
    stage_->serve(stage_->find("mine", "10.0.0.1"));
    stage_->serve(stage_->find("theirs", "10.0.0.2"));
    stage_->serve(stage_->find("theirs", "10.0.0.2"));
    second();
  }
  void second() {
    wall_ += std::chrono::seconds(1);
    stage_->advance(std::chrono::seconds(1));
    administration_->tick();
  }
  Envelope past(const std::string& name, const Caller& caller = kChief, std::uint32_t most = 10) {
    Envelope request;
    request.mutable_past()->set_name(name);
    request.mutable_past()->set_back_seconds(600);
    request.mutable_past()->set_most(most);
    return ask(request, caller);
  }
  static std::vector<std::string> names(const Envelope& reply) {
    std::vector<std::string> found;
    for (const PastOf& each : reply.past_reply().virtual_pfs()) found.push_back(each.name());
    return found;
  }
  static std::vector<std::string> asked(const Envelope& reply) {
    std::vector<std::string> found;
    for (const PastOf& each : reply.past_reply().virtual_pfs()) {
      if (each.asked()) found.push_back(each.name());
    }
    return found;
  }
};

TEST_F(PastTest, AVirtualPfsAndItsJobAreNames) {
  EXPECT_THAT(asked(past("job-mine")), ElementsAre("job-mine"));
  const Envelope reply = past("mine");
  EXPECT_THAT(asked(reply), ElementsAre("job-mine"));
  EXPECT_THAT(names(reply), ElementsAre("job-theirs", "job-mine"));
  const PastOf& mine = reply.past_reply().virtual_pfs(1);
  EXPECT_EQ(mine.read_bytes(), 1000U);
  EXPECT_EQ(mine.jobid(), "mine");
  EXPECT_THAT(mine.rules(), ElementsAre("job-{jobid}"));
  EXPECT_EQ(mine.weight(), 1U);
  EXPECT_EQ(mine.active_us(), 1'000'000U);
  EXPECT_EQ(reply.past_reply().cost(), 3000U);
}

TEST_F(PastTest, AUserIsFoundByTheRequestsOfItsClients) {
  Client client;
  client.set_address("10.0.0.1");
  Seen& seen = *client.add_seen();
  seen.set_virtual_pfs("job-mine");
  seen.set_uid(1001);
  program_.clients = {client};
  EXPECT_THAT(asked(past("1001")), ElementsAre("job-mine"));
  EXPECT_THAT(asked(past("10.0.0.0/8")), ElementsAre("job-mine"));
  EXPECT_THAT(asked(past("1002")), IsEmpty());
}

class PastOfNames : public PastTest {
 protected:
  PastOfNames() { file_.names = &names_; }
};

TEST_F(PastOfNames, OnlyOneThatTheHistoryDoesNotHaveIsLookedUp) {
  lookups_.later = true;
  EXPECT_THAT(asked(past("job-mine")), ElementsAre("job-mine"));
  EXPECT_THAT(asked(past("mine")), ElementsAre("job-mine"));
  EXPECT_THAT(names(past("")), ElementsAre("job-theirs", "job-mine"));
  EXPECT_TRUE(lookups_.pending.empty());
  Envelope request;
  request.mutable_past()->set_name("carol");
  request.mutable_past()->set_back_seconds(600);
  std::optional<Envelope> reply;
  administration_->ask(request, kChief, Answer([&](Envelope come) { reply = std::move(come); }));
  EXPECT_FALSE(reply);
  ASSERT_EQ(lookups_.pending.size(), 1U);
  EXPECT_THAT(lookups_.wanted.users, ElementsAre("carol"));
  EXPECT_TRUE(lookups_.is_question) << "an answer is not waited for as long as a change";
  EXPECT_THAT(lookups_.wanted.hosts, ElementsAre("carol"));
  lookups_.pending[0]("the name service is slow");
  ASSERT_TRUE(reply);
  EXPECT_THAT(why_not(*reply), HasSubstr("the name service is slow"));
}

TEST_F(PastTest, AJobThatEndedIsKnown) {
  Job stop = job_of("mine", 1001);
  stop.set_action(Job::STOP);
  ASSERT_EQ(why_not(ask(stop)), "");
  stage_->retire_idle();
  second();
  EXPECT_THAT(asked(past("mine")), ElementsAre("job-mine"));
  EXPECT_THAT(names(past("", kAlice)), ElementsAre("job-mine")) << "whose it was";
}

TEST_F(PastTest, UsersSeeTheirOwnJobsAlone) {
  const Envelope reply = past("", kAlice);
  EXPECT_THAT(names(reply), ElementsAre("job-mine"));
  EXPECT_TRUE(reply.past_reply().partial());
  EXPECT_FALSE(reply.past_reply().has_others());
  EXPECT_EQ(reply.past_reply().cost(), 0U);
  EXPECT_THAT(asked(past("theirs", kAlice)), IsEmpty());
  EXPECT_THAT(asked(past("alice", kAlice)), ElementsAre("job-mine"));
  EXPECT_THAT(asked(past("1001", kAlice)), ElementsAre("job-mine"));
  EXPECT_THAT(asked(past("1002", kAlice)), IsEmpty());
  const Caller nobody = {.name = "CN=x", .from = "10.0.0.9", .rights = Rights::own, .uid = {}};
  EXPECT_THAT(names(past("", nobody)), IsEmpty());
}

TEST_F(PastTest, UsersGetABoundedNumberOfAnswersInASecond) {
  for (int i = 0; i < PastQuestions::kForOwn; ++i) {
    EXPECT_EQ(why_not(past("", kAlice)), "");
  }
  EXPECT_EQ(past("", kAlice).error().code(), Error::UNAVAILABLE);
  EXPECT_EQ(why_not(past("")), "") << "administrators are not refused";
  wall_ += std::chrono::seconds(1);
  EXPECT_EQ(why_not(past("", kAlice)), "");
}

TEST_F(PastTest, WhatTheOthersDidIsOneSum) {
  const Envelope reply = past("mine", kChief, 0);
  EXPECT_THAT(names(reply), ElementsAre("job-mine"));
  EXPECT_EQ(reply.past_reply().others().read_bytes(), 2000U);
}

TEST_F(PastTest, ATimeThatIsYetToComeIsAMistake) {
  Envelope request;
  Past& past = *request.mutable_past();
  past.set_from_at(seconds_since_epoch(wall_) + 60);
  past.set_to_at(seconds_since_epoch(wall_) + 120);
  EXPECT_EQ(why_not(ask(request)), "from_at: that time is yet to come");
  past.set_to_at(seconds_since_epoch(wall_));
  EXPECT_EQ(why_not(ask(request)), "to_at: expected a time after from_at");
}

TEST_F(PastTest, ATimeBeforeTheHistoryHasNothingAndSaysWhereItBegins) {
  Envelope request;
  Past& past = *request.mutable_past();
  past.set_from_at(seconds_since_epoch(wall_) - 7200);
  past.set_to_at(seconds_since_epoch(wall_) - 3600);
  const Envelope reply = ask(request);
  EXPECT_EQ(reply.past_reply().length_us(), 0U);
  EXPECT_EQ(reply.past_reply().known_from_at(), seconds_since_epoch(wall_) - 1);
}

TEST_F(PastTest, NumbersThatNoTimeHasAreBounded) {
  Envelope request;
  Past& past = *request.mutable_past();
  past.set_back_seconds(UINT64_MAX);
  EXPECT_THAT(names(ask(request)), IsEmpty());
  past.set_most(UINT32_MAX);
  EXPECT_THAT(names(ask(request)), UnorderedElementsAre("job-mine", "job-theirs"));
  past.set_back_seconds(0);
  past.set_from_at(INT64_MIN);
  past.set_to_at(INT64_MAX);
  EXPECT_EQ(why_not(ask(request)), "");
}

TEST_F(PastTest, TheVersionOfTheRulesIsThatInForce) {
  ASSERT_EQ(why_not(ask(start_of("fast", "jobid=x", {"weight=4"}))), "");
  second();
  EXPECT_EQ(past("").past_reply().first_rules(), 0U);
  EXPECT_EQ(past("").past_reply().last_rules(), 1U);
}

// The ledger.
class LedgerTest : public PastTest {
 protected:
  void SetUp() override {
    PastTest::SetUp();
    for (const char* job : {"mine", "theirs"}) {
      ASSERT_EQ(
          why_not(ask(start_of(job, std::string("jobid=") + job, {"rate=1KiB/s", "burst=1KiB"}))),
          "");
    }
    for (int i = 0; i < 10; ++i) {
      for (const char* job : {"mine", "theirs", "mine", "theirs"}) {
        (void)stage_->arrive(stage_->find(job));
      }
      std::vector<stage::Held*> released;
      (void)stage_->get().release(stage_->now(), released);
      for (stage::Held* each : released) stage::Stage::took_over(*each);
      second();
    }
  }
  Envelope ledger(const std::string& name, const Caller& caller = kChief) {
    Envelope request;
    request.mutable_ledger()->set_name(name);
    request.mutable_ledger()->set_back_seconds(600);
    return ask(request, caller);
  }
  static std::vector<std::string> of(const Envelope& reply) {
    std::vector<std::string> found;
    for (const LedgerEntry& each : reply.ledger_reply().entries()) found.push_back(each.name());
    return found;
  }
};

TEST_F(LedgerTest, HasWhatALimitHolds) {
  const Envelope reply = ledger("");
  EXPECT_THAT(of(reply), UnorderedElementsAre("mine", "theirs"));
  const LedgerEntry& entry = reply.ledger_reply().entries(0);
  EXPECT_EQ(entry.cause(), LedgerEntry::LIMIT);
  EXPECT_EQ(entry.rate(), 1024U);
  EXPECT_EQ(entry.rules(), 2U);
  EXPECT_TRUE(entry.goes_on());
  EXPECT_GT(entry.held_us(), 0U);
}

TEST_F(LedgerTest, ANameIsAVirtualPfsOrAJob) {
  EXPECT_THAT(of(ledger("mine")), ElementsAre("mine"));
  EXPECT_THAT(of(ledger("other")), IsEmpty());
}

TEST_F(LedgerTest, UsersSeeThatOfTheirOwnJobs) {
  const Envelope reply = ledger("", kAlice);
  EXPECT_THAT(of(reply), ElementsAre("mine"));
  EXPECT_TRUE(reply.ledger_reply().partial());
}

TEST_F(LedgerTest, AMistakeInTheTimeIsOne) {
  Envelope request;
  request.mutable_ledger()->set_from_at(5);
  request.mutable_ledger()->set_to_at(5);
  EXPECT_EQ(why_not(ask(request)), "to_at: expected a time after from_at");
}

}  // namespace
}  // namespace vpfs::control
