// The stage of a mounted directory, in virtual time and without a mount.
#include "fuse/posix/io_gate.h"

#include <deque>

#include <gmock/gmock.h>

#include "schedulers/policy.h"
#include "test/support/manual_clock.h"
#include "test/support/start_time.h"

namespace vpfs::fuse {
namespace {

using namespace std::chrono_literals;
using test::kStart;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class IoGateTest : public ::testing::Test {
 protected:
  static MountSettingsPtr settings_of(const std::string& text) {
    ConfigErrors errors("io_gate_test");
    Config config = parse_config(text, errors);
    EXPECT_EQ(errors.to_string(), "");
    return std::make_shared<const MountSettings>(std::move(config));
  }
  IoGate& open(const std::string& text) {
    return gate_.emplace(
        settings_of(text), [this](TimePoint by) { asked_by_ = by; }, 1, clock_.now());
  }
  IoRequest& arrive(const std::string& jobid, std::uint64_t size, uid_t uid = 1000) {
    IoRequest& request = all_.emplace_back();
    request.unique = all_.size() * 2;
    request.process = static_cast<pid_t>(all_.size());
    request.kind = IoKind::write;
    request.file = std::make_shared<OpenFile>();
    request.file->opener = {.uid = uid, .gid = uid, .jobid = jobid};
    go_.clear();
    gate_->arrive(request, size, clock_.now(), go_);
    return request;
  }
  void end(IoRequest& request) {
    request.moved = request.asked.count;
    go_.clear();
    gate_->end(request, clock_.now(), go_);
  }

  test::ManualClock clock_{kStart};
  std::optional<IoGate> gate_;
  std::deque<IoRequest> all_;
  std::vector<IoRequest*> go_;
  std::optional<TimePoint> asked_by_;
};

TEST_F(IoGateTest, WhatMayGoGoesToTheThreadThatAsks) {
  open("scheduler: {policy: fifo, depth: {requests: 1}}");
  IoRequest& first = arrive("a", 4096);
  EXPECT_THAT(go_, ElementsAre(&first));
  IoRequest& second = arrive("a", 4096);
  EXPECT_THAT(go_, IsEmpty());
  EXPECT_EQ(gate_->queued(), 1U);
  end(first);
  EXPECT_THAT(go_, ElementsAre(&second));
  end(second);
  EXPECT_EQ(gate_->outstanding(), 0U);
  EXPECT_FALSE(asked_by_) << "nothing waits for a time";
}

TEST_F(IoGateTest, SharesGoByTheJobOfTheOpener) {
  open(R"(
scheduler: {policy: sfq, depth: {requests: 1}}
virtual_pfs: {a: {weight: 3}, b: {weight: 1}, default: {weight: 1}}
rules: [{match: {jobid: a}, virtual_pfs: a}, {match: {jobid: b}, virtual_pfs: b}])");
  for (int i = 0; i < 400; ++i) arrive(i % 2 == 0 ? "a" : "b", 65536);
  IoRequest* current = &all_.front();
  int of_a = 0;
  constexpr int kServed = 200;
  for (int i = 0; i < kServed; ++i) {
    if (current->file->opener.jobid == "a") ++of_a;
    end(*current);
    ASSERT_EQ(go_.size(), 1U);
    current = go_.front();
  }
  EXPECT_NEAR(of_a, 150, 2);
}

TEST_F(IoGateTest, ATokenThatIsMissingIsAskedForInTime) {
  open(R"(
scheduler: {policy: tbf}
virtual_pfs: {default: {rate: 1 MiB/s, burst: 1 MiB}})");
  IoRequest& first = arrive("", kMiB);
  EXPECT_THAT(go_, ElementsAre(&first));
  IoRequest& second = arrive("", kMiB / 2);
  EXPECT_THAT(go_, IsEmpty());
  ASSERT_TRUE(asked_by_);
  EXPECT_LE(*asked_by_, clock_.now() + 600ms);
  clock_.set(clock_.now() + 600ms);
  gate_->release(clock_.now(), go_);
  EXPECT_THAT(go_, ElementsAre(&second));
}

TEST_F(IoGateTest, AFrozenGateLetsNothingGoAndAnotherOneGoesOnWithWhatItHolds) {
  const char* const text = R"(
scheduler: {policy: tbf}
virtual_pfs: {default: {rate: 1 MiB/s, burst: 1 MiB}})";
  open(text);
  IoRequest& first = arrive("", kMiB);
  EXPECT_THAT(go_, ElementsAre(&first));
  gate_->freeze(true);
  IoRequest& second = arrive("", kMiB / 2);
  clock_.set(clock_.now() + 600ms);
  gate_->release(clock_.now(), go_);
  end(first);
  EXPECT_THAT(go_, IsEmpty());
  EXPECT_THAT(gate_->held(clock_.now()), ElementsAre(&second));
  const SavedState state = [&] {
    SavedState saved;
    gate_->inspect(clock_.now(),
                   [&](stage::Stage& stage, TimePoint now) { saved = stage.save(now); });
    return saved;
  }();
  EXPECT_THAT(gate_->hand_on(clock_.now()), ElementsAre(&second));
  EXPECT_EQ(gate_->queued(), 0U);

  open(text);
  gate_->freeze(true);
  const auto restore = [&](auto&& what) {
    gate_->act(clock_.now(), [&](stage::Stage& stage, TimePoint now) { what(stage, now); });
  };
  restore([&](stage::Stage& stage, TimePoint now) { stage.restore(state, now); });
  gate_->readmit(std::vector<IoRequest*>{&second}, clock_.now());
  restore([&](stage::Stage& stage, TimePoint now) { stage.restore_schedulers(state, now); });
  EXPECT_EQ(gate_->queued(), 1U);
  gate_->release(clock_.now(), go_);
  EXPECT_THAT(go_, IsEmpty());
  gate_->freeze(false);
  gate_->release(clock_.now(), go_);
  EXPECT_THAT(go_, ElementsAre(&second)) << "its tokens have come since it arrived";
  end(second);
  gate_->inspect(clock_.now(), [&](stage::Stage& stage, TimePoint) {
    EXPECT_EQ(stage.virtual_pfs().counters(AppId{0}).arrived.all().requests, 2U);
  });
}

// Requests on names and attributes, of one operation a second.
class IoGateOfNames : public IoGateTest {
 protected:
  static constexpr std::uint64_t kDirectory = 11;

  void SetUp() override {
    open(R"(
scheduler: {policy: tbf, schedule: [io, metadata]}
virtual_pfs: {slow: {operations: 1, burst_operations: 1}, default: {}}
rules: [{match: {uid: 1002}, virtual_pfs: slow}])");
  }
  IoRequest& ask(uid_t uid, pid_t thread, bool keeps_lock = true) {
    IoRequest& request = all_.emplace_back();
    request.unique = all_.size() * 2;
    request.process = thread;
    request.kind = IoKind::metadata;
    request.caller = {.uid = uid, .gid = uid, .jobid = ""};
    request.locks = {.objects = {keeps_lock ? kDirectory : 0, 0}, .kept = keeps_lock};
    go_.clear();
    gate_->arrive(request, 0, clock_.now(), go_);
    return request;
  }
  void pass(Duration time) {
    clock_.set(clock_.now() + time);
    go_.clear();
    gate_->release(clock_.now(), go_);
  }
};

TEST_F(IoGateOfNames, WhatKeepsALockGoesInTimeAndIsOwed) {
  IoRequest& first = ask(1002, 1);
  EXPECT_THAT(go_, ElementsAre(&first));
  end(first);
  IoRequest& second = ask(1002, 1);
  EXPECT_THAT(go_, IsEmpty());
  EXPECT_EQ(asked_by_, clock_.now() + LockWatch::kLongestHold) << "its token comes later";
  pass(LockWatch::kLongestHold);
  EXPECT_THAT(go_, ElementsAre(&second));
  end(second);
  IoRequest& opens = ask(1002, 1, false);
  EXPECT_THAT(go_, IsEmpty());
  pass(1499ms);
  EXPECT_THAT(go_, IsEmpty()) << "two seconds are owed";
  pass(1ms);
  EXPECT_THAT(go_, ElementsAre(&opens));
  end(opens);
  EXPECT_EQ(gate_->outstanding(), 0U);
}

TEST_F(IoGateOfNames, WhatKeepsALockGoesBeforeWhatKeepsNone) {
  end(ask(1002, 1));
  IoRequest& opens = ask(1002, 1, false);
  IoRequest& looks_up = ask(1002, 2);
  EXPECT_THAT(go_, IsEmpty());
  pass(LockWatch::kLongestHold);
  EXPECT_THAT(go_, ElementsAre(&looks_up));
  EXPECT_EQ(gate_->queued(), 1U);
  EXPECT_FALSE(gate_->holder_of(looks_up.unique, clock_.now()));
  EXPECT_TRUE(gate_->holder_of(opens.unique, clock_.now()));
}

TEST_F(IoGateOfNames, BesideAnotherApplicationNothingWithALockIsHeld) {
  end(ask(1002, 1));
  end(ask(1001, 7));
  for (int i = 0; i < 5; ++i) {
    IoRequest& next = ask(1002, 1);
    EXPECT_THAT(go_, ElementsAre(&next));
    end(next);
  }
  (void)ask(1002, 1, false);
  EXPECT_THAT(go_, IsEmpty());
  EXPECT_EQ(gate_->queued(), 1U);
}

TEST_F(IoGateOfNames, WhatIsWithdrawnDoesNotGoLater) {
  end(ask(1002, 1));
  IoRequest& held = ask(1002, 1);
  EXPECT_EQ(gate_->withdraw(held.unique, clock_.now(), go_), &held);
  pass(10s);
  EXPECT_THAT(go_, IsEmpty());
  IoRequest& next = ask(1002, 1);
  EXPECT_THAT(go_, ElementsAre(&next)) << "it was not charged";
  EXPECT_EQ(gate_->withdraw_all(clock_.now()).size(), 0U);
}

TEST_F(IoGateTest, AHeldRequestCanBeTakenOutOnce) {
  open("scheduler: {policy: fifo, depth: {requests: 1}}");
  IoRequest& first = arrive("a", 4096);
  IoRequest& second = arrive("a", 4096);
  IoRequest& third = arrive("a", 4096);
  go_.clear();
  const std::optional<Holder> holder = gate_->holder_of(second.unique, clock_.now());
  ASSERT_TRUE(holder);
  EXPECT_EQ(holder->process, second.process);
  EXPECT_FALSE(gate_->holder_of(first.unique, clock_.now())) << "it went";
  EXPECT_EQ(gate_->withdraw(first.unique, clock_.now(), go_), nullptr);
  EXPECT_EQ(gate_->withdraw(second.unique, clock_.now(), go_), &second);
  EXPECT_EQ(gate_->withdraw(second.unique, clock_.now(), go_), nullptr);
  EXPECT_EQ(gate_->queued(), 1U);
  end(first);
  EXPECT_THAT(go_, ElementsAre(&third));
  end(third);
  EXPECT_EQ(gate_->outstanding(), 0U);
}

TEST_F(IoGateTest, AllThatIsHeldCanBeTakenOut) {
  open("scheduler: {policy: fifo, depth: {requests: 1}}");
  IoRequest& first = arrive("a", 4096);
  for (int i = 0; i < 5; ++i) arrive("a", 4096);
  EXPECT_EQ(gate_->withdraw_all(clock_.now()).size(), 5U);
  EXPECT_EQ(gate_->queued(), 0U);
  end(first);
  EXPECT_THAT(go_, IsEmpty());
}

TEST_F(IoGateTest, NewRulesHoldForOpenFilesToo) {
  open("rules: [{match: {jobid: a}, virtual_pfs: default}]");
  end(arrive("a", 4096));
  const MountSettingsPtr next = settings_of(
      "virtual_pfs: {x: {weight: 2}, default: {weight: 1}}\n"
      "rules: [{match: {jobid: a}, virtual_pfs: x}]");
  gate_->reconfigure(next->config, clock_.now());
  end(arrive("a", 4096));
  const std::vector<IoGate::User> users = gate_->users(clock_.now()).listed;
  ASSERT_EQ(users.size(), 1U);
  EXPECT_EQ(users[0].jobid, "a");
  EXPECT_EQ(users[0].requests, 1U);
  gate_->inspect(clock_.now(), [&](stage::Stage& stage, TimePoint) {
    EXPECT_EQ(stage.virtual_pfs()[users[0].place.id.app].info->name, "x");
  });
}

TEST_F(IoGateTest, UsersOfATemplateAreForgottenWithTheirVirtualPfs) {
  open(std::string(default_config()) + "\nlimits: {idle: 1s}");
  end(arrive("7", 4096));
  end(arrive("", 4096, 55));
  EXPECT_EQ(gate_->users(clock_.now()).listed.size(), 2U);
  for (int i = 0; i < 4; ++i) {
    clock_.set(clock_.now() + 2s);
    gate_->retire_idle(clock_.now());
  }
  EXPECT_EQ(gate_->users(clock_.now()).listed.size(), 0U);
  end(arrive("7", 4096));
  EXPECT_EQ(gate_->users(clock_.now()).listed.size(), 1U);
}

TEST_F(IoGateTest, AUserThatIsNotListedIsCounted) {
  open("virtual_pfs: {default: {}, j: {}}\nrules: [{match: {jobid: '*'}, virtual_pfs: j}]");
  for (std::size_t i = 0; i < IoGate::kMostUsers + 3; ++i) end(arrive(std::to_string(i), 4096));
  end(arrive("0", 4096));
  end(arrive(std::to_string(IoGate::kMostUsers), 4096));
  const IoGate::Users users = gate_->users(clock_.now());
  ASSERT_EQ(users.listed.size(), IoGate::kMostUsers);
  EXPECT_EQ(users.listed.front().requests, 2U);
  EXPECT_EQ(users.listed.back().jobid, std::to_string(IoGate::kMostUsers - 1));
  EXPECT_EQ(users.others, 3U);
  EXPECT_EQ(users.requests_of_others, 4U);
}

// A mount whose node has two addresses. Job 1 is of user 1001 on it, job 2 of that user elsewhere,
// job 3 of user 1002 on it.
class RegisteredJobsOfMount : public IoGateTest {
 protected:
  RegisteredJobsOfMount() {
    ConfigErrors errors("io_gate_test");
    Config config = parse_config(std::string(default_config()) + R"(
jobs: registered
registered_jobs:
  - {jobid: "1", client: [10.0.0.7, 10.0.0.8], uid: [1001]}
  - {jobid: "2", client: 10.0.0.9, uid: [1001]}
  - {jobid: "3", client: fd00::/64, uid: [1002]}
)",
                                 errors);
    EXPECT_EQ(errors.to_string(), "");
    config.node_addresses = {stage::Address::parse("fd00::7").value(),
                             stage::Address::parse("10.0.0.7").value()};
    auto settings = std::make_shared<const MountSettings>(std::move(config));
    gate_.emplace(
        settings, [](TimePoint) {}, 1, clock_.now());
  }
  std::string place_of(const std::string& jobid, uid_t uid) {
    IoRequest& request = arrive(jobid, 4096, uid);
    std::string name;
    gate_->inspect(clock_.now(), [&](stage::Stage& stage, TimePoint) {
      name = stage.virtual_pfs()[request.app].info->name;
    });
    end(request);
    return name;
  }
};

TEST_F(RegisteredJobsOfMount, CountForTheirUsersOnTheirNodes) {
  EXPECT_EQ(place_of("1", 1001), "job-1");
  EXPECT_EQ(place_of("3", 1002), "job-3");
  EXPECT_EQ(gate_->jobs_not_registered(), 0U);
}

TEST_F(RegisteredJobsOfMount, ThoseOfOthersAreNobodysAndInventedOnesToo) {
  EXPECT_EQ(place_of("1", 1000), "user-1000");
  EXPECT_EQ(place_of("invented", 1000), "user-1000");
  EXPECT_EQ(place_of("", 1000), "user-1000");
  EXPECT_EQ(place_of("1", 0), "user-0");
  EXPECT_EQ(gate_->jobs_not_registered(), 3U);
  const IoGate::Users users = gate_->users(clock_.now());
  ASSERT_EQ(users.listed.size(), 4U);
  EXPECT_TRUE(users.listed[0].job_not_registered);
  EXPECT_EQ(users.listed[0].jobid, "1");
  EXPECT_FALSE(users.listed[2].job_not_registered);
}

TEST_F(RegisteredJobsOfMount, AUserOfOneJobOnTheNodeNeedsNoId) {
  EXPECT_EQ(place_of("", 1001), "job-1");
  EXPECT_EQ(place_of("2", 1001), "job-1") << "the id of a job on another node does not count";
  EXPECT_EQ(place_of("1", 1002), "job-3");
  const IoGate::Users users = gate_->users(clock_.now());
  EXPECT_TRUE(users.listed[0].job_from_registration);
  EXPECT_EQ(users.listed[0].jobid, "1");
}

}  // namespace
}  // namespace vpfs::fuse
