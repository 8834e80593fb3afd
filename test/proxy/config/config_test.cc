#include "proxy/config/config.h"

#include <fstream>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedulers/policies/registry.h"
#include "stage/rules/template_name.h"
#include "test/proxy/config_text.h"
#include "test/support/places.h"

namespace vpfs::proxy {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(ProxyConfig, TheExampleIsGood) {
  ConfigErrors errors("conf/proxy.yaml");
  const Config config = parse_config(read_file(test::source("conf/proxy.yaml")), errors);
  EXPECT_EQ(errors.to_string(), "");
  EXPECT_EQ(config.listen, "127.0.0.1:4334");
  EXPECT_EQ(config.policy, "sfq");
  EXPECT_EQ(config.scheduler.depth.requests, 16U);
  EXPECT_EQ(config.scheduler.depth.cost, 8 * kMiB);
  EXPECT_FALSE(config.timeouts.hold);
  EXPECT_EQ(config.control.socket, "vpfs-proxy.sock");
  ASSERT_EQ(config.virtual_pfs.size(), 4U);
  EXPECT_EQ(config.virtual_pfs[0].name, "simulation");
  EXPECT_EQ(config.virtual_pfs[0].share.weight, 2U);
  ASSERT_EQ(config.rules.size(), 3U);
  EXPECT_EQ(config.rules[2].virtual_pfs, "job-{jobid}");
}

TEST(ProxyConfig, EveryExampleOfAPolicyIsGood) {
  for (const std::string_view policy : scheduler_names()) {
    const std::string path = test::source("conf/") + std::string(policy) + ".yaml";
    ConfigErrors errors(path);
    const Config config = parse_config(read_file(path), errors);
    EXPECT_EQ(errors.to_string(), "");
    EXPECT_EQ(config.policy, policy);
    EXPECT_FALSE(config.virtual_pfs.empty());
  }
}

TEST(ProxyConfig, TheCoordinatorToConnectToNeedsNoPort) {
  ConfigErrors errors("p.yaml");
  const std::string text =
      std::string(kMinimal) + "control: {coordinator: /run/vpfs/stages.sock, name: stor0}\n";
  const Config config = parse_config(text, errors);
  EXPECT_EQ(errors.to_string(), "");
  EXPECT_THAT(config.control.coordinators, ::testing::ElementsAre("/run/vpfs/stages.sock"));
  EXPECT_TRUE(config.control.enabled());
  (void)parse_config(std::string(kMinimal) + "control: {coordinator: '/elsewhere'}\n", errors,
                     &config);
  EXPECT_EQ(errors.to_string(), "") << "a reload may change it";
  EXPECT_THAT(errors_of(std::string(kMinimal) + "control: {coordinator: coord}\n"),
              ::testing::HasSubstr("control.coordinator: \"coord\" is not an address"));
}

TEST(ProxyConfig, ServersAreAddressesOfAFileSystemThatHasOthers) {
  const auto with = [](const std::string& servers, const std::string& protocol = "beegfs") {
    return "proxy:\n  {listen: '127.0.0.1:0', upstream: '127.0.0.1:1', protocol: " + protocol +
           ",\n  servers: " + servers + "}\n";
  };
  ConfigErrors errors("p.yaml");
  EXPECT_EQ(parse_config(with("[10.0.0.0/24, 127.0.0.1, 'fd00::/8']"), errors).servers.size(), 3U);
  EXPECT_EQ(errors.to_string(), "");
  EXPECT_EQ(errors_of(with("127.0.0.1")), "");
  EXPECT_EQ(errors_of(with("[]")),
            "p.yaml:3: proxy.servers: is empty: give it a value, or leave it out\n");
  EXPECT_EQ(errors_of(with("[10.0.0.1, meta01, 10.0.0.0/33]")),
            "p.yaml:3: proxy.servers: 'meta01' is not an IP address or CIDR block\n"
            "p.yaml:3: proxy.servers: '10.0.0.0/33' is not an IP address or CIDR block\n");
  EXPECT_EQ(errors_of(with("[10.0.0.1]", "orangefs")),
            "p.yaml:3: proxy.servers: the protocol orangefs has no other servers\n");
}

TEST(ProxyConfig, DefaultsNeedOnlyTheAddresses) {
  ConfigErrors errors("p.yaml");
  const Config config = parse_config(kMinimal, errors);
  EXPECT_TRUE(errors.empty()) << errors.to_string();
  EXPECT_EQ(config.workers, 1U);
}

TEST(ProxyConfig, WorkersAreCountedOrChosenByTheProcessors) {
  const auto workers = [](const std::string& value, std::size_t processors) {
    ConfigErrors errors("p.yaml");
    const Config config = parse_config(
        "proxy: {listen: '127.0.0.1:0', upstream: '127.0.0.1:1', workers: " + value + "}\n",
        errors);
    EXPECT_EQ(errors.to_string(), "");
    return worker_count(config, processors);
  };
  EXPECT_EQ(workers("3", 1), 3U);
  EXPECT_EQ(workers("auto", 1), 1U);
  EXPECT_EQ(workers("auto", 7), 1U);
  EXPECT_EQ(workers("auto", 8), 2U);
  EXPECT_EQ(workers("auto", 256), 8U);
}

TEST(ProxyConfig, BusyPollingIsBounded) {
  ConfigErrors errors("p.yaml");
  EXPECT_FALSE(parse_config(kMinimal, errors).busy_poll) << "automatic";
  const std::string proxy = "proxy: {listen: '127.0.0.1:0', upstream: '127.0.0.1:1', busy_poll: ";
  EXPECT_EQ(parse_config(proxy + "50 us}\n", errors).busy_poll, std::chrono::microseconds(50));
  EXPECT_EQ(parse_config(proxy + "0 s}\n", errors).busy_poll, Duration::zero());
  EXPECT_FALSE(parse_config(proxy + "auto}\n", errors).busy_poll);
  EXPECT_EQ(errors.to_string(), "");
  EXPECT_NE(errors_of(proxy + "2 ms}\n").find("p.yaml:1: proxy.busy_poll: "), std::string::npos);
}

TEST(ProxyConfig, AllErrorsComeAtOnceWithLineAndKey) {
  const std::string errors = errors_of(
      "proxy:\n"
      "  listen: 127.0.0.1:0\n"
      "  upstrem: 127.0.0.1:1\n"
      "  workers: 0\n"
      "scheduler:\n"
      "  policy: lifo\n"
      "  depth: {requests: many, bytes: 8 parsecs}\n"
      "virtual_pfs:\n"
      "  a: {weight: 0}\n"
      "rules:\n"
      "  - match: {client: 10.0.0.0/40}\n"
      "    virtual_pfs: b\n"
      "  - match: {operation: append, hint: {user: x}}\n"
      "    virtual_pfs: 'job-{jobid}'\n");
  for (const char* expected : {"p.yaml:3:", "upstrem", "upstream", "p.yaml:4:", "p.yaml:6:", "fifo",
                               "p.yaml:7:", "parsecs", "p.yaml:9:", "p.yaml:11:", "10.0.0.0/40",
                               "p.yaml:12:", "p.yaml:13:", "p.yaml:14:", "jobid"}) {
    EXPECT_NE(errors.find(expected), std::string::npos) << expected << " in:\n" << errors;
  }
}

constexpr const char* kTwo = "virtual_pfs:\n  a: {";

std::string errors_with(const std::string& scheduler, const std::string& share) {
  return errors_of(kMinimal + ("scheduler: {" + scheduler + "}\n") + kTwo + share + "}\n");
}

TEST(ProxyConfig, WhatAPolicyWouldIgnoreIsAMistake) {
  EXPECT_EQ(errors_with("policy: fifo", "rate: 1 MiB/s"),
            "p.yaml:4: virtual_pfs.a.rate: would be ignored by the policy fifo\n");
  EXPECT_EQ(errors_with("policy: tbf", "min: 1 MiB/s"),
            "p.yaml:4: virtual_pfs.a.min: would be ignored by the policy tbf\n");
  EXPECT_EQ(errors_with("policy: sfq", "rate: 1 MiB/s, min: 2 MiB/s"),
            "p.yaml:4: virtual_pfs.a.min: is more than `rate`\n");
  EXPECT_EQ(errors_with("policy: sfq", "burst: 1 MiB"),
            "p.yaml:4: virtual_pfs.a.burst: needs a rate\n");
  EXPECT_EQ(errors_with("policy: sfq, classes: {max_starvation: 1 s}", ""),
            "p.yaml:2: scheduler.classes.max_starvation: applies only with mode strict\n");
  for (const std::string_view policy : scheduler_names()) {
    EXPECT_EQ(errors_with("policy: " + std::string(policy), "weight: 2"), "");
  }
}

TEST(ProxyConfig, ARankIsThereOnlyWhereTheFileHasOne) {
  ConfigErrors errors("p.yaml");
  const Config config = parse_config(
      std::string(kMinimal) +
          "scheduler: {policy: adaptbf}\nvirtual_pfs: {a: {nodes: 3}, b: {nodes: 3, rank: 0}}\n",
      errors);
  EXPECT_EQ(errors.to_string(), "");
  EXPECT_EQ(config.virtual_pfs[0].share.rank, std::nullopt);
  EXPECT_EQ(config.virtual_pfs[1].share.rank, 0);
}

TEST(ProxyConfig, APeriodOfAdaptbfNeedsTokensToDivide) {
  EXPECT_EQ(errors_with("policy: adaptbf, adaptbf: {period: 10 ms, least: 100 MiB/s}", ""), "");
  EXPECT_NE(errors_with("policy: adaptbf, adaptbf: {period: 10 ms}", "").find("at least 10 are"),
            std::string::npos);
  EXPECT_NE(errors_with("policy: adaptbf, adaptbf: {capacity: 1 MiB/s}", "")
                .find("scheduler.adaptbf.capacity: is 1.6 tokens in a period"),
            std::string::npos);
}

TEST(ProxyConfig, PromisesThatDoNotFitTogetherAreMistakes) {
  const std::string edf =
      "policy: edf, depth: {requests: 1}, edf: {capacity: 100 MiB/s,"
      " largest_request: 1 MiB}";
  const std::string curve = "latency: 50 ms, rate: 10 MiB/s, burst: 1 MiB";
  EXPECT_EQ(errors_with(edf, curve), "");
  EXPECT_EQ(errors_with(edf, "latency: 10 ms, rate: 10 MiB/s, burst: 1 MiB"),
            "p.yaml:4: virtual_pfs.a.latency: cannot be promised: the earliest that can is "
            "20 ms\n");
  EXPECT_EQ(errors_with(edf, "latency: 50 ms, rate: 101 MiB/s"),
            "p.yaml:4: virtual_pfs.a.latency: cannot be promised with any latency up to a day\n");
  EXPECT_NE(errors_with(edf, "finish: {bytes: 10 GiB, within: 10 s}").find("from now"),
            std::string::npos);
  EXPECT_NE(errors_with("policy: edf", curve).find("without the capacity"), std::string::npos);
  EXPECT_NE(errors_with("policy: edf", "rate: 1 MiB/s").find("needs a latency"), std::string::npos);
}

TEST(ProxyConfig, DepthIsANumberOrFindsItself) {
  ConfigErrors errors("p.yaml");
  const std::string minimal = kMinimal;
  EXPECT_FALSE(parse_config(minimal, errors).scheduler.auto_depth);
  EXPECT_TRUE(parse_config(minimal + "scheduler: {depth: auto}\n", errors).scheduler.auto_depth);
  const Config both =
      parse_config(minimal + "scheduler: {depth: {requests: auto, bytes: 1 MiB}}\n", errors);
  EXPECT_TRUE(both.scheduler.auto_depth);
  EXPECT_EQ(both.scheduler.depth.cost, kMiB);
  EXPECT_TRUE(errors.empty()) << errors.to_string();
  EXPECT_EQ(parse_config(minimal + "scheduler: {depth: 7}\n", errors).scheduler.depth.requests, 7U);
  EXPECT_TRUE(errors.empty()) << errors.to_string();
  for (const char* wrong : {"many", "8 MiB", "-1", "''"}) {
    EXPECT_NE(errors_of(minimal + "scheduler: {depth: " + wrong + "}\n")
                  .find("is not a depth: expected a number of requests, `auto`, or a mapping"),
              std::string::npos)
        << wrong;
  }
  EXPECT_NE(errors_of(minimal + "scheduler: {depth: 0}\n").find("out of range"), std::string::npos);
}

std::string errors_of_rule(const std::string& rule) {
  return errors_of(kMinimal + ("rules: [{" + rule + ", virtual_pfs: default}]\n"));
}

TEST(ProxyConfig, AnEmptyConditionIsAMistakeAndDoesNotMatchAll) {
  for (const char* key : {"client", "uid", "file_system"}) {
    EXPECT_EQ(errors_of_rule(std::string("match: {") + key + ": []}"),
              std::string("p.yaml:2: rules[0].match.") + key +
                  ": is empty: give it a value, or leave it out\n");
  }
  EXPECT_EQ(errors_of_rule("match: {hint: {}}"),
            "p.yaml:2: rules[0].match.hint: is empty: give it a value, or leave it out\n");
  EXPECT_EQ(errors_of_rule("match: {hint: {jobid: ''}}"),
            "p.yaml:2: rules[0].match.hint: the pattern of 'jobid' is empty; '*' matches any "
            "value\n");
  for (const char* given : {"client: ''", "uid: ''", "op: ''", "client:", "uid:", "hint:", "op:"}) {
    EXPECT_NE(errors_of_rule("match: {" + std::string(given) + "}"), "") << given;
  }
  for (const char* key : {"node", "target", "owner", "dir"}) {
    EXPECT_EQ(errors_of("proxy: {listen: 'a:1', upstream: 'b:1', protocol: beegfs}\n"
                        "rules: [{match: {" +
                        std::string(key) + ": []}, virtual_pfs: default}]\n"),
              std::string("p.yaml:2: rules[0].match.") + key +
                  ": is empty: give it a value, or leave it out\n");
  }
  EXPECT_NE(errors_of("proxy: {listen: 'a:1', upstream: 'b:1', protocol: beegfs}\n"
                      "rules: [{match: {dir: [x, '']}, virtual_pfs: default}]\n")
                .find("an empty pattern matches nothing"),
            std::string::npos);
  EXPECT_EQ(errors_of_rule("match: {}"), "")
      << "no condition at all matches all requests, and says so";
}

TEST(ProxyConfig, BracesOfTemplatesMustPairUp) {
  for (const char* good : {"plain", "job-{jobid}", "{a}{b}", "x{a}y{b}z"}) {
    EXPECT_FALSE(stage::template_problem(good)) << good;
  }
  for (const char* bad :
       {"j-{jobid", "j-jobid}", "{}", "a{}b", "{{a}}", "a}b{", "{a}}", "{a{b}}"}) {
    EXPECT_TRUE(stage::template_problem(bad)) << bad;
  }
  EXPECT_EQ(
      errors_of(kMinimal +
                std::string("virtual_pfs:\n  'j-{jobid': {}\n"
                            "rules: [{match: {hint: {jobid: '*'}}, virtual_pfs: 'j-{jobid'}]\n")),
      "p.yaml:3: virtual_pfs.j-{jobid: 'j-{jobid': a brace is never closed: expected a name such "
      "as "
      "job-{jobid}\n"
      "p.yaml:4: rules[0].virtual_pfs: 'j-{jobid': a brace is never closed: expected a name such "
      "as "
      "job-{jobid}\n");
}

TEST(ProxyConfig, TheWordsOfOtherSystemsGetTheRightKeyProposed) {
  const auto share = [](const std::string& policy, const std::string& key) {
    return errors_of(kMinimal +
                     ("scheduler: {policy: " + policy + "}\nvirtual_pfs: {a: {" + key + ": 1}}\n"));
  };
  const auto proposes = [](const std::string& errors, const std::string& key) {
    return errors.find("unknown key; did you mean \"" + key + "\"?") != std::string::npos;
  };
  for (const auto& [word, key] :
       std::vector<std::pair<std::string, std::string>>{{"rps", "operations"},
                                                        {"ops", "operations"},
                                                        {"bandwidth", "rate"},
                                                        {"bw", "rate"},
                                                        {"limit", "rate"},
                                                        {"priority", "weight"},
                                                        {"share", "weight"},
                                                        {"uid", "rules[].match.uid"},
                                                        {"user", "rules[].match.uid"},
                                                        {"jobid", "rules[].match.jobid"},
                                                        {"nid", "rules[].match.client"}}) {
    EXPECT_TRUE(proposes(share("sfq", word), key)) << word << ": " << share("sfq", word);
  }
  EXPECT_TRUE(proposes(share("tbf", "priority"), "rank"));
  EXPECT_TRUE(proposes(share("adaptbf", "priority"), "nodes"));
  EXPECT_TRUE(proposes(errors_of_rule("match: {user: 1}"), "uid"));
  EXPECT_TRUE(proposes(errors_of_rule("match: {job: a}"), "jobid"));
  EXPECT_TRUE(proposes(errors_of_rule("match: {nid: a}"), "client"));
  EXPECT_TRUE(proposes(errors_of_rule("uid: 1"), "match: {uid: ...}"));
  EXPECT_TRUE(proposes(errors_of_rule("jobid: a"), "match: {jobid: ...}"));
  EXPECT_TRUE(proposes(errors_of(std::string(kMinimal) + "listen: x\n"), "proxy.listen"));
  EXPECT_TRUE(
      proposes(errors_of(std::string(kMinimal) + "iops: 1\n"), "virtual_pfs.NAME.operations"));
}

TEST(ProxyConfig, LogFileNeedsItsDirectorySoThatAMisspeltWordIsAMistake) {
  const auto errors_of = [](const std::string& log) {
    ConfigErrors errors("p.yaml");
    (void)parse_config("proxy: {listen: 'a:1', upstream: 'b:1', log: " + log + "}\n", errors);
    return errors.to_string();
  };
  for (const char* good : {"stderr", "journal", "./log", "/var/log/vpfs.log"}) {
    EXPECT_EQ(errors_of(good), "");
  }
  EXPECT_EQ(errors_of("jornal"),
            "p.yaml:1: proxy.log: 'jornal' is not `stderr`, `journal` or a file with its "
            "directory, such as ./vpfs-proxy.log\n");
}

TEST(ProxyConfig, AnUpstreamWithPortZeroIsAMistake) {
  EXPECT_EQ(errors_of("proxy: {listen: '127.0.0.1:0', upstream: '127.0.0.1:0'}\n"),
            "p.yaml:1: proxy.upstream: a data server cannot have port 0\n");
}

TEST(ProxyConfig, RulesPutRequestsIntoClasses) {
  const std::string text =
      std::string(kMinimal) +
      "scheduler: {classes: {mode: strict, names: [{name: fast}, {name: slow}]}}\n"
      "rules:\n"
      "  - {match: {operation: metadata}, virtual_pfs: default, class: fast}\n"
      "  - {match: {operation: read}, virtual_pfs: default}\n";
  ConfigErrors errors("p.yaml");
  const Config config = parse_config(text, errors);
  EXPECT_EQ(errors.to_string(), "");
  EXPECT_EQ(config.rules[0].traffic_class, 0);
  EXPECT_EQ(config.rules[0].any_of[0].kinds, std::vector{IoKind::metadata});
  EXPECT_EQ(config.rules[1].traffic_class, 1) << "the last one unless said otherwise";
  EXPECT_EQ(stage::default_class(config), 1);
  EXPECT_NE(errors_of(text + "  - {virtual_pfs: default, class: slower}\n").find("p.yaml:6:"),
            std::string::npos);
  EXPECT_NE(errors_of(std::string(kMinimal) + "rules: [{virtual_pfs: default, class: fast}]\n")
                .find("no classes are named"),
            std::string::npos);
}

TEST(ProxyConfig, WhatCannotChangeWhileTheProxyRunsIsAMistake) {
  ConfigErrors errors("p.yaml");
  const Config running = parse_config(kMinimal, errors);
  (void)parse_config("proxy: {listen: '127.0.0.1:0', upstream: '127.0.0.1:2', workers: 2}\n",
                     errors, &running);
  EXPECT_EQ(errors.to_string(),
            "p.yaml:1: proxy.upstream: cannot change while the proxy runs: restart it\n"
            "p.yaml:1: proxy.workers: cannot change while the proxy runs: restart it\n");
}

TEST(ProxyConfig, KeepsConnectionsOverACrashUnlessToldOtherwise) {
  ConfigErrors errors("p.yaml");
  const Config running = parse_config(kMinimal, errors);
  EXPECT_TRUE(running.keep_over_crash);
  const std::string off = std::string(kMinimal) + "restart: {keep_over_crash: false, drain: 1 s}\n";
  EXPECT_FALSE(parse_config(off, errors).keep_over_crash);
  EXPECT_EQ(errors.to_string(), "");
  (void)parse_config(off, errors, &running);
  EXPECT_NE(errors.to_string().find("restart.keep_over_crash: cannot change while the proxy runs"),
            std::string::npos);
  EXPECT_NE(errors_of(std::string(kMinimal) + "restart: {keep_over_crash: 5}\n").find("p.yaml:2"),
            std::string::npos);
}

// A value that cannot be read does not count as changed.
TEST(ProxyConfig, AMistakeInAReloadedFileIsToldAlone) {
  ConfigErrors none("p.yaml");
  const Config running = parse_config(
      "proxy: {listen: '127.0.0.1:0', upstream: '127.0.0.1:1', protocol: beegfs, workers: 2}\n"
      "scheduler: {per_target: true}\n",
      none);
  ASSERT_TRUE(none.empty()) << none.to_string();
  const auto reloaded = [&](const std::string& text) {
    ConfigErrors errors("p.yaml");
    (void)parse_config(text, errors, &running);
    return errors.to_string();
  };
  EXPECT_EQ(reloaded("proxy: {listen: '127.0.0.1:0'\nscheduler: {per_target: true}\n"),
            "p.yaml:2: not YAML: end of map flow not found\n");
  EXPECT_EQ(reloaded("proxy: here\nscheduler: there\n"),
            "p.yaml:1: proxy: must be a mapping (key: value)\n"
            "p.yaml:2: scheduler: must be a mapping (key: value)\n");
  const std::string rest =
      "upstream: '127.0.0.1:1', protocol: beegfs}\nscheduler: {per_target: true}\n";
  EXPECT_EQ(reloaded("proxy: {listen: '127.0.0.1:0', workrs: 2, " + rest),
            "p.yaml:1: proxy.workrs: unknown key; did you mean \"workers\"?\n");
  EXPECT_EQ(reloaded("proxy: {listen: '127.0.0.1', workers: 2, " + rest),
            "p.yaml:1: proxy.listen: '127.0.0.1' is not an endpoint: expected HOST:PORT\n");
  EXPECT_EQ(reloaded("proxy: {listen: '127.0.0.1:0', workers: 2, upstream: '127.0.0.1:1', "
                     "protocol: beegfs}\n"),
            "p.yaml:1: scheduler.per_target: cannot change while the proxy runs: restart it\n");
}

TEST(ProxyConfig, HoldIsAutomaticOrADuration) {
  ConfigErrors errors("p.yaml");
  EXPECT_EQ(parse_config(std::string(kMinimal) + "timeouts: {hold: 30 s}\n", errors).timeouts.hold,
            std::chrono::seconds(30));
  EXPECT_FALSE(
      parse_config(std::string(kMinimal) + "timeouts: {hold: auto}\n", errors).timeouts.hold);
  EXPECT_TRUE(errors.empty()) << errors.to_string();
  EXPECT_NE(errors_of(std::string(kMinimal) + "timeouts: {hold: soon}\n").find("p.yaml:2: "),
            std::string::npos);
}

TEST(ProxyConfig, TemplateFieldsAreTheNamesInBraces) {
  EXPECT_EQ(stage::template_fields("job-{jobid}-{user}"),
            (std::vector<std::string>{"jobid", "user"}));
  EXPECT_TRUE(stage::template_fields("plain{").empty());
}

constexpr const char* kMinimalBeegfs =
    "proxy: {listen: '127.0.0.1:0', upstream: '127.0.0.1:1', protocol: beegfs}\n";

TEST(ProxyConfig, TheExampleForBeegfsIsGood) {
  ConfigErrors errors("conf/beegfs.yaml");
  const Config config = parse_config(read_file(test::source("conf/beegfs.yaml")), errors);
  EXPECT_EQ(errors.to_string(), "");
  EXPECT_EQ(config.protocol, "beegfs");
  EXPECT_TRUE(config.scheduler_per_target);
  EXPECT_TRUE(config.client_limits.enabled);
  EXPECT_FALSE(config.client_limits.most);
  ASSERT_EQ(config.rules.size(), 3U);
  EXPECT_EQ(config.rules[0].any_of[0].directories,
            (std::vector<std::string>{"4-5F2A-1", "7-5F2A-*"}));
  EXPECT_EQ(config.rules[1].any_of[0].kinds, std::vector{IoKind::read});
  EXPECT_EQ(config.rules[2].virtual_pfs, "user-{uid}");
}

TEST(ProxyConfig, WhatAProtocolDoesNotShowIsAMistake) {
  EXPECT_EQ(errors_of(std::string(kMinimal) + "rules: [{match: {owner: 1, dir: x, node: 1, target: "
                                              "1}, virtual_pfs: default}]\n"),
            "p.yaml:2: rules[0].match.node: the protocol orangefs does not show it\n"
            "p.yaml:2: rules[0].match.target: the protocol orangefs does not show it\n"
            "p.yaml:2: rules[0].match.owner: the protocol orangefs does not show it\n"
            "p.yaml:2: rules[0].match.dir: the protocol orangefs does not show it\n");
  EXPECT_EQ(
      errors_of(std::string(kMinimalBeegfs) + "rules: [{match: {hint: {jobid: a}, file_system: 1, "
                                              "op: metadata}, virtual_pfs: default}]\n"),
      "p.yaml:2: rules[0].match.hint: the protocol beegfs does not show it\n"
      "p.yaml:2: rules[0].match.op: the protocol beegfs does not show it\n"
      "p.yaml:2: rules[0].match.file_system: the protocol beegfs does not show it\n");
  EXPECT_EQ(errors_of(std::string(kMinimalBeegfs) + "scheduler: {schedule: [io, metadata]}\n"),
            "p.yaml:2: scheduler.schedule: the protocol beegfs has no metadata requests\n");
  EXPECT_EQ(errors_of(std::string(kMinimal) + "scheduler: {per_target: true}\n"),
            "p.yaml:2: scheduler.per_target: the protocol orangefs shows no targets\n");
}

TEST(ProxyConfig, ClientsMayGoWhereTheyMeantToGo) {
  ConfigErrors errors("p.yaml");
  const Config config =
      parse_config("proxy: {listen: '127.0.0.1:9003', upstream: original}\n", errors);
  EXPECT_EQ(errors.to_string(), "");
  EXPECT_EQ(config.upstream, kOriginal);
}

TEST(ProxyConfig, ALimitPerClientIsANumberOrAWord) {
  const auto limit = [](const std::string& value) {
    ConfigErrors errors("p.yaml");
    const Config config = parse_config(
        std::string(kMinimalBeegfs) + "limits: {max_held_per_client: " + value + "}\n", errors);
    EXPECT_EQ(errors.to_string(), "");
    return config.client_limits;
  };
  EXPECT_FALSE(limit("off").enabled);
  EXPECT_EQ(limit("5").most, 5U);
  EXPECT_FALSE(limit("auto").most);
  EXPECT_NE(errors_of(std::string(kMinimalBeegfs) + "limits: {max_held_per_client: 0}\n"), "");
}

}  // namespace
}  // namespace vpfs::proxy
