#include "tools/selftest/judgement.h"

#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/tools/selftest/made.h"
#include "tools/selftest/verdict.h"

namespace vpfs::selftest {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = VerdictLine::Kind;

std::string lines(const Findings& findings, Kind kind) {
  std::string text;
  for (const VerdictLine& each : findings.verdict) {
    if (each.kind == kind) text += each.text + "\n";
  }
  return text;
}

TEST(Judgement, AGoodServerGetsAGoodVerdict) {
  const Findings findings = judge(MadeServer().record(made_input()), std::nullopt);
  EXPECT_TRUE(findings.good());
  EXPECT_THAT(lines(findings, Kind::bad), IsEmpty());
  EXPECT_THAT(lines(findings, Kind::unknown), IsEmpty());
  const std::string good = lines(findings, Kind::good);
  EXPECT_THAT(good, HasSubstr("2:1 holds: it was 2.00:1"));
  EXPECT_THAT(good, HasSubstr("4:1 holds: it was 4.0"));
  EXPECT_THAT(good, HasSubstr("a limit of"));
}

TEST(Judgement, TheDepthIsTheLeastThatGivesNearlyAll) {
  const Findings findings =
      judge(MadeServer{.byte = 1e-8, .parallel = 8}.record(made_input()), std::nullopt);
  ASSERT_TRUE(findings.depth);
  EXPECT_EQ(findings.depth->enough, 8U);
  EXPECT_EQ(findings.depth->requests, 16U);
  EXPECT_FALSE(findings.depth->is_bound);
  // Eight requests of 1 MiB, each with its own cost, have to fit.
  EXPECT_GE(findings.depth->bytes.count, 8 * kMiB);
  EXPECT_LE(findings.depth->bytes.count, 16 * kMiB);
  EXPECT_EQ(to_text(*findings.depth).find("{requests: 16, bytes: "), 0U);
}

TEST(Judgement, OneLuckyMeasurementDoesNotDecideTheDepth) {
  Record record = MadeServer{.parallel = 8}.record(made_input());
  for (Measurement& each : record.measurements) {
    if (each.phase.purpose != Purpose::depth || each.phase.in_flight != 64) continue;
    each.applications[0].bytes = each.applications[0].bytes * 5 / 4;
  }
  EXPECT_EQ(judge(record, std::nullopt).depth->enough, 8U);
}

TEST(Judgement, ADepthThatTheProxyBoundIsNotTheServers) {
  PlanInput input = made_input();
  input.direct = false;
  Record record = MadeServer{.parallel = 8}.record(input);
  const Findings findings = judge(record, std::nullopt);
  ASSERT_TRUE(findings.depth);
  EXPECT_TRUE(findings.depth->is_bound);
  EXPECT_THAT(lines(findings, Kind::unknown),
              HasSubstr("the proxy's own depth of 8 was the bound"));
  EXPECT_THAT(lines(findings, Kind::unknown), HasSubstr("give --direct"));
}

TEST(Judgement, CostsAreThoseOfTheServer) {
  const MadeServer server = {.request = 1e-4, .byte = 1e-9, .write_factor = 2};
  const Findings findings = judge(server.record(made_input()), std::nullopt);
  ASSERT_TRUE(findings.costs);
  EXPECT_NEAR(findings.costs->per_request, 1e5, 2e3);
  EXPECT_NEAR(findings.costs->write_factor, 2, 0.05);
  EXPECT_EQ(to_text(*findings.costs), "{per_request: 96 KiB, write_factor: 2.0}");
}

TEST(Judgement, SharesThatAreOffAreBadAndSayByHowMuch) {
  const Findings findings = judge(MadeServer{.skew = 0.7}.record(made_input()), std::nullopt);
  EXPECT_FALSE(findings.good());
  EXPECT_THAT(lines(findings, Kind::bad),
              HasSubstr("2:1 does not hold: it was 1.40:1, which is 30.0 % off"));
}

TEST(Judgement, ASmallErrorIsWithinTheTolerance) {
  const Findings findings = judge(MadeServer{.skew = 1.04}.record(made_input()), std::nullopt);
  EXPECT_TRUE(findings.good()) << lines(findings, Kind::bad);
}

TEST(Judgement, TooFewRequestsAreNotJudged) {
  PlanInput input = made_input();
  input.time = std::chrono::seconds(3);
  const Findings findings =
      judge(MadeServer{.request = 0.05, .skew = 0.5}.record(input), std::nullopt);
  EXPECT_TRUE(findings.good());
  EXPECT_THAT(lines(findings, Kind::unknown), HasSubstr("2:1 was not judged: too few requests"));
  EXPECT_THAT(lines(findings, Kind::unknown), HasSubstr("MiB/s was not judged: too few requests"));
}

TEST(Judgement, WhereNeitherGotMuchOneThatGotNothingIsNotJudged) {
  Record record = MadeServer().record(made_input());
  for (Measurement& each : record.measurements) {
    if (each.phase.purpose != Purpose::weights) continue;
    each.applications[0].bytes = 2 * each.phase.size.count;
    each.applications[1] = {};
  }
  const Findings findings = judge(record, std::nullopt);
  EXPECT_TRUE(findings.good());
  EXPECT_THAT(lines(findings, Kind::unknown), HasSubstr("an application got nothing"));
}

TEST(Judgement, OneThatGetsNothingBesideAnotherIsBad) {
  for (const std::size_t starved : {std::size_t{0}, std::size_t{1}}) {
    Record record = MadeServer().record(made_input());
    for (Measurement& each : record.measurements) {
      if (each.phase.purpose == Purpose::weights) each.applications[starved] = {};
    }
    const Findings findings = judge(record, std::nullopt);
    EXPECT_FALSE(findings.good());
    EXPECT_THAT(lines(findings, Kind::bad),
                HasSubstr("2:1 does not hold: one of the two got nothing"));
  }
}

TEST(Judgement, WhereNoRequestEndedThereIsNoAdvice) {
  Record record = MadeServer().record(made_input());
  for (Measurement& each : record.measurements) {
    if (each.phase.purpose == Purpose::weights || each.phase.purpose == Purpose::limit) continue;
    each.applications[0] = {};
  }
  const Findings findings = judge(record, std::nullopt);
  EXPECT_TRUE(findings.good());
  EXPECT_FALSE(findings.depth || findings.costs || findings.path);
  const std::string unknown = lines(findings, Kind::unknown);
  EXPECT_THAT(unknown, HasSubstr("depth was not judged: no request ended"));
  EXPECT_THAT(unknown, HasSubstr("costs were not judged: no request ended"));
  EXPECT_THAT(unknown, HasSubstr("what the proxy costs was not judged: no request ended"));
}

TEST(Judgement, ALimitThatIsPassedOrNotReachedIsBad) {
  for (const double skew : {0.8, 1.2}) {
    const Findings findings =
        judge(MadeServer{.limit_skew = skew}.record(made_input()), std::nullopt);
    EXPECT_FALSE(findings.good());
    EXPECT_THAT(lines(findings, Kind::bad), HasSubstr("does not hold"));
    EXPECT_THAT(lines(findings, Kind::bad), HasSubstr(skew < 1 ? "% less" : "% more"));
  }
}

TEST(Judgement, TheProxysCostIsTheDifferenceOfSmallReads) {
  const Findings findings =
      judge(MadeServer{.request = 1e-4, .proxy_delay = 30e-6}.record(made_input()), std::nullopt);
  ASSERT_TRUE(findings.path);
  EXPECT_NEAR(in_seconds(findings.path->proxy - findings.path->direct), 30e-6, 1e-6);
  EXPECT_THAT(lines(findings, Kind::note), HasSubstr("the proxy adds 30 us to a small read"));
}

TEST(Judgement, WhereTheShareDecidedWeightsAreNotJudged) {
  PlanInput input = made_input();
  input.direct = false;
  input.shared = true;
  Record record = MadeServer{.skew = 0.5}.record(input);
  const double all = record.measurements[0].mib_per_second() * static_cast<double>(kMiB);
  const Findings tight = judge(record, BytesPerSecond{static_cast<std::uint64_t>(all)});
  EXPECT_TRUE(tight.good());
  EXPECT_THAT(lines(tight, Kind::unknown), HasSubstr("so limits decided"));
  EXPECT_THAT(lines(tight, Kind::unknown), HasSubstr("depth and costs were not judged"));
  const Findings wide = judge(record, BytesPerSecond{static_cast<std::uint64_t>(2 * all)});
  EXPECT_FALSE(wide.good());
}

TEST(Judgement, SaysWhyThePolicyWasNotAsked) {
  PlanInput input = made_input();
  input.weights = input.limits = false;
  Record record = MadeServer().record(input);
  record.no_weights = "the policy fifo has no weights";
  record.no_limit = "the policy fifo has no limits";
  const Findings findings = judge(record, std::nullopt);
  EXPECT_TRUE(findings.good());
  EXPECT_THAT(lines(findings, Kind::unknown), HasSubstr("the policy fifo has no weights"));
  EXPECT_THAT(lines(findings, Kind::unknown), HasSubstr("the policy fifo has no limits"));
}

TEST(Judgement, AServerThatLeavesTheModelIsSaid) {
  Record record = MadeServer().record(made_input());
  for (Measurement& each : record.measurements) {
    if (each.phase.purpose != Purpose::cost || each.phase.size == kSmall) continue;
    each.applications[0].requests /= 4;
  }
  const Findings findings = judge(record, std::nullopt);
  EXPECT_THAT(lines(findings, Kind::unknown), HasSubstr("does not follow the model well"));
}

}  // namespace
}  // namespace vpfs::selftest
