#include "tools/vpfsctl/targets.h"

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

TEST(Targets, EndpointsArePathsOrHostsWithPorts) {
  EXPECT_EQ(parse_endpoint("unix:/run/a.sock"), "unix:/run/a.sock");
  EXPECT_EQ(parse_endpoint("/run/a.sock"), "unix:/run/a.sock");
  EXPECT_EQ(parse_endpoint("./a"), "unix:./a");
  EXPECT_EQ(parse_endpoint("s0:7333"), "s0:7333");
  EXPECT_EQ(parse_endpoint("[fd00::1]:7333"), "[fd00::1]:7333");
  for (const char* text : {"", "s0", "s0:", "s0:0", "s0:70000", ":1", "fd00::1:7333", "unix:"}) {
    EXPECT_FALSE(parse_endpoint(text)) << text;
  }
}

TEST(Targets, AFileHasAnEndpointALineWithANameIfItLikes) {
  const auto targets =
      parse_proxies("# ours\n\ns0:7333 first\n  s1:7333   # no name\n/run/vpfs/s2.sock\n", "f");
  ASSERT_TRUE(targets);
  EXPECT_THAT(*targets, ElementsAre(Target{"first", "s0:7333"}, Target{"s1:7333", "s1:7333"},
                                    Target{"s2", "unix:/run/vpfs/s2.sock"}));
}

TEST(Targets, ABadLineIsSaidWithItsNumber) {
  EXPECT_THAT(parse_proxies("s0:7333\ns1\n", "/etc/vpfs/proxies").error().message,
              HasSubstr("/etc/vpfs/proxies:2: \"s1\" is not an endpoint"));
  EXPECT_THAT(parse_proxies("s0:7333 a b\n", "f").error().message, HasSubstr("f:1: \"b\""));
  EXPECT_THAT(parse_proxies("s0:7333\n#\ns0:7333 x", "f").error().message,
              HasSubstr("f:3: the same proxy or name as in line 1"));
}

TEST(Targets, OptionsGoBeforeTheEnvironment) {
  const auto chosen =
      choose_targets({.proxies = {"/a", "s0:1", "/a"}, .environment = "s9:9"}, host(""));
  ASSERT_TRUE(chosen);
  EXPECT_THAT(chosen->targets, ElementsAre(Target{"a", "unix:/a"}, Target{"s0:1", "s0:1"}));
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

TEST(Targets, SocketsOfOneNameAreToldApartByTheirPaths) {
  const auto chosen = choose_targets({.proxies = {"/a/proxy.sock", "/b/proxy.sock"}}, host(""));
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->targets[0].name, "unix:/a/proxy.sock");
}

TEST(Targets, WithoutAWordItIsTheUsualSocket) {
  for (const auto& places : {host(""), host("", {"/run/vpfs/a.sock", "/run/vpfs/proxy.sock"})}) {
    const auto chosen = choose_targets({}, places);
    ASSERT_TRUE(chosen);
    EXPECT_THAT(chosen->targets, ElementsAre(Target{"proxy", "unix:/run/vpfs/proxy.sock"}));
    EXPECT_EQ(chosen->note, "");
  }
}

TEST(Targets, WithoutTheUsualSocketItIsEveryOtherAndSaysSo) {
  const auto chosen = choose_targets({}, host("", {"/run/vpfs/s0.sock", "/run/vpfs/s1.sock"}));
  ASSERT_TRUE(chosen);
  EXPECT_THAT(chosen->targets, ElementsAre(Target{"s0", "unix:/run/vpfs/s0.sock"},
                                           Target{"s1", "unix:/run/vpfs/s1.sock"}));
  EXPECT_THAT(chosen->note, HasSubstr("using /run/vpfs/s0.sock, /run/vpfs/s1.sock"));
}

}  // namespace
}  // namespace vpfs::ctl
