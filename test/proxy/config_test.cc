#include "proxy/config.h"

#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "schedulers/registry.h"

namespace vpfs::proxy {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string errors_of(const std::string& text) {
  ConfigErrors errors("p.yaml");
  (void)parse_config(text, errors);
  return errors.to_string();
}

constexpr const char* kMinimal = "proxy: {listen: '127.0.0.1:0', upstream: '127.0.0.1:1'}\n";

TEST(ProxyConfig, TheExampleIsGood) {
  ConfigErrors errors("conf/proxy.yaml");
  const Config config =
      parse_config(read_file(std::string(VPFS_SOURCE_DIR) + "/conf/proxy.yaml"), errors);
  EXPECT_EQ(errors.to_string(), "");
  EXPECT_EQ(config.listen, "127.0.0.1:4334");
  EXPECT_EQ(config.policy, "sfq");
  EXPECT_EQ(config.depth.requests, 16U);
  EXPECT_EQ(config.depth.cost, 8 * kMiB);
  EXPECT_FALSE(config.timeouts.hold);
  ASSERT_EQ(config.virtual_pfs.size(), 4U);
  EXPECT_EQ(config.virtual_pfs[0].name, "simulation");
  EXPECT_EQ(config.virtual_pfs[0].share.weight, 2U);
  ASSERT_EQ(config.rules.size(), 3U);
  EXPECT_EQ(config.rules[2].virtual_pfs, "job-{jobid}");
}

TEST(ProxyConfig, EveryExampleOfAPolicyIsGood) {
  for (const std::string_view policy : scheduler_names()) {
    const std::string path =
        std::string(VPFS_SOURCE_DIR) + "/conf/" + std::string(policy) + ".yaml";
    ConfigErrors errors(path);
    const Config config = parse_config(read_file(path), errors);
    EXPECT_EQ(errors.to_string(), "");
    EXPECT_EQ(config.policy, policy);
    EXPECT_FALSE(config.virtual_pfs.empty());
  }
}

TEST(ProxyConfig, DefaultsNeedOnlyTheAddresses) {
  ConfigErrors errors("p.yaml");
  const Config config = parse_config(kMinimal, errors);
  EXPECT_TRUE(errors.empty()) << errors.to_string();
  EXPECT_EQ(config.workers, 1U);
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
  EXPECT_EQ(template_fields("job-{jobid}-{user}"), (std::vector<std::string>{"jobid", "user"}));
  EXPECT_TRUE(template_fields("plain{").empty());
}

}  // namespace
}  // namespace vpfs::proxy
