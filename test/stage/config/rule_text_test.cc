#include "stage/config/rule_text.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedulers/policies/edf.h"
#include "test/stage/some_names.h"

namespace vpfs::stage {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RuleTextTest : public ::testing::Test {
 protected:
  RuleTextTest() {
    config_.source = "the protocol orangefs";
    config_.shown = {Attribute::hint, Attribute::file_system, Attribute::uid, Attribute::metadata};
    config_.names = &names_;
    config_.virtual_pfs = {{.name = "shared", .share = {}}, {.name = "default", .share = {}}};
    config_.scheduler.classes = {.mode = TrafficClasses::Mode::strict,
                                 .classes = {{.name = "interactive"}, {.name = "bulk"}}};
  }
  ParsedRule good(const std::string& name, const std::string& condition,
                  const std::vector<std::string>& words) {
    const auto parsed = parse_rule({.name = name, .condition = condition, .words = words}, config_);
    if (parsed) return *parsed;
    for (const RuleProblem& each : parsed.error()) ADD_FAILURE() << each.place << ": " << each.text;
    return {};
  }
  // "place: text", each.
  std::vector<std::string> problems(const std::string& name, const std::string& condition,
                                    const std::vector<std::string>& words) {
    const auto parsed = parse_rule({.name = name, .condition = condition, .words = words}, config_);
    std::vector<std::string> made;
    if (parsed) return made;
    for (const RuleProblem& each : parsed.error()) {
      made.push_back(fmt::format("{}: {}", each.place, each.text));
    }
    return made;
  }
  std::string problem(const std::vector<std::string>& words) {
    const auto found = problems("x", "jobid=a", words);
    return found.size() == 1 ? found.front() : fmt::format("{} problems", found.size());
  }

  SomeNames names_;
  Config config_;
};

TEST_F(RuleTextTest, ARuleDeclaresItsOwnVirtualPfs) {
  const ParsedRule parsed =
      good("physics", "gid=physics&op=read",
           {"weight=4", "rate=500MiB/s", "iops=2k", "min=100MiB/s", "burst=2GiB", "burst_iops=1k",
            "realtime", "class=interactive", "for=2h"});
  EXPECT_EQ(parsed.rule.name, "physics");
  EXPECT_EQ(parsed.rule.virtual_pfs, "physics");
  EXPECT_EQ(parsed.rule.origin, RuleOrigin::administrator);
  EXPECT_EQ(parsed.rule.traffic_class, 0);
  ASSERT_EQ(parsed.rule.any_of.size(), 1U);
  EXPECT_EQ(parsed.rule.any_of[0].gids, std::vector<std::uint64_t>{500});
  EXPECT_EQ(parsed.lasts, 2h);
  ASSERT_TRUE(parsed.declares);
  EXPECT_EQ(parsed.declares->name, "physics");
  const Share& share = parsed.declares->share;
  EXPECT_EQ(share.weight, 4U);
  EXPECT_EQ(share.rate, BytesPerSecond{500 * kMiB});
  EXPECT_EQ(share.operations, 2000U);
  EXPECT_EQ(share.min, BytesPerSecond{100 * kMiB});
  EXPECT_EQ(share.burst, Bytes{2 * kGiB});
  EXPECT_EQ(share.burst_operations, 1000U);
  EXPECT_TRUE(share.realtime);
}

TEST_F(RuleTextTest, WordsOfOtherPoliciesNeedTheirPolicy) {
  EXPECT_EQ(problem({"latency=20ms"}), "latency: would be ignored by the policy sfq");
  EXPECT_EQ(problem({"nodes=64"}), "nodes: would be ignored by the policy sfq");
  config_.policy = "adaptbf";
  EXPECT_EQ(good("x", "", {"nodes=64", "rank=3"}).declares->share.own_value("nodes"), 64U);
  config_.policy = "edf";
  config_.scheduler.own.of<EdfSettings>().capacity = 400 * kMiB;
  EXPECT_THAT(problem({"finish=2TiB/1s"}), HasSubstr("finish: "));
  const auto parsed = good("x", "", {"finish=2TiB/8h"});
  EXPECT_EQ(parsed.declares->share.finish_bytes, Bytes{2048 * kGiB});
  EXPECT_EQ(parsed.declares->finish_within, 8h);
  EXPECT_EQ(problem({"finish=2/8h"}),
            "finish: \"2/8h\" is not BYTES/TIME: expected one such as 2TiB/8h");
}

TEST_F(RuleTextTest, ARuleMaySendToADeclaredVirtualPfs) {
  const ParsedRule parsed = good("to-shared", "uid=alice", {"vpfs=shared", "class=interactive"});
  EXPECT_EQ(parsed.rule.virtual_pfs, "shared");
  EXPECT_FALSE(parsed.declares);
  EXPECT_EQ(problem({"vpfs=shraed"}), "vpfs: 'shraed' is not declared under virtual_pfs");
  EXPECT_EQ(
      problem({"vpfs=shared", "weight=4"}),
      "weight: belongs to the virtual PFS: expected it as virtual_pfs.shared.weight, or a rule "
      "that names no virtual PFS");
  EXPECT_THAT(problems("shared", "", {"weight=4"}),
              ElementsAre("NAME: the virtual PFS 'shared' is declared already; vpfs=shared sends "
                          "to it, and another name makes another one"));
}

TEST_F(RuleTextTest, AMistakeNamesItsPlaceAndAllAreFoundAtOnce) {
  EXPECT_THAT(problems("x", "jobid=a&usr=5", {"rate=500", "wieght=4", "iops", "iops=3", "uid=7"}),
              ElementsAre("COND:8: unknown condition; did you mean \"uid\"?",
                          "iops: needs a value, such as iops=2k", "iops: is given twice",
                          "uid: is a condition: expected it in COND, such as jobid=a&uid=...",
                          "rate: \"500\" needs a unit, such as \"500 MiB/s\"",
                          "wieght: unknown key; did you mean \"weight\"?"));
  EXPECT_THAT(problems("x", "jobid=a&client={10.0.0.1 10.0.0.300}", {}),
              ElementsAre("COND:25: client: '10.0.0.300' is not an IP address or CIDR block"));
  EXPECT_THAT(problems("x", "jobid=a&owner=5", {}),
              ElementsAre("COND:8: owner: the protocol orangefs does not show it"));
  EXPECT_THAT(problems("a\nb", "", {}),
              ElementsAre("NAME: must be 1 to 128 bytes of printable ASCII"));
}

TEST_F(RuleTextTest, ANumberThatNeedsAUnitIsRefusedWithAnExample) {
  EXPECT_EQ(problem({"rate=500"}), "rate: \"500\" needs a unit, such as \"500 MiB/s\"");
  EXPECT_EQ(problem({"min=500"}), "min: \"500\" needs a unit, such as \"500 MiB/s\"");
  EXPECT_EQ(problem({"rate=500MiB"}), "rate: \"500MiB\" is not a rate; did you mean \"500MiB/s\"?");
  EXPECT_EQ(problem({"rate=1MiB/s", "burst=2"}), "burst: \"2\" needs a unit, such as \"2 MiB\"");
  EXPECT_EQ(problem({"for=2"}),
            "for: \"2\" needs a unit, such as \"2 s\" (known: ns, us, ms, s, min, h)");
  EXPECT_EQ(problem({"iops=2x"}), "iops: \"2x\" is not a whole number");
  EXPECT_EQ(problem({"iops=0.0001k"}),
            "iops: \"0.0001k\" is not a whole number: expected one such as 2000 or 2k");
  EXPECT_EQ(problem({"weight="}), "weight: needs a value, such as weight=4");
}

TEST_F(RuleTextTest, ATotalRateNeedsACoordinator) {
  EXPECT_EQ(problem({"total_rate=1GiB/s"}),
            "total_rate: counts for the whole site and needs a coordinator; `rate` counts for each "
            "data server");
}

TEST_F(RuleTextTest, AShadowRuleHasLimitsAlone) {
  const ParsedRule parsed = good("try", "jobid=*", {"mode=shadow", "rate=1MiB/s", "iops=10"});
  EXPECT_EQ(parsed.rule.mode, RuleMode::shadow);
  EXPECT_EQ(parsed.rule.virtual_pfs, "try");
  EXPECT_EQ(parsed.declares->share.rate, BytesPerSecond{kMiB});
  EXPECT_EQ(problem({"mode=shadow"}),
            "mode: shadow needs a limit that it would hold to: rate or iops");
  EXPECT_EQ(problem({"mode=shadow", "rate=1MiB/s", "weight=4"}),
            "weight: a shadow rule has limits alone: rate, iops, and their bursts");
  EXPECT_EQ(problem({"mode=shadow", "vpfs=shared"}),
            "vpfs: a shadow rule needs limits of its own, such as rate=500MiB/s");
  EXPECT_EQ(problem({"mode=shadow", "rate=1MiB/s", "exempt"}),
            "exempt: a shadow rule holds nothing anyway");
  EXPECT_EQ(problem({"mode=dry"}), "mode: \"dry\" is not one of: enforce, shadow");
  config_.policy = "fifo";
  EXPECT_EQ(good("try", "", {"mode=shadow", "iops=10"}).declares->share.operations, 10U)
      << "no policy sees the limit";
}

TEST_F(RuleTextTest, AnExemptRuleHasNoShare) {
  const ParsedRule parsed = good("root", "uid=0", {"exempt"});
  EXPECT_TRUE(parsed.rule.exempt);
  EXPECT_EQ(parsed.declares->name, "root") << "its requests are counted";
  EXPECT_EQ(problem({"exempt", "rate=1MiB/s"}), "rate: requests of an exempt rule never wait");
  EXPECT_TRUE(good("root", "uid=0", {"exempt", "vpfs=shared"}).rule.exempt);
}

TEST_F(RuleTextTest, ANameMayBeATemplateOfWhatIsKnown) {
  EXPECT_EQ(good("job-{jobid}", "jobid=*", {"weight=2"}).declares->name, "job-{jobid}");
  EXPECT_EQ(good("{account}-{gid}-{uid}", "", {}).rule.virtual_pfs, "{account}-{gid}-{uid}");
  EXPECT_EQ(good("{user}", "hint.user=a*,hint.user=b*&uid=1", {}).rule.any_of.size(), 2U);
  EXPECT_THAT(problems("{user}", "hint.user=a*,uid=1", {}),
              ElementsAre("NAME: the template uses {user}, but the rule matches no hint 'user'"));
  EXPECT_THAT(problems("{owner}", "", {}), ElementsAre(HasSubstr("matches no hint 'owner'")));
  EXPECT_THAT(problems("job-{jobid", "", {}), ElementsAre(HasSubstr("a brace is never closed")));
}

TEST_F(RuleTextTest, DefaultHasAShareAndNothingElse) {
  const ParsedRule parsed = good("default", "", {"weight=4", "rate=1GiB/s"});
  EXPECT_EQ(parsed.declares->name, "default");
  EXPECT_EQ(parsed.declares->share.weight, 4U);
  EXPECT_THAT(parsed.rule.text.words, ElementsAre("weight=4", "rate=1GiB/s"));
  EXPECT_THAT(problems("default", "jobid=a", {}),
              ElementsAre("NAME: default is last and takes what no rule matches; it cannot be a "
                          "rule"));
  EXPECT_THAT(problems("default", "", {"class=bulk", "exempt", "vpfs=shared"}),
              ElementsAre("class: default has a share and nothing else",
                          "exempt: default has a share and nothing else",
                          "vpfs: default has a share and nothing else"));
}

TEST_F(RuleTextTest, ItsTextIsShortAndMakesTheSameRule) {
  const ParsedRule parsed =
      good("x", " nid={10.0.0.1@tcp} & jobid = {a} ",
           {"operations=2000", "rate=1.5 GiB/s", "weight=2", "mode=enforce", "realtime=true"});
  EXPECT_EQ(parsed.rule.text,
            (RuleText{.name = "x",
                      .condition = "client=10.0.0.1&jobid=a",
                      .words = {"weight=2", "rate=1.5GiB/s", "iops=2000", "realtime"}}));
  const auto again = parse_rule(parsed.rule.text, config_);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->rule, parsed.rule);
  EXPECT_EQ(again->declares, parsed.declares);
}

TEST_F(RuleTextTest, OddWordsAreRefusedInOneLine) {
  for (const std::string& word :
       {std::string(), std::string("="), std::string("=5"), std::string(5000, 'a') + "=1",
        std::string("weight=\x01\n"), std::string("we\"ight={}: [")}) {
    const auto found = problems("x", "", {word});
    ASSERT_EQ(found.size(), 1U) << word;
    EXPECT_EQ(found.front().find('\n'), std::string::npos);
  }
  EXPECT_EQ(problem({"bandwidth=1MiB/s"}), "bandwidth: unknown key; did you mean \"rate\"?");
}

}  // namespace
}  // namespace vpfs::stage
