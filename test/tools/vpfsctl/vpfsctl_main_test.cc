#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/tools/vpfsctl/proxies.h"

// The program vpfsctl.
namespace vpfs::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using Json = nlohmann::json;

constexpr const char* kShort = "300ms";

TEST(Vpfsctl, TheExitCodeSaysWhatBecameOfTheRequestForEveryPairOfProxies) {
  const std::vector<std::pair<Mood, char>> moods = {
      {Mood::obeys, 'd'}, {Mood::refuses, 'r'}, {Mood::silent, 'u'}, {Mood::absent, 'u'}};
  for (const auto& [first, a] : moods) {
    for (const auto& [second, b] : moods) {
      const Proxies proxies({first, second});
      const Outcome outcome = vpfsctl({"reload", "--proxies", proxies.file(), "--timeout", kShort});
      const std::string both = {a, b};
      int code = 4;
      if (both == "dd") code = 0;
      if (both == "rr" || both == "ru" || both == "ur") code = 1;
      if (both == "uu") code = 3;
      EXPECT_EQ(outcome.code, code) << both << "\n" << outcome.errors;
    }
  }
}

TEST(Vpfsctl, EachProxyIsToldByItsNameAndASilentOneDelaysNoLongerThanTheTimeout) {
  const Proxies proxies({Mood::obeys, Mood::silent, Mood::refuses, Mood::absent});
  const auto start = std::chrono::steady_clock::now();
  const Outcome outcome = vpfsctl({"drain", "--proxies", proxies.file(), "--timeout", "500ms"});
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
  EXPECT_EQ(outcome.code, 4);
  EXPECT_EQ(outcome.output, "s0: did it\n");
  EXPECT_THAT(outcome.errors,
              HasSubstr("vpfsctl: s1: no answer within 500 ms: it is there but busy, and may still "
                        "do what was asked; --timeout waits longer\n"));
  EXPECT_THAT(outcome.errors,
              HasSubstr("vpfsctl: s2: refused: rate: needs a unit, such as 500MiB/s\n"));
  EXPECT_THAT(outcome.errors, HasSubstr("vpfsctl: s3: unreachable: there is no such socket"));
}

TEST(Vpfsctl, OutputThatCannotBeWrittenIsAFailure) {
  const Proxies proxies({Mood::obeys});
  const std::string command =
      fmt::format("{} reload --proxy {} ", program("vpfsctl"), proxies.socket(0));
  const Outcome full = outcome_of({"sh", "-c", command + ">/dev/full"});
  EXPECT_EQ(full.code, 1);
  EXPECT_THAT(full.errors, HasSubstr("vpfsctl: standard output: "));
  EXPECT_EQ(outcome_of({"sh", "-c", command + ">/dev/null"}).code, 0);
  const Outcome help = outcome_of({"sh", "-c", program("vpfsctl") + " --help >/dev/full"});
  EXPECT_EQ(help.code, 1);
  EXPECT_THAT(help.errors, HasSubstr("standard output: No space left on device"));
}

TEST(Vpfsctl, JsonHasEveryProxy) {
  const Proxies proxies({Mood::obeys, Mood::refuses, Mood::absent});
  const Outcome outcome = vpfsctl({"--json", "reload", "--proxies", proxies.file()});
  const Json json = Json::parse(outcome.output);
  EXPECT_FALSE(json["version"].get<std::string>().empty());
  ASSERT_EQ(json["proxies"].size(), 3U);
  EXPECT_EQ(json["proxies"][0], Json::parse(R"({"name": "s0", "ok": true, "error": null,
                                                "data": {"text": "did it", "warnings": []}})"));
  EXPECT_EQ(json["proxies"][1], Json::parse(R"({"name": "s1", "ok": false, "data": null,
      "error": {"code": "invalid", "place": "rate", "text": "needs a unit, such as 500MiB/s"}})"));
  EXPECT_EQ(json["proxies"][2]["error"]["code"], "unreachable");
  EXPECT_EQ(outcome.code, 4);
}

TEST(Vpfsctl, ACommandReachesItsProxyWithItsWords) {
  const Proxies proxies({Mood::obeys});
  EXPECT_EQ(vpfsctl({"rule", "start", "top", "jobid={dd.*}&uid={1}", "rate=5MiB/s", "--proxy",
                     proxies.socket(0)})
                .code,
            0);
  EXPECT_EQ(vpfsctl({"rule", "start cp jobid={cp.0 cp.1} rate=9MiB/s", "--proxy",
                     "unix:" + proxies.socket(0)})
                .code,
            0);
  const auto asked = proxies.asked(0);
  ASSERT_EQ(asked.size(), 2U);
  EXPECT_EQ(asked[0].rule().name(), "top") << "a name, though there is a command of that name";
  EXPECT_EQ(asked[0].rule().condition(), "jobid={dd.*}&uid={1}");
  EXPECT_EQ(asked[0].rule().confirm_seconds(), 0U);
  EXPECT_EQ(asked[1].rule().name(), "cp");
  EXPECT_EQ(asked[1].rule().condition(), "jobid={cp.0 cp.1}");
  EXPECT_THAT(asked[1].rule().words(), ElementsAre("rate=9MiB/s"));
}

TEST(Vpfsctl, TheEnvironmentNamesProxiesAndOptionsGoBeforeIt) {
  const Proxies proxies({Mood::obeys, Mood::obeys});
  const std::string both = proxies.socket(0) + " " + proxies.socket(1);
  EXPECT_EQ(vpfsctl({"reload"}, {{"VPFS_PROXY", both}}).code, 0);
  EXPECT_EQ(vpfsctl({"reload", "--proxy", proxies.socket(1)}, {{"VPFS_PROXY", both}}).code, 0);
  EXPECT_EQ(proxies.asked(0).size(), 1U);
  EXPECT_EQ(proxies.asked(1).size(), 2U);
}

TEST(Vpfsctl, ABadLineOfAFileOfProxiesIsNamed) {
  const TemporaryDirectory directory;
  const std::string file = directory.write("proxies", "/a.sock\ns1\n");
  const Outcome outcome = vpfsctl({"reload", "--proxies", file});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.errors, StartsWith("vpfsctl: " + file + ":2: \"s1\""));
}

TEST(Vpfsctl, APlaceInTheConditionIsMarked) {
  Proxies proxies({Mood::obeys});
  proxies.on_ask([](const control::Envelope&) {
    control::Envelope reply;
    reply.mutable_error()->set_code(control::Error::INVALID);
    reply.mutable_error()->set_place("COND:8");
    reply.mutable_error()->set_text("unknown word \"jobbid\"; did you mean jobid?");
    return reply;
  });
  const Outcome outcome =
      vpfsctl({"rule", "start", "x", "uid={1}&jobbid={a}", "--proxy", proxies.socket(0)});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.errors, HasSubstr("refused: unknown word \"jobbid\"; did you mean jobid?\n"
                                        "  uid={1}&jobbid={a}\n"
                                        "          ^\n"));
}

TEST(Vpfsctl, AMistakeOnTheCommandLineExitsWithTwoAndAsksNoProxy) {
  const Proxies proxies({Mood::obeys});
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, "a command is missing: rule, job, status"},
      {{"ruel", "list"}, "did you mean rule?"},
      {{"rule"}, "a command is missing: start, change"},
      {{"rule", "strat", "x"}, "did you mean rule start?"},
      {{"nrs_tbf_rule=start x"}, "did you mean rule start NAME COND WORDS"},
      {{"reload", "--jsno"}, "did you mean --json?"},
      {{"rule", "start", "x"}, "COND is required"},
      {{"rule", "start", "x", "rate=5MiB/s"}, "the condition is missing before \"rate=5MiB/s\""},
      {{"rule", "apply", "-f", "/none.yaml"}, "/none.yaml: cannot be read"},
      {{"rule", "rollback", "x"}, "x"},
      {{"job", "start", "7", "--nodes", "1", "--uid", "no-such-user", "--clients", "n1"},
       "--uid: \"no-such-user\""},
      {{"bypass", "maybe"}, "expected on or off"},
      {{"reload", "--timeout", "5"}, "--timeout: \"5\" needs a unit"},
      {{"reload", "--certificate", "x"}, "--certificate, --key and --ca belong together"},
      {{"top", "--period", "1h"}, "--period"},
      {{"top", "--sort", "size"}, "--sort"}};
  for (const auto& [arguments, message] : cases) {
    const Outcome outcome = vpfsctl(arguments, {{"VPFS_PROXY", proxies.socket(0)}});
    EXPECT_EQ(outcome.code, 2) << outcome.errors;
    EXPECT_EQ(outcome.output, "");
    EXPECT_THAT(outcome.errors, HasSubstr(message));
    EXPECT_THAT(outcome.errors, StartsWith("vpfsctl: "));

    std::vector<std::string> with_json = arguments;
    with_json.insert(with_json.begin(), "--json");
    const Outcome json = vpfsctl(with_json, {{"VPFS_PROXY", proxies.socket(0)}});
    EXPECT_EQ(json.code, 2) << json.errors;
    const auto object = nlohmann::json::parse(json.output, nullptr, false);
    ASSERT_TRUE(object.is_object()) << json.output << json.errors;
    EXPECT_EQ(object["proxies"].size(), 0U);
    EXPECT_EQ(object["error"]["code"], "usage");
    EXPECT_THAT(object["error"]["text"].get<std::string>(), HasSubstr(message));
  }
  const Outcome partly =
      vpfsctl({"reload"}, {{"VPFS_PROXY", proxies.socket(0)}, {"VPFS_CA", "ca.pem"}});
  EXPECT_THAT(partly.errors, HasSubstr("--certificate, --key and --ca belong together"));
  EXPECT_THAT(proxies.asked(0), IsEmpty());
}

TEST(Vpfsctl, ApplySendsTheFileAndToldErrorsNameItsLines) {
  Proxies proxies({Mood::obeys});
  const std::string file = proxies.directory().write("rules.yaml", "rules: [{}]\n");
  proxies.on_ask([](const control::Envelope& request) {
    control::Envelope reply;
    reply.mutable_error()->set_place(request.rule().file_name() + ":1: rules[0].match");
    reply.mutable_error()->set_text("is missing");
    return reply;
  });
  const Outcome outcome =
      vpfsctl({"rule", "apply", "-f", file, "--confirm", "60s", "--proxies", proxies.file()});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.errors, "vpfsctl: s0: refused: " + file + ":1: rules[0].match: is missing\n");
  const auto asked = proxies.asked(0);
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].rule().file(), "rules: [{}]\n");
  EXPECT_EQ(asked[0].rule().confirm_seconds(), 60U);
}

TEST(Vpfsctl, BestEffortExitsWithZeroAndAWarningWhenNoProxyAnswers) {
  const Proxies proxies({Mood::absent, Mood::obeys});
  const Outcome outcome = vpfsctl({"job", "start", "4711", "--nodes", "2", "--uid", "0",
                                   "--clients", "n[1-2]", "--time-limit", "1-00:00:00",
                                   "--best-effort", "weight=4", "--proxies", proxies.file()});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.errors, StartsWith("vpfsctl: s0: warning: unreachable: "));
  const auto asked = proxies.asked(1);
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].job().jobid(), "4711");
  EXPECT_EQ(asked[0].job().time_limit_seconds(), 86400U);
  EXPECT_THAT(asked[0].job().clients(), ElementsAre("n[1-2]"));
  EXPECT_THAT(asked[0].job().words(), ElementsAre("weight=4"));
  const Outcome strict = vpfsctl({"job", "stop", "4711", "--proxies", proxies.file()});
  EXPECT_EQ(strict.code, 4);
}

TEST(Vpfsctl, BestEffortDoesNotForgiveARefusal) {
  const Proxies proxies({Mood::refuses});
  EXPECT_EQ(vpfsctl({"job", "stop", "4711", "--best-effort", "--proxies", proxies.file()}).code, 1);
}

// Versions as a stage counts them.
control::Envelope versioned(const control::Envelope& request) {
  control::Envelope reply;
  reply.mutable_rule_reply()->set_version(5);
  if (request.rule().confirm_seconds() > 0) {
    reply.mutable_rule_reply()->set_confirm_by_at(2'000'000'000);
  }
  reply.mutable_rule_reply()->set_text("rule x started");
  return reply;
}

std::vector<control::Rule::Action> actions(const std::vector<control::Envelope>& asked) {
  std::vector<control::Rule::Action> all;
  for (const control::Envelope& each : asked) all.push_back(each.rule().action());
  return all;
}

TEST(Vpfsctl, AnAtomicChangeIsConfirmedAtAllProxies) {
  Proxies proxies({Mood::obeys, Mood::obeys});
  proxies.on_ask(versioned);
  const Outcome outcome =
      vpfsctl({"rule", "start", "x", "uid={1}", "--atomic", "--proxies", proxies.file()});
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_EQ(outcome.output, "s0: rule x started\ns1: rule x started\n");
  for (const std::size_t proxy : {0U, 1U}) {
    EXPECT_THAT(actions(proxies.asked(proxy)),
                ElementsAre(control::Rule::START, control::Rule::CONFIRM));
    EXPECT_GE(proxies.asked(proxy)[0].rule().confirm_seconds(), 30U);
  }
}

TEST(Vpfsctl, AnAtomicChangeThatOneProxyRefusesIsRolledBackAtTheOthers) {
  Proxies proxies({Mood::obeys, Mood::refuses});
  proxies.on_ask(versioned);
  const Outcome outcome =
      vpfsctl({"rule", "stop", "x", "--atomic", "--proxies", proxies.file(), "--json"});
  EXPECT_EQ(outcome.code, 1);
  const Json json = Json::parse(outcome.output);
  EXPECT_EQ(json["proxies"][0]["error"]["code"], "rolled_back");
  EXPECT_EQ(json["proxies"][1]["error"]["code"], "invalid");
  EXPECT_THAT(actions(proxies.asked(0)), ElementsAre(control::Rule::STOP, control::Rule::ROLLBACK));
  EXPECT_EQ(proxies.asked(0)[1].rule().version(), 4U);
}

TEST(Vpfsctl, AnAtomicChangeAtAProxyThatVanishesHalfWayIsPartly) {
  Proxies proxies({Mood::obeys, Mood::obeys});
  proxies.on_ask(versioned);
  proxies.set(1, control::Rule::CONFIRM, Mood::silent);
  proxies.set(1, control::Rule::LIST, Mood::silent);
  const Outcome outcome = vpfsctl({"rule", "change", "x", "weight=2", "--atomic", "--proxies",
                                   proxies.file(), "--timeout", kShort});
  EXPECT_EQ(outcome.code, 4);
  EXPECT_EQ(outcome.output, "s0: rule x started\n");
  EXPECT_THAT(outcome.errors, HasSubstr("vpfsctl: s1: unreachable: applied, but the confirmation"));
}

TEST(Vpfsctl, NamesOfListsComeOncePerLineForScripts) {
  Proxies proxies({Mood::obeys, Mood::obeys});
  proxies.on_ask([](const control::Envelope&) {
    control::Envelope reply;
    reply.mutable_rule_reply()->add_rules()->set_name("dd");
    reply.mutable_rule_reply()->add_rules()->set_name("default");
    return reply;
  });
  EXPECT_EQ(vpfsctl({"rule", "list", "--names", "--proxies", proxies.file()}).output,
            "dd\ndefault\n");
}

TEST(Vpfsctl, JobStatsOfSeveralProxiesAreUnderLustresParameterNames) {
  Proxies proxies({Mood::obeys, Mood::obeys});
  proxies.on_ask([](const control::Envelope&) {
    control::Envelope reply;
    reply.mutable_stats_reply();
    return reply;
  });
  EXPECT_EQ(vpfsctl({"job_stats", "--proxies", proxies.file()}).output,
            "obdfilter.s0.job_stats=\njob_stats:\nobdfilter.s1.job_stats=\njob_stats:\n");
  EXPECT_EQ(vpfsctl({"job_stats", "--proxy", proxies.socket(0)}).output, "job_stats:\n");
}

}  // namespace
}  // namespace vpfs::test
