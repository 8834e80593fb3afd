#include "tools/vpfsctl/site/targets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vpfs::ctl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A host with one file and some sockets.
TargetPlaces host(std::string text, std::vector<std::string> sockets = {}) {
  return {.read = [text = std::move(text)](const std::string& file) -> Result<std::string> {
            if (text.empty()) return fail(file + ": cannot be read");
            return text;
          },
          .sockets = [sockets = std::move(sockets)](const std::string&) { return sockets; }};
}

Target socket(const std::string& path) {
  return {.name = path, .endpoint = {.path = path}};
}
Target host_port(const std::string& name, const std::string& host, std::uint16_t port,
                 bool is_named = false) {
  return {.name = name, .endpoint = {.host = host, .port = port}, .is_named = is_named};
}

TEST(Targets, AFileHasAnEndpointALineWithANameIfItLikes) {
  const auto targets =
      parse_proxies("# ours\n\ns0:7333 first\n  s1:7333   # no name\n/run/vpfs/s2.sock\n", "f");
  ASSERT_TRUE(targets);
  EXPECT_THAT(*targets, ElementsAre(host_port("first", "s0", 7333, true),
                                    host_port("s1:7333", "s1", 7333), socket("/run/vpfs/s2.sock")));
}

TEST(Targets, ABadLineIsSaidWithItsNumber) {
  EXPECT_THAT(parse_proxies("s0:7333\ns1\n", "/etc/vpfs/proxies").error().message,
              HasSubstr("/etc/vpfs/proxies:2: \"s1\""));
  EXPECT_THAT(parse_proxies("s0:7333 a b\n", "f").error().message, HasSubstr("f:1: \"b\""));
  // VPFS_PROXY has several on a line.
  for (const char* line : {"s0:7333 s1:7333", "/run/vpfs/a.sock,/run/vpfs/b.sock"}) {
    EXPECT_THAT(parse_proxies(line, "f").error().message, HasSubstr("is another endpoint")) << line;
  }
  EXPECT_THAT(parse_proxies("s0:7333\n#\ns0:7333 x", "f").error().message,
              HasSubstr("f:3: the same proxy or name as in line 1"));
}

TEST(Targets, OptionsGoBeforeTheEnvironment) {
  const auto chosen =
      choose_targets({.proxies = {"/a", "s0:1", "/a"}, .environment = "s9:9"}, host(""));
  ASSERT_TRUE(chosen);
  EXPECT_THAT(chosen->targets, ElementsAre(socket("/a"), host_port("s0:1", "s0", 1)));
  EXPECT_EQ(chosen->note, "");
}

TEST(Targets, TheEnvironmentMayNameSeveral) {
  const auto chosen = choose_targets({.environment = "s0:1 /a,/b"}, host(""));
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->targets.size(), 3U);
  EXPECT_THAT(choose_targets({.environment = "s0"}, host("")).error().message,
              HasSubstr("VPFS_PROXY: "));
}

TEST(Targets, AllReadsTheFileOfProxies) {
  const auto chosen =
      choose_targets({.all = true, .environment = "s9:9"}, host("s0:1 a\ns1:1 b\n"));
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->targets.size(), 2U);
  EXPECT_THAT(choose_targets({.all = true}, host("")).error().message,
              HasSubstr("/etc/vpfs/proxies: cannot be read"));
  EXPECT_THAT(choose_targets({.file = "mine"}, host("# none\n")).error().message,
              HasSubstr("mine: names no proxy"));
}

TEST(Targets, WithoutAWordItIsTheUsualSocket) {
  const auto chosen = choose_targets({}, host("", {"/run/vpfs/a.sock", "/run/vpfs/proxy.sock"}));
  ASSERT_TRUE(chosen);
  EXPECT_THAT(chosen->targets, ElementsAre(socket("/run/vpfs/proxy.sock")));
  EXPECT_EQ(chosen->note, "");
}

TEST(Targets, WithoutAnySocketItSaysHowToNameOne) {
  const auto chosen = choose_targets({}, host(""));
  ASSERT_TRUE(chosen);
  EXPECT_THAT(chosen->targets, ElementsAre(socket("/run/vpfs/proxy.sock")));
  EXPECT_EQ(chosen->note,
            "no proxy was named, and /run/vpfs has no socket of one: --proxy or VPFS_PROXY names "
            "its control.socket");
}

TEST(Targets, ACoordinatorsSocketsAreNotProxies) {
  const std::vector<std::string> of_coordinator = {"/run/vpfs/coordinator.sock",
                                                   "/run/vpfs/stages.sock"};
  auto chosen = choose_targets({}, host("", of_coordinator));
  ASSERT_TRUE(chosen);
  EXPECT_THAT(chosen->targets, ElementsAre(socket("/run/vpfs/proxy.sock")));
  EXPECT_THAT(chosen->note, HasSubstr("and --coordinator that of a coordinator"));
  std::vector<std::string> sockets = of_coordinator;
  sockets.emplace_back("/run/vpfs/s0.sock");
  chosen = choose_targets({}, host("", sockets));
  ASSERT_TRUE(chosen);
  EXPECT_THAT(chosen->targets, ElementsAre(socket("/run/vpfs/s0.sock")));
}

TEST(Targets, WithoutTheUsualSocketItIsEveryOtherAndSaysSo) {
  const auto chosen = choose_targets({}, host("", {"/run/vpfs/s0.sock", "/run/vpfs/s1.sock"}));
  ASSERT_TRUE(chosen);
  EXPECT_THAT(chosen->targets,
              ElementsAre(socket("/run/vpfs/s0.sock"), socket("/run/vpfs/s1.sock")));
  EXPECT_THAT(chosen->note, HasSubstr("using /run/vpfs/s0.sock, /run/vpfs/s1.sock"));
}

}  // namespace
}  // namespace vpfs::ctl
