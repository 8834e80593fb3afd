// What names of virtual PFSes may cost if requests invent them.

#include <algorithm>
#include <chrono>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/units.h"
#include "test/support/io_messages.h"
#include "test/support/places.h"
#include "test/support/proxy_process.h"

namespace vpfs::test {
namespace {

// Memory per virtual PFS, status included, as docs/admin/sizing.md states it.
constexpr std::size_t kStatedSize = 12 * 1024;

class ProxyNames : public ::testing::Test {
 protected:
  [[nodiscard]] ProxySettings settings(const std::string& limits) const {
    return {.upstream = server_.port(),
            .depth = 1000,
            .limits = limits,
            .virtual_pfs = "'job-{jobid}': {weight: 1}",
            .rules = "[{match: {hint: {jobid: '*'}}, virtual_pfs: 'job-{jobid}'}]"};
  }

  // Serves an empty I/O for each of the jobs job(0) to job(count - 1).
  template <typename MakeJob>
  static void ask(ProxiedLink& link, int count, const MakeJob& job) {
    constexpr int kAtOnce = 50;
    for (int first = 0; first < count; first += kAtOnce) {
      Buffer requests;
      Buffer answers;
      const int end = std::min(first + kAtOnce, count);
      for (int i = first; i < end; ++i) {
        const auto tag = static_cast<orangefs::Tag>(i + 1);
        const Buffer request = io_request(tag, {.job = job(i)});
        requests.insert(requests.end(), request.begin(), request.end());
        const Buffer answer = io_response(tag, 0);
        answers.insert(answers.end(), answer.begin(), answer.end());
      }
      ASSERT_TRUE(link.client.send(requests));
      for (int i = first; i < end; ++i) ASSERT_TRUE(link.server.receive());
      ASSERT_TRUE(link.server.send(answers));
      for (int i = first; i < end; ++i) ASSERT_TRUE(link.client.receive());
    }
  }

  FakeDataServer server_;
};

std::string long_name(int number) {
  return fmt::format("{}-{}", number, std::string(15'000, 'x'));
}

TEST_F(ProxyNames, AFloodOfLongOnesIsDefaultsAndTakesNoMemory) {
  constexpr int kNames = 12'000;
  ProxyProcess proxy(settings("virtual_pfs: 10000"));
  ProxiedLink link = open_link(proxy, server_);
  ask(link, 100, long_name);
  const std::size_t before = proxy.own_memory();
  ask(link, kNames, long_name);
  ASSERT_TRUE(proxy.wait_for_outstanding(0));
  const nlohmann::json now = proxy.status();
  EXPECT_EQ(now["virtual_pfs"].size(), 1U) << "only default";
  EXPECT_EQ(now["virtual_pfs"][0]["done_requests"], kNames + 100);
  EXPECT_EQ(now["counters"]["names_refused"], kNames + 100);
  EXPECT_EQ(now["virtual_pfs_refused"], 0) << "they use up no row either";
  EXPECT_LT(now.dump(2).size(), 8U * 1024) << "the status file must stay small";
  if (!programs_have_sanitizer())
    EXPECT_LT(proxy.own_memory(), before + 4 * kMiB)
        << "the names have " << kNames * 15'000 / kMiB << " MiB";
  EXPECT_EQ(proxy.lines_with("give no valid name for a virtual PFS"), 1U);
  EXPECT_EQ(proxy.lines_with("xxxxxxxx"), 0U) << "the log shows none of the names";
}

// A connection remembers which rule its hints matched. Long hints must not be kept there.
TEST_F(ProxyNames, NoConnectionKeepsLongHintsThatRulesLookAt) {
  constexpr int kLinks = 40;
  constexpr int kHints = 64;
  ProxySettings looking = settings("virtual_pfs: 10");
  looking.virtual_pfs = "jobs: {weight: 1}";
  looking.rules = "[{match: {hint: {jobid: '*'}}, virtual_pfs: jobs}]";
  ProxyProcess proxy(looking);
  std::vector<ProxiedLink> links;
  for (int i = 0; i < kLinks; ++i) {
    links.push_back(open_link(proxy, server_));
    // One hint of each size first, so that the buffers are allocated.
    ask(links.back(), 1, [](int) { return std::string(15'000, 'x'); });
    ask(links.back(), kHints, [](int number) { return fmt::format("{:0>120}", number); });
  }
  const std::size_t before = proxy.own_memory();
  for (ProxiedLink& link : links) ask(link, kHints, long_name);
  ASSERT_TRUE(proxy.wait_for_outstanding(0));
  const nlohmann::json now = proxy.status();
  EXPECT_EQ(now["virtual_pfs"][1]["done_requests"], kLinks * (2 * kHints + 1));
  EXPECT_EQ(now["counters"]["names_refused"], 0) << "no virtual PFS is named after them";
  const std::size_t after = proxy.own_memory();
  std::cout << (after - std::min(before, after)) / kMiB << " MiB more\n";
  if (!programs_have_sanitizer())
    EXPECT_LT(after, before + 12 * kMiB)
        << "the hints have " << kLinks * kHints * 15'000 / kMiB << " MiB";
}

TEST_F(ProxyNames, OnlyPrintableTextOfUpTo128BytesMakesOne) {
  ProxyProcess proxy(settings("virtual_pfs: 10"));
  ProxiedLink link = open_link(proxy, server_);
  const std::vector<std::string> jobs = {
      std::string(128 - 4, 'a'), std::string(129 - 4, 'a'), "line\nbreak", "\x1b[31mred",
      "gr\xc3\xbc\xc3\x9f",      std::string("nul\0x", 5),  "a \"b\" \\ c"};
  ask(link, static_cast<int>(jobs.size()),
      [&](int i) { return jobs[static_cast<std::size_t>(i)]; });
  ASSERT_TRUE(proxy.wait_for_outstanding(0));
  const nlohmann::json now = proxy.status();
  ASSERT_EQ(now["virtual_pfs"].size(), 3U);
  EXPECT_EQ(now["virtual_pfs"][1]["name"], "job-" + jobs.front());
  EXPECT_EQ(now["virtual_pfs"][2]["name"], "job-" + jobs.back());
  EXPECT_EQ(now["virtual_pfs"][0]["done_requests"], 5);
  // A name counts each time that it is refused.
  ask(link, 3, [&](int) { return jobs[2]; });
  ASSERT_TRUE(proxy.wait_for_outstanding(0));
  EXPECT_EQ(proxy.status()["counters"]["names_refused"], 8);
}

TEST_F(ProxyNames, TenThousandTakeNoMoreThanTheGuideSays) {
  // With a sanitizer, the status of more names takes many seconds.
  const int names = programs_have_sanitizer() ? 2000 : 10'000;
  ProxyProcess proxy(settings(fmt::format("virtual_pfs: {}", names)));
  ProxiedLink link = open_link(proxy, server_);
  ask(link, 100, [](int) { return "one"; });
  (void)proxy.status();
  const std::size_t before = proxy.own_memory();
  const auto name = [](int i) { return fmt::format("{:0>120}", i); };
  ask(link, names, name);
  ask(link, names + 500, name);  // the same again, and 500 beyond the limit
  const nlohmann::json now = proxy.status();
  EXPECT_EQ(now["virtual_pfs"].size(), static_cast<std::size_t>(names) + 1);
  EXPECT_GE(now["virtual_pfs_refused"], 500);
  const std::size_t each = (proxy.own_memory() - before) / static_cast<std::size_t>(names);
  std::cout << each << " bytes for each virtual PFS\n";
  if (!programs_have_sanitizer()) EXPECT_LT(each, kStatedSize);
}

// Retired jobs free their rows for others, and their sums stay. A job that was refused for lack of
// a row gets its own virtual PFS as soon as one is free.
TEST_F(ProxyNames, JobsThatAreIdleMakePlaceForOthers) {
  constexpr int kPlaces = 20;
  ProxyProcess proxy(settings(fmt::format("virtual_pfs: {}, idle: 3 s", kPlaces)));
  ProxiedLink link = open_link(proxy, server_);
  const auto names = [&] {
    std::vector<std::string> found;
    for (const auto& row : proxy.status()["virtual_pfs"]) found.push_back(row["name"]);
    return found;
  };
  const auto has = [&](const std::string& name) {
    const std::vector<std::string> now = names();
    return std::ranges::find(now, name) != now.end();
  };
  ask(link, kPlaces, [](int i) { return fmt::format("old{}", i); });
  EXPECT_EQ(names().size(), kPlaces + 1U);
  ask(link, 1, [](int) { return "late"; });
  EXPECT_FALSE(has("job-late")) << "no row is free";
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(40);
  while (!has("job-late") && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ask(link, 1, [](int) { return "late"; });
  }
  EXPECT_TRUE(has("job-late"));
  while (has("job-old0") && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ask(link, 1, [](int) { return "late"; });
  }
  const nlohmann::json status = proxy.status();
  EXPECT_EQ(names(), (std::vector<std::string>{"default", "job-late"}));
  const nlohmann::json& retired = status["virtual_pfs"][0]["retired"];
  EXPECT_EQ(retired["virtual_pfs"], kPlaces);
  EXPECT_EQ(retired["done_requests"], kPlaces);
  ask(link, kPlaces, [](int i) { return fmt::format("new{}", i); });
  EXPECT_TRUE(has("job-new0"));
}

}  // namespace
}  // namespace vpfs::test
