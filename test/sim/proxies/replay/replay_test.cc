#include "sim/proxies/replay/replay.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/proxies/replay/closed_loops.h"
#include "sim/proxies/replay/fitted_device.h"

namespace vpfs::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TimePoint at(int ms) {
  return TimePoint(milliseconds(ms));
}

RecordedIo io(int arrival, int sent, int end, std::uint32_t source = 0) {
  return {.arrival = at(arrival),
          .sent = at(sent),
          .end = at(end),
          .kind = IoKind::read,
          .size = {kMiB},
          .source = source};
}

std::vector<int> thinks(const ClosedLoop& loop) {
  std::vector<int> all;
  for (const ClosedLoop::Step& step : loop.steps) {
    all.push_back(static_cast<int>(step.think / milliseconds(1)));
  }
  return all;
}

TEST(ClosedLoops, ARequestFollowsTheLatestEndThatNothingFollowed) {
  RecordedLoad load = {.length = seconds(1), .sources = {{}}, .requests = {}};
  // Two in flight: each end is followed 5 ms later.
  load.requests = {io(0, 0, 10), io(0, 10, 20), io(15, 20, 30), io(25, 30, 40), io(35, 40, 50)};
  const std::vector<ClosedLoop> loops = closed_loops(load);
  ASSERT_THAT(loops, SizeIs(2));
  EXPECT_THAT(thinks(loops[0]), ElementsAre(0, 5, 5));
  EXPECT_THAT(thinks(loops[1]), ElementsAre(0, 5));
}

TEST(ClosedLoops, SourcesDoNotFollowEachOther) {
  RecordedLoad load = {.length = seconds(1), .sources = {{}, {}}, .requests = {}};
  load.requests = {io(0, 0, 10, 0), io(12, 12, 20, 1)};
  const std::vector<ClosedLoop> loops = closed_loops(load);
  ASSERT_THAT(loops, SizeIs(2));
  EXPECT_THAT(thinks(loops[1]), ElementsAre(12));
}

TEST(ClosedLoops, WhatWasUnderWayAtTheBeginningIsTheFirstStepOfALoop) {
  RecordedLoad load = {.length = seconds(1), .sources = {{}, {}}, .requests = {}};
  load.sources[0] = {.client = {}, .jobid = "", .virtual_pfs = "a", .is_unknown = true};
  load.sources[1] = {.client = {}, .jobid = "a", .virtual_pfs = "a"};
  load.requests = {io(-5, 0, 10, 0), io(12, 12, 20, 1)};
  const std::vector<ClosedLoop> loops = closed_loops(load);
  ASSERT_THAT(loops, SizeIs(1));
  EXPECT_EQ(loops[0].source, 1U);
  EXPECT_THAT(thinks(loops[0]), ElementsAre(0, 2));
}

TEST(ClosedLoops, OneOfTooManySourcesDidNotComeBeforeTheOthers) {
  RecordedLoad load = {.length = seconds(1), .sources = {{}, {}}, .requests = {}};
  load.sources[0] = {
      .client = {}, .jobid = "", .virtual_pfs = "a", .is_unknown = true, .is_one_of_many = true};
  load.sources[1] = {.client = {}, .jobid = "a", .virtual_pfs = "a"};
  load.requests = {io(0, 0, 10, 0), io(12, 12, 20, 1)};
  EXPECT_THAT(closed_loops(load), SizeIs(2));
}

TEST(ClosedLoops, OneThatWasAtWorkAtTheEndGoesOn) {
  RecordedLoad load = {.length = seconds(10), .sources = {{}, {}, {}}, .requests = {}};
  load.requests = {io(0, 0, 10, 0), io(0, 0, 2000, 1), io(2000, 2000, 6000, 1),
                   io(9000, 9000, 9200, 2), io(9300, 9300, 9500, 2)};
  const std::vector<ClosedLoop> loops = closed_loops(load);
  ASSERT_THAT(loops, SizeIs(3));
  EXPECT_FALSE(loops[0].goes_on);
  EXPECT_TRUE(loops[1].goes_on) << "another request would take as long";
  EXPECT_TRUE(loops[2].goes_on);
}

TEST(ClosedLoops, OneRequestDoesNotSayWhenTheNextOneComes) {
  RecordedLoad load = {.length = seconds(10), .sources = {{}}, .requests = {}};
  load.requests = {io(9500, 9500, 9600)};
  EXPECT_FALSE(closed_loops(load).front().goes_on);
}

// One request after the other on a device that takes 2 ms and 10 ms for each MiB.
TEST(FittedDevice, IsTheOneThatWasThere) {
  RecordedLoad load = {.length = seconds(20), .sources = {{}}, .requests = {}};
  for (int now = 0; now < 20'000;) {
    // Times of small requests and of large ones, so that both can be told apart.
    const bool is_large = now / 1000 % 2 == 0;
    const int takes = is_large ? 42 : 12;
    RecordedIo one = io(now, now, now + takes);
    one.size = {is_large ? 4 * kMiB : kMiB};
    load.requests.push_back(one);
    now += takes;
  }
  const DeviceSettings device = fitted_device(load);
  EXPECT_EQ(device.parallelism, 1U);
  EXPECT_NEAR(in_seconds(device.per_request) * 1000, 2, 0.3);
  EXPECT_NEAR(static_cast<double>(device.bandwidth.count) / static_cast<double>(kMiB), 100, 2);
}

TEST(FittedDevice, OneSizeGivesABandwidth) {
  RecordedLoad load = {.length = seconds(10), .sources = {{}}, .requests = {}};
  for (int now = 0; now < 5000; now += 20) load.requests.push_back(io(now, now, now + 20));
  const DeviceSettings device = fitted_device(load);
  EXPECT_EQ(device.per_request, Duration::zero());
  EXPECT_NEAR(static_cast<double>(device.bandwidth.count) / static_cast<double>(kMiB), 50, 1);
}

TEST(FittedDevice, RequestsWithoutBytesGiveATime) {
  RecordedLoad load = {.length = seconds(10), .sources = {{}}, .requests = {}};
  for (int now = 0; now < 5000; now += 10) {
    RecordedIo one = io(now, now, now + 10);
    one.size = {};
    load.requests.push_back(one);
  }
  EXPECT_NEAR(in_seconds(fitted_device(load).per_request), 0.01, 0.001);
}

// One client does one request after the other, and once there are 32 at the same time.
RecordedLoad one_client_and_a_burst(int each_of_burst) {
  RecordedLoad load = {.length = seconds(11), .sources = {{}, {}}, .requests = {}};
  for (int now = 0; now < 10'000; ++now) load.requests.push_back(io(now, now, now + 1));
  for (int i = 0; i < 32; ++i) {
    load.requests.push_back(io(10'000, 10'000, 10'000 + each_of_burst, 1));
  }
  for (RecordedIo& each : load.requests) each.size = {};
  return load;
}

TEST(FittedDevice, ABurstDoesNotMakeRequestsSlow) {
  // The server has served one after the other.
  const DeviceSettings one = fitted_device(one_client_and_a_burst(33));
  EXPECT_EQ(one.parallelism, 1U);
  EXPECT_NEAR(in_seconds(one.per_request) * 1000, 1, 0.01);
  // It has served all at once.
  const DeviceSettings many = fitted_device(one_client_and_a_burst(1));
  EXPECT_NEAR(in_seconds(many.per_request) * 1000, 1, 0.01);
}

TEST(FittedDevice, ServesAsManyAtOnceAsTheServerDid) {
  RecordedLoad load = {.length = seconds(20), .sources = std::vector<RecordedSource>(16)};
  // Eight are served at once: 16 clients take 20 ms for each request, and one takes 10 ms.
  for (int now = 0; now < 10'000; now += 20) {
    for (std::uint32_t i = 0; i < 16; ++i) load.requests.push_back(io(now, now, now + 20, i));
  }
  for (int now = 10'000; now < 20'000; now += 10) load.requests.push_back(io(now, now, now + 10));
  for (RecordedIo& each : load.requests) each.size = {};
  const DeviceSettings device = fitted_device(load);
  EXPECT_EQ(device.parallelism, 8U);
  EXPECT_NEAR(in_seconds(device.per_request) * 1000, 10, 0.01);
}

class ReplayTest : public ::testing::Test {
 protected:
  // Two jobs with eight requests in flight each, on a device of 100 MiB/s that served them in
  // turn.
  ReplayTest() {
    load_.length = seconds(10);
    load_.sources = {{.client = {}, .jobid = "a", .virtual_pfs = "job-a"},
                     {.client = {}, .jobid = "b", .virtual_pfs = "job-b"}};
    std::vector<int> arrivals(16, 0);
    for (int i = 0; i < 1000; ++i) {
      int& arrival = arrivals[static_cast<std::size_t>(i % 16)];
      load_.requests.push_back(io(arrival, 10 * i, 10 * i + 10, static_cast<std::uint32_t>(i % 2)));
      arrival = 10 * i + 10;
    }
    std::ranges::sort(load_.requests, {},
                      [](const RecordedIo& each) { return std::tuple(each.arrival, each.sent); });
  }
  void add(stage::Config& config, const std::string& name, std::uint32_t weight,
           const stage::Conditions& conditions) {
    config.virtual_pfs.push_back({.name = name, .share = {.weight = weight}});
    stage::RuleConfig rule{.name = name};
    rule.any_of = {conditions};
    rule.virtual_pfs = name;
    config.rules.push_back(rule);
  }
  static stage::Config empty() {
    stage::Config config;
    config.policy = "sfq";
    config.scheduler.depth.requests = 1;
    config.virtual_pfs.push_back({.name = "default", .share = {}});
    return config;
  }
  stage::Config weights(std::uint32_t a, std::uint32_t b) {
    stage::Config config = empty();
    add(config, "job-a", a, {.hints = {{"jobid", {"a"}}}});
    add(config, "job-b", b, {.hints = {{"jobid", {"b"}}}});
    return config;
  }
  // MiB by virtual PFS.
  std::map<std::string, double> replayed(const stage::Config& config) {
    Replay replay(load_, fitted_device(load_), config);
    replay.run_until(replay.length());
    std::map<std::string, double> all;
    for (const ReplayedShare& each : replay.shares()) {
      all[each.virtual_pfs] = static_cast<double>(each.moved.count) / static_cast<double>(kMiB);
    }
    not_recorded_ = replay.not_recorded();
    moved_ = replay.moved();
    ambiguous_ = replay.ambiguous();
    return all;
  }

  RecordedLoad load_;
  std::vector<std::string> not_recorded_;
  std::uint64_t moved_ = 0;
  std::vector<std::string> ambiguous_;
};

TEST_F(ReplayTest, WithTheSameWeightsItIsAsItWas) {
  auto got = replayed(weights(1, 1));
  EXPECT_NEAR(got["job-a"], 500, 10);
  EXPECT_NEAR(got["job-b"], 500, 10);
  const auto before = recorded_shares(load_);
  ASSERT_THAT(before, SizeIs(2));
  EXPECT_EQ(before[0].requests, 500U);
}

TEST_F(ReplayTest, OtherWeightsGiveOtherShares) {
  auto got = replayed(weights(1, 3));
  EXPECT_NEAR(got["job-a"], 250, 10);
  EXPECT_NEAR(got["job-b"], 750, 10) << "it goes on when it has done what was recorded";
}

TEST_F(ReplayTest, WhatHasEndedDoesNotComeAgain) {
  std::erase_if(load_.requests, [](const RecordedIo& each) {
    return each.source == 1 && each.arrival > TimePoint(seconds(2));
  });
  const auto was = recorded_shares(load_);
  auto got = replayed(weights(1, 3));
  EXPECT_EQ(got["job-b"], static_cast<double>(was[1].moved.count) / static_cast<double>(kMiB));
}

TEST_F(ReplayTest, RulesDecideAnew) {
  stage::Config config = empty();
  add(config, "all", 1, {.hints = {{"jobid", {"*"}}}});
  auto got = replayed(config);
  EXPECT_THAT(not_recorded_, IsEmpty());
  EXPECT_NEAR(got["all"], 1000, 10);
}

TEST_F(ReplayTest, ARequestThatNoRuleMatchesIsOfTheLastClass) {
  stage::Config config = empty();
  add(config, "job-b", 1, {.hints = {{"jobid", {"b"}}}});
  config.scheduler.classes = {
      .mode = TrafficClasses::Mode::strict,
      .classes = {{.name = "urgent", .share = 1}, {.name = "bulk", .share = 1}}};
  config.rules[0].traffic_class = 0;
  auto got = replayed(config);
  EXPECT_GT(got["job-b"], 900);
}

TEST_F(ReplayTest, WhereRulesAskForWhatIsNotKnownRequestsStayWhereTheyWere) {
  stage::Config config = empty();
  for (const char* const name : {"job-a", "job-b"}) {
    config.virtual_pfs.push_back({.name = name, .share = {.weight = 1}});
  }
  add(config, "project", 1, {.directories = {"/p/*"}});
  auto got = replayed(config);
  EXPECT_THAT(not_recorded_, ElementsAre("directory"));
  EXPECT_NEAR(got["job-a"], 500, 10);
}

TrafficClasses two_classes() {
  return {.mode = TrafficClasses::Mode::strict,
          .classes = {{.name = "urgent", .share = 1}, {.name = "bulk", .share = 1}}};
}

TEST_F(ReplayTest, WhatStaysHasTheClassThatItsRulesGive) {
  stage::Config config = empty();
  add(config, "job-b", 1, {.directories = {"/b/*"}});
  add(config, "job-a", 1, {.directories = {"/a/*"}});
  add(config, "all", 1, {});
  config.scheduler.classes = two_classes();
  config.rules[0].traffic_class = 0;
  config.rules[1].traffic_class = config.rules[2].traffic_class = 1;
  auto got = replayed(config);
  EXPECT_GT(got["job-b"], 900);
  EXPECT_THAT(ambiguous_, IsEmpty());
  EXPECT_EQ(moved_, 0U);
}

TEST_F(ReplayTest, WhatStaysIsExemptIfItsRulesSaySo) {
  stage::Config config = empty();
  add(config, "job-b", 1, {.directories = {"/b/*"}});
  add(config, "job-a", 1, {.directories = {"/a/*"}});
  config.rules[0].exempt = true;
  auto got = replayed(config);
  EXPECT_GT(got["job-b"], 800);
}

TEST_F(ReplayTest, RulesWithDifferentClassesAreTold) {
  stage::Config config = empty();
  add(config, "job-b", 1, {.directories = {"/b/*"}});
  add(config, "job-a", 1, {.directories = {"/a/*"}});
  stage::RuleConfig other = config.rules[0];
  other.name = "other";
  other.any_of[0].directories = {"/other/*"};
  other.traffic_class = 1;
  config.rules.push_back(other);
  config.scheduler.classes = two_classes();
  (void)replayed(config);
  EXPECT_THAT(ambiguous_, ElementsAre("job-b"));
}

TEST_F(ReplayTest, WhatATemplateHasNamedStaysThereWithItsShare) {
  for (RecordedSource& each : load_.sources) each.virtual_pfs = "dir-" + each.jobid;
  stage::Config config = empty();
  add(config, "dir-b", 3, {.directories = {"/b/*"}});
  add(config, "dir-{dir}", 1, {.directories = {"/*"}});
  auto got = replayed(config);
  EXPECT_NEAR(got["dir-a"], 250, 10);
  EXPECT_NEAR(got["dir-b"], 750, 10);
  EXPECT_EQ(moved_, 0U);
}

TEST_F(ReplayTest, RequestsWhoseVirtualPfsIsGoneAreCounted) {
  stage::Config config = empty();
  add(config, "job-b", 1, {.directories = {"/b/*"}});
  add(config, "job-{jobid}-of-{dir}", 1, {.directories = {"/*"}});
  auto got = replayed(config);
  EXPECT_EQ(moved_, 500U);
  EXPECT_NEAR(got["default"], 500, 10);
}

// Nothing is known of when they would come again.
TEST_F(ReplayTest, SourcesWithOneRequestDoNotFloodTheEnd) {
  load_.sources.clear();
  load_.requests.clear();
  for (std::uint32_t i = 0; i < 100; ++i) {
    load_.sources.push_back({.client = {}, .jobid = "a", .virtual_pfs = "job-a"});
    const int now = static_cast<int>(100 * i);
    load_.requests.push_back(io(now, now, now + 10, i));
  }
  auto got = replayed(weights(1, 1));
  EXPECT_EQ(got["job-a"], 100);
}

TEST_F(ReplayTest, AStepWithoutTimeOrBytesEnds) {
  for (RecordedIo& each : load_.requests) {
    each.size = {};
    each.sent = each.arrival;
    each.end = each.arrival;
  }
  load_.length = milliseconds(20);
  EXPECT_NO_THROW((void)replayed(weights(1, 1)));
}

}  // namespace
}  // namespace vpfs::sim
