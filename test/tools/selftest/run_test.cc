#include "tools/selftest/run.h"

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/manual_clock.h"
#include "tools/selftest/loads.h"

namespace vpfs::selftest {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A proxy that knows its rules, and what passed it.
class FakeProxy final : public TestedProxy {
 public:
  Result<ProxyState> state() override {
    now += in_between;
    now_state.at = now;
    now_state.others[{1, others_generation}].bytes += others_bytes;
    if (others_retire) now_state.others.clear();
    ProxyState state = now_state;
    for (const auto& [name, rule] : rules) state.rules.push_back({name, rule.condition});
    return state;
  }
  Result<void> start_rule(const LiveRule& rule, const std::vector<std::string>& words) override {
    if (rules.contains(rule.name)) return fail("there is such a rule");
    if (refuses) return fail("rate: the policy does not know it");
    rules[rule.name] = {rule.condition, words};
    history.push_back(words);
    return {};
  }
  Result<void> change_rule(const std::string& name,
                           const std::vector<std::string>& words) override {
    if (!rules.contains(name)) return fail("there is no such rule");
    rules[name].words = words;
    history.push_back(words);
    return {};
  }
  Result<void> stop_rule(const std::string& name) override {
    if (rules.erase(name) == 0) return fail("there is no such rule");
    return {};
  }

  struct Rule {
    std::string condition;
    std::vector<std::string> words;
  };
  ProxyState now_state = {.name = "stor0", .policy = "sfq", .depth_requests = 8};
  std::map<std::string, Rule> rules;
  std::vector<std::vector<std::string>> history;
  Duration now = {};
  Duration in_between = 1s;
  std::uint64_t others_bytes = 0;  // in between
  bool refuses = false;
  bool others_retire = false;
  std::uint32_t others_generation = 1;
};

class SelftestRun : public ::testing::Test {
 protected:
  SelftestRun() {
    Options options = {.on = "tcp-px://stor0:4334/vpfs",
                       .direct = "tcp://stor0:3334/vpfs",
                       .directory = "/test",
                       .share = ""};
    settings = *check(options);
  }

  void beside_others(std::uint64_t share) {
    settings.direct = "";
    settings.busy = true;
    settings.share = BytesPerSecond{share};
  }

  Result<Record> run() {
    const Means means = {
        .clock = clock,
        .load = [this](const load::LoadSettings& each) { return this->load(each); },
        .pause = [](Duration) {},
        .say = [](const std::string&) {},
        .stopped = [this] { return stopped; },
        .has_ended = [this](const LoadProcess& owner) { return owner.pid == dead; },
        .self = {.host = "here", .pid = 42}};
    return selftest::run(settings, proxy, means);
  }
  std::string problem() {
    const Result<Record> record = run();
    EXPECT_THAT(proxy.rules, IsEmpty());
    return record ? "" : record.error().message;
  }

  Result<load::RunResult> load(const load::LoadSettings& each) {
    loads.push_back(each);
    if (on_load) on_load(each);
    load::RunResult result;
    result.duration = each.duration;
    for (const load::ApplicationSettings& application : each.applications) {
      load::Meter::Totals totals;
      totals.requests = requests;
      totals.bytes = requests * application.size.count;
      totals.errors = errors;
      result.totals.push_back(totals);
      const bool through = each.file_system == settings.on ? is_in_front : direct_leads_through;
      if (through) proxy.now_state.own[{2, 1}].requests += 1000;
    }
    clock.set(clock.now() + each.run_length());
    return result;
  }

  test::ManualClock clock{TimePoint{}};
  Settings settings;
  FakeProxy proxy;
  std::vector<load::LoadSettings> loads;
  std::function<void(const load::LoadSettings&)> on_load;
  bool is_in_front = true;
  bool direct_leads_through = false;
  bool stopped = false;
  std::uint64_t errors = 0;
  std::uint64_t requests = 1000;  // of each application
  pid_t dead = 0;
};

TEST_F(SelftestRun, MeasuresAllAndLeavesNoRule) {
  const Result<Record> record = run();
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_THAT(record->measurements, SizeIs(14 + 4 + 8 + 3));
  EXPECT_THAT(proxy.rules, IsEmpty());
}

TEST_F(SelftestRun, TheRulesEndByThemselves) {
  on_load = [this](const load::LoadSettings&) {
    for (const auto& [name, rule] : proxy.rules) {
      EXPECT_THAT(rule.words, Contains("for=300s")) << name;
      EXPECT_THAT(rule.condition, HasSubstr("vpfs-selftest.here.42"));
    }
    EXPECT_THAT(proxy.rules, SizeIs(2));
  };
  EXPECT_TRUE(run());
}

TEST_F(SelftestRun, TheWeightsAreThoseOfThePhase) {
  EXPECT_TRUE(run());
  EXPECT_THAT(proxy.history, Contains(Contains("weight=2")));
  EXPECT_THAT(proxy.history, Contains(Contains("weight=4")));
}

TEST_F(SelftestRun, TheLimitIsHalfOfWhatWasGot) {
  const Result<Record> record = run();
  ASSERT_TRUE(record);
  const Measurement& last = record->measurements.back();
  EXPECT_EQ(last.phase.purpose, Purpose::limit);
  EXPECT_GT(last.limit.count, 0U);
  EXPECT_THAT(proxy.history, Contains(Contains(HasSubstr("rate="))));
}

TEST_F(SelftestRun, NeverMayMoreThanTheShareBeTaken) {
  constexpr std::uint64_t kShare = 90 * kMiB;
  beside_others(kShare);
  on_load = [&](const load::LoadSettings& each) {
    std::uint64_t sum = 0;
    for (const auto& [name, rule] : proxy.rules) {
      const auto rate = std::ranges::find_if(
          rule.words, [](const std::string& word) { return word.starts_with("rate="); });
      ASSERT_NE(rate, rule.words.end()) << name;
      sum += std::stoull(rate->substr(5));
    }
    EXPECT_LE(sum, kShare + kKiB) << each.applications.size();
  };
  const Result<Record> record = run();
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_THAT(record->measurements, SizeIs(3));
}

TEST_F(SelftestRun, ABusySystemIsLeftAlone) {
  proxy.others_bytes = 100 * kMiB;
  EXPECT_THAT(problem(), HasSubstr("stor0 is busy: others do 100.0 MiB/s"));
  EXPECT_THAT(loads, IsEmpty());
}

TEST_F(SelftestRun, ABusySystemIsMeasuredIfToldTo) {
  proxy.others_bytes = 100 * kMiB;
  beside_others(50 * kMiB);
  EXPECT_TRUE(run());
}

TEST_F(SelftestRun, AJobThatHasGoneCountsNothing) {
  proxy.now_state.others[{1, 1}] = {.requests = 1000, .bytes = 100 * kMiB};
  on_load = [this](const load::LoadSettings&) { proxy.others_retire = loads.size() == 5; };
  EXPECT_EQ(problem(), "");
}

TEST_F(SelftestRun, AJobThatHasComeCountsWhole) {
  proxy.now_state.others[{1, 1}] = {.requests = 1000, .bytes = 100 * kMiB};
  on_load = [this](const load::LoadSettings&) {
    if (loads.size() != 5) return;
    proxy.others_generation = 2;  // its place is another's now
    proxy.now_state.others = {{{1, 2}, {.requests = 1000, .bytes = 200000 * kMiB}}};
  };
  EXPECT_THAT(problem(), HasSubstr("others have begun to use the server"));
  EXPECT_THAT(loads, SizeIs(5));
}

TEST_F(SelftestRun, WithoutARateThereIsNoLimit) {
  on_load = [this](const load::LoadSettings&) { requests = 0; };
  const Result<Record> record = run();
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_THAT(record->no_limit, HasSubstr("no rate to take half of"));
  EXPECT_NE(record->measurements.back().phase.purpose, Purpose::limit);
}

TEST_F(SelftestRun, ItEndsWhenOthersBegin) {
  on_load = [this](const load::LoadSettings&) {
    if (loads.size() == 5) proxy.others_bytes = 1000 * kMiB;
  };
  EXPECT_THAT(problem(), HasSubstr("others have begun to use the server"));
  EXPECT_THAT(loads, SizeIs(5));
}

TEST_F(SelftestRun, ALoadThatDoesNotPassTheProxyIsSaid) {
  is_in_front = false;
  EXPECT_THAT(problem(), HasSubstr("stor0 saw no request of the load"));
  EXPECT_THAT(loads, SizeIs(1));
}

TEST_F(SelftestRun, ADirectWayThatIsNoneIsSaid) {
  direct_leads_through = true;
  EXPECT_THAT(problem(), HasSubstr("leads through the proxy too"));
}

TEST_F(SelftestRun, FailedRequestsEndIt) {
  errors = 3;
  EXPECT_THAT(problem(), HasSubstr("3 requests failed"));
}

TEST_F(SelftestRun, ASignalEndsIt) {
  on_load = [this](const load::LoadSettings&) { stopped = loads.size() == 3; };
  EXPECT_THAT(problem(), HasSubstr("stopped by a signal"));
}

TEST_F(SelftestRun, WhatAKilledOneLeftIsEnded) {
  dead = 41;
  const std::string mark = to_value({.host = "here", .pid = 41});
  proxy.rules = {{"vpfs-selftest-a", {"hint.jobid={vpfs-selftest-a " + mark + "}", {}}},
                 {"vpfs-selftest-b", {"hint.jobid={vpfs-selftest-b " + mark + "}", {}}}};
  const Result<Record> record = run();
  EXPECT_TRUE(record) << record.error().message;
}

TEST_F(SelftestRun, ARunningOneIsLeftAlone) {
  const std::string mark = to_value({.host = "there", .pid = 41});
  proxy.rules = {{"vpfs-selftest-a", {"hint.jobid={vpfs-selftest-a " + mark + "}", {}}}};
  const Result<Record> record = run();
  ASSERT_FALSE(record);
  EXPECT_THAT(record.error().message, HasSubstr("process 41 of there"));
  EXPECT_THAT(proxy.rules, SizeIs(1));
  EXPECT_THAT(loads, IsEmpty());
}

TEST_F(SelftestRun, ARefusedRuleEndsItBeforeAnyLoad) {
  proxy.refuses = true;
  EXPECT_THAT(problem(), HasSubstr("the policy does not know it"));
  EXPECT_THAT(loads, IsEmpty());
}

TEST_F(SelftestRun, AProxyThatHoldsNothingIsNotTested) {
  proxy.now_state.bypass = true;
  EXPECT_THAT(problem(), HasSubstr("bypass is on"));
  proxy.now_state.bypass = false;
  proxy.now_state.draining = true;
  EXPECT_THAT(problem(), HasSubstr("draining"));
  proxy.now_state.draining = false;
  proxy.now_state.sees_all = false;
  EXPECT_THAT(problem(), HasSubstr("the right to see"));
}

TEST_F(SelftestRun, APolicyWithoutSharesIsMeasuredAllTheSame) {
  proxy.now_state.policy = "fifo";
  const Result<Record> record = run();
  ASSERT_TRUE(record);
  EXPECT_EQ(record->no_weights, "the policy fifo has no weights");
  EXPECT_THAT(record->measurements, SizeIs(14 + 4 + 8));
}

TEST_F(SelftestRun, CleaningEndsTheRulesOfAll) {
  proxy.rules = {{"vpfs-selftest-a", {}}, {"vpfs-selftest-b", {}}};
  EXPECT_EQ(end_rules(proxy, [](const LoadProcess&) { return true; }).value_or(0), 2U);
  EXPECT_THAT(proxy.rules, IsEmpty());
}

TEST_F(SelftestRun, CleaningLeavesASelfTestThatRuns) {
  const std::string ours = fmt::format("jobid={}", to_value({.host = "here", .pid = 7}));
  proxy.rules = {{"vpfs-selftest-a", {}}, {"vpfs-selftest-b", {ours, {}}}};
  const auto runs = [](const LoadProcess& owner) { return owner.pid == 7; };
  const auto left = end_rules(proxy, runs);
  ASSERT_FALSE(left);
  EXPECT_THAT(left.error().message, HasSubstr("process 7 of here"));
  EXPECT_THAT(proxy.rules, SizeIs(2));
}

TEST_F(SelftestRun, AnotherServersFilesHaveOtherNames) {
  const Phase phase;
  const std::string one = load_of(settings, phase, "stor0").applications[0].name;
  const std::string other = load_of(settings, phase, "stor/1").applications[0].name;
  EXPECT_EQ(one, "vpfs-selftest-stor0-a");
  EXPECT_EQ(other, "vpfs-selftest-stor_1-a");
}

}  // namespace
}  // namespace vpfs::selftest
