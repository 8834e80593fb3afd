#include "fuse/layout/layout.h"

#include <map>
#include <set>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "fuse/layout/host_list.h"

namespace vpfs::fuse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<LayoutServer> servers(std::size_t count) {
  std::vector<LayoutServer> all;
  for (std::size_t i = 0; i < count; ++i) {
    all.push_back({.alias = fmt::format("s{}", i), .host = fmt::format("node{}.site.org", i)});
  }
  return all;
}

std::vector<std::size_t> chosen(const std::string& layout, const std::vector<LayoutServer>& all,
                                const Maker& maker = {}) {
  const Result<Layout> read = parse_layout(layout);
  EXPECT_TRUE(read) << read.error().message;
  return servers_for(read.value_or(Layout()), LayoutServers(all), maker);
}

TEST(Layout, IsReadAndWritten) {
  for (const char* const text :
       {"disperse", "affinity:3", "local", "internal", "external", "list:s1", "list:s2:s0"}) {
    const Result<Layout> layout = parse_layout(text);
    ASSERT_TRUE(layout) << text;
    EXPECT_EQ(to_text(*layout), text);
  }
}

TEST(Layout, ThatIsNoneIsNamed) {
  for (const char* const bad : {"", "dispers", "affinity", "affinity:", "affinity:0", "affinity:x",
                                "affinity:4097", "list", "list:", "list::a", "list:a:a"}) {
    const Result<Layout> layout = parse_layout(bad);
    ASSERT_FALSE(layout) << bad;
    EXPECT_THAT(layout.error().message, HasSubstr(fmt::format("'{}'", bad)));
  }
}

TEST(Layout, AMistakeIsNamedWithWhatIsExpected) {
  const auto error = [](const std::string& text) {
    const Result<Layout> layout = parse_layout(text);
    return layout ? "" : layout.error().message;
  };
  EXPECT_EQ(error("list:a::b"), "'list:a::b': name 2 is empty; expected list:NAME[:NAME...]");
  EXPECT_EQ(error("list:a:b:a"), "'list:a:b:a': 'a' is named twice; expected list:NAME[:NAME...]");
  EXPECT_EQ(error("affinity:x"), "'affinity:x': expected affinity:K with K from 1 to 4096");
  EXPECT_EQ(error("near"),
            "'near' is not a layout; expected disperse, affinity:K, local, internal, external or "
            "list:NAME[:NAME...]");
  EXPECT_LT(error("list:" + std::string(60'000, ':')).size(), 200U);
}

// Users write lists, as extended attributes of up to 64 KiB.
TEST(Layout, AListHasABound) {
  std::string text = "list";
  for (int i = 0; i < 4096; ++i) text += fmt::format(":{}", i);
  EXPECT_TRUE(parse_layout(text));
  const Result<Layout> more = parse_layout(text + ":x");
  ASSERT_FALSE(more);
  EXPECT_THAT(more.error().message,
              HasSubstr("more than 4096 names; expected list:NAME[:NAME...]"));
}

TEST(Layout, AListIsTheServersThatItNames) {
  EXPECT_THAT(chosen("list:s2:s0", servers(4)), ElementsAre(2, 0));
  const LayoutServers all(servers(2));
  EXPECT_TRUE(check_layout(*parse_layout("list:s1:s0"), all));
  const Result<void> bad = check_layout(*parse_layout("list:s1:s2"), all);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().message, "no data server is called 's2'; there are s0, s1");
  const Result<void> many = check_layout(*parse_layout("list:x"), LayoutServers(servers(1000)));
  ASSERT_FALSE(many);
  EXPECT_LT(many.error().message.size(), 200U);
}

TEST(Layout, LocalIsOnThisNode) {
  auto all = servers(3);
  EXPECT_THAT(chosen("local", all), IsEmpty());
  all[1].is_local = true;
  EXPECT_THAT(chosen("local", all), ElementsAre(1));
}

TEST(Layout, InternalAndExternalPartTheServersByTheJobsNodes) {
  const auto all = servers(4);
  const auto on = LayoutServers(all).on_nodes("node1,node3.site.org,node77");
  ASSERT_TRUE(on);
  EXPECT_THAT(chosen("internal", all, {.key = "", .job_servers = &*on}), ElementsAre(1, 3));
  EXPECT_THAT(chosen("external", all, {.key = "", .job_servers = &*on}), ElementsAre(0, 2));
  EXPECT_THAT(chosen("internal", all), IsEmpty());
  EXPECT_THAT(chosen("external", all), IsEmpty());
}

TEST(LayoutServers, AreFoundByTheirNames) {
  const LayoutServers all(servers(3));
  EXPECT_EQ(all.index_of("s2"), 2U);
  EXPECT_EQ(all.index_of("s3"), std::nullopt);
  EXPECT_EQ(all.index_of("node2.site.org"), std::nullopt) << "an alias names a server";
}

// The index answers what a comparison of each node with each server does.
TEST(LayoutServers, AreOnTheNodesThatHaveTheirNames) {
  const std::vector<std::string> names = {
      "n1",       "N1",        "n1.site.org", "n1.other.org", "n10",   "n2", "n2.site.org",
      "10.0.0.1", "10.0.0.10", "10",          "10.site",      ".site", "s1", "a.b.c"};
  std::vector<LayoutServer> all;
  for (const std::string& name : names) {
    all.push_back({.alias = fmt::format("s{}", all.size()), .host = name});
  }
  const LayoutServers servers(all);
  for (const std::string& node : names) {
    const auto on = servers.on_nodes(node);
    ASSERT_TRUE(on);
    for (std::size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ((*on)[i], is_same_host(all[i].host, node) || is_same_host(all[i].alias, node))
          << all[i].host << " and " << node;
    }
  }
  EXPECT_FALSE(servers.on_nodes("n1,,n2"));
}

TEST(Layout, AJobWithAffinityKeepsToItsServers) {
  const auto all = servers(16);
  const auto first = chosen("affinity:4", all, {.key = "job-17"});
  EXPECT_EQ(first.size(), 4U);
  EXPECT_EQ(std::set(first.begin(), first.end()).size(), 4U);
  EXPECT_EQ(chosen("affinity:4", all, {.key = "job-17"}), first);
  EXPECT_NE(chosen("affinity:4", all, {.key = "job-18"}), first);
  // More than there are: all of them.
  EXPECT_EQ(chosen("affinity:99", all, {.key = "x"}).size(), 16U);
}

TEST(Layout, JobsWithAffinitySpreadOverTheServers) {
  const auto all = servers(8);
  std::map<std::size_t, int> files;
  constexpr int kJobs = 4000;
  for (int job = 0; job < kJobs; ++job) {
    for (const std::size_t server : chosen("affinity:2", all, {.key = std::to_string(job)})) {
      ++files[server];
    }
  }
  // Eight places with a fair share of 1,000 each; five standard deviations are 130.
  for (const auto& [server, count] : files) EXPECT_NEAR(count, kJobs * 2 / 8, 130) << server;
}

TEST(Layout, AServerThatComesTakesAtMostOnePlaceOfAJob) {
  const auto before = servers(8);
  const auto after = servers(9);
  int moved = 0;
  for (int job = 0; job < 1000; ++job) {
    const std::string key = std::to_string(job);
    const auto old = chosen("affinity:3", before, {.key = key});
    const auto now = chosen("affinity:3", after, {.key = key});
    std::set<std::size_t> kept(old.begin(), old.end());
    int same = 0;
    for (const std::size_t each : now) same += kept.contains(each) ? 1 : 0;
    EXPECT_GE(same, 2);
    moved += 3 - same;
  }
  EXPECT_NEAR(moved, 333, 80);  // three of nine places are the new server's, on average
}

}  // namespace
}  // namespace vpfs::fuse
