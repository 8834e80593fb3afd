// A coordinator, two aggregators below it, and two proxies below each of them. Programs are killed
// and started again; I/O goes on and every block is verified.

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/integration/control/coordinator_site.h"
#include "test/support/comes_true.h"
#include "test/tools/vpfsctl/proxies.h"

namespace vpfs::test {
namespace {

using ::testing::HasSubstr;
using ::testing::TestWithParam;
using Json = nlohmann::json;

constexpr std::size_t kProxies = 4;
constexpr std::array<std::size_t, kProxies> kAll = {0, 1, 2, 3};
constexpr std::array<std::size_t, 2> kFirst = {0, 1};   // below agg0
constexpr std::array<std::size_t, 2> kSecond = {2, 3};  // below agg1
constexpr unsigned kDevice = 8;                         // MiB/s of each server
constexpr std::uint64_t kCapacity = std::uint64_t{6} << 20;
// No machine is so slow that a lease ends, or a stage is given up, while its coordinator lives.
constexpr const char* kRootTimes =
    "period: 100 ms\ndeadline: 90 ms\nlease: 6 s\ntransit: 200 ms\nsilent_cycles: 600\n";
constexpr const char* kAggregatorTimes =
    "period: 100 ms\ndeadline: 40 ms\nlease: 2500 ms\ntransit: 200 ms\nsilent_cycles: 600\n";
constexpr auto kLongWait = 60s;

// The parameter: the policy of all three.
class CoordinatorTree : public TestWithParam<const char*> {
 protected:
  static bool comes_true(const std::function<bool()>& holds) {
    return test::comes_true(holds, kLongWait);
  }
  template <typename Proxies>
  static bool of_each(const Proxies& proxies, const std::function<bool(std::size_t)>& holds) {
    return comes_true([&] { return std::ranges::all_of(proxies, holds); });
  }

  void SetUp() override {
    root_.start();
    for (CoordinatorProcess& each : aggregators_) each.start();
    load_.emplace(site_.load(kBothJobs));
    ASSERT_TRUE(load_->wait_until_begun()) << load_->text();
    ASSERT_TRUE(is_led(kAll, 1));
    expect_whole();
  }
  void TearDown() override {
    if (!load_) return;  // SetUp() has failed
    load_->expect_good_stop();
    for (CoordinatorProcess& each : aggregators_) each.stop();
    root_.stop();
  }

  [[nodiscard]] bool has_limits() const { return std::string(GetParam()) == "psfa"; }
  [[nodiscard]] std::string socket(const std::string& name) const { return site_.folder() / name; }
  [[nodiscard]] CoordinatorProcess aggregator(std::size_t number) const {
    const std::size_t first = 2 * number;
    return site_.coordinator(
        fmt::format("agg{}", number),
        fmt::format("policy: {}\n{}control: {{socket: {}}}\nparent: {{address: {}}}\nstages:\n"
                    "  dial: [{{name: ds{}, address: {}}}, {{name: ds{}, address: {}}}]\n",
                    GetParam(), kAggregatorTimes, socket(fmt::format("agg{}.sock", number)),
                    socket("stages.sock"), first, site_.socket(first), first + 1,
                    site_.socket(first + 1)));
  }

  // vpfsctl for a coordinator.
  [[nodiscard]] Outcome ctl(const std::string& name, std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--coordinator", socket(name + ".sock")});
    return vpfsctl(std::move(arguments));
  }
  // The command must succeed at the root.
  void run(const std::vector<std::string>& arguments) const {
    const Outcome outcome = ctl("root", arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.output << outcome.errors;
  }
  [[nodiscard]] Json root_status() const {
    const auto json = Json::parse(ctl("root", {"--json", "status"}).output, nullptr, false);
    return json.is_discarded() ? Json() : json["proxies"][0]["data"];
  }
  // Waits until the root has both aggregators, and both jobs through each of them.
  void expect_whole() {
    Json status;
    const bool is_whole = comes_true([&] {
      status = root_status();
      if (!status.is_object()) return false;
      std::size_t aggregators = 0;
      for (const Json& each : status["stages"]) {
        if (each["aggregator"] == true && each["connected"] == true) ++aggregators;
      }
      std::size_t jobs = 0;
      for (const Json& each : status["jobs"]) {
        const bool is_of_load = each["name"] == "a" || each["name"] == "b";
        if (is_of_load && each["stages"] == aggregators_.size()) ++jobs;
      }
      return aggregators == aggregators_.size() && jobs == 2;
    });
    EXPECT_TRUE(is_whole) << status.dump(1);
  }

  template <typename Proxies>
  [[nodiscard]] bool is_led(const Proxies& proxies, std::uint64_t term) {
    return of_each(proxies, [&](std::size_t i) { return site_.is_led(i, term); });
  }
  template <typename Proxies>
  [[nodiscard]] bool is_alone(const Proxies& proxies) {
    return of_each(proxies,
                   [&](std::size_t i) { return !site_.coordinated(i).contains("lease_us_left"); });
  }
  [[nodiscard]] bool had_a_leader_always(std::size_t proxy) {
    return site_.coordinated(proxy)["leases_ended"] == 0;
  }
  // What the kind of names ("rule" or "job") has at a proxy.
  [[nodiscard]] bool has(std::size_t proxy, const std::string& kind, const std::string& name) {
    const Outcome outcome = vpfsctl({"--json", kind, "list", "--proxy", site_.socket(proxy)});
    const auto json = Json::parse(outcome.output, nullptr, false);
    if (json.is_discarded()) return false;
    for (const Json& each : json["proxies"][0]["data"][kind + "s"]) {
      if (each[kind == "job" ? "jobid" : "name"] == name) return each["origin"] == "coordinator";
    }
    return false;
  }
  template <typename Proxies>
  [[nodiscard]] bool have(const Proxies& proxies, const std::string& kind,
                          const std::string& name) {
    return of_each(proxies, [&](std::size_t i) { return has(i, kind, name); });
  }
  [[nodiscard]] bool nobody_has(const std::string& kind, const std::string& name) {
    return of_each(kAll, [&](std::size_t i) { return !has(i, kind, name); });
  }

  // Waits until all proxies have done more for these jobs.
  void expect_progress(const std::vector<std::string>& jobs) {
    for (const std::string& job : jobs) {
      std::array<std::uint64_t, kProxies> before{};
      for (const std::size_t i : kAll) before[i] = site_.done(i, job);
      EXPECT_TRUE(of_each(kAll, [&](std::size_t i) { return site_.done(i, job) > before[i]; }))
          << job;
    }
  }
  // Limits of the root at the proxies, all together; a proxy without any: nothing.
  [[nodiscard]] std::optional<std::uint64_t> limits() {
    std::uint64_t sum = 0;
    for (const std::size_t i : kAll) {
      const Json status = site_.proxy(i).status();
      std::uint64_t own = 0;
      for (const Json& each : status["virtual_pfs"]) {
        own += each.value("allocated_rate", std::uint64_t{0});
      }
      if (own == 0) return std::nullopt;
      sum += own;
    }
    return sum;
  }
  [[nodiscard]] bool has_no_limit(std::size_t proxy) {
    const Json status = site_.proxy(proxy).status();
    return std::ranges::none_of(status["virtual_pfs"],
                                [](const Json& each) { return each.contains("allocated_rate"); });
  }
  // Only the root knows the capacity: limits come through the tree. Those of two proxies are not
  // of the same moment, so that a change between them may make one sum too large.
  void expect_limits() {
    if (!has_limits()) return;
    EXPECT_TRUE(comes_true([&] {
      const auto sum = limits();
      return sum && *sum <= kCapacity;
    }));
  }

  CoordinatorSite site_{kProxies, kDevice};
  CoordinatorProcess root_ = site_.coordinator(
      "root",
      fmt::format(
          "policy: {}\n{}{}control: {{socket: {}}}\n"
          "stages: {{listen: {{socket: {}}}}}\n",
          GetParam(), kRootTimes,
          has_limits() ? fmt::format("capacity: {{bytes: {} MiB/s}}\n", kCapacity >> 20U) : "",
          socket("root.sock"), socket("stages.sock")));
  std::array<CoordinatorProcess, 2> aggregators_ = {aggregator(0), aggregator(1)};
  std::optional<LoadRun> load_;
};

TEST_P(CoordinatorTree, ARuleAndAJobOfTheRootAreInForceAtEveryProxyUntilTheyEnd) {
  expect_limits();
  run({"rule", "start", "gold", "jobid=a", "weight=4"});
  EXPECT_TRUE(have(kAll, "rule", "gold"));
  expect_progress({"gold", "b"});
  run({"job", "start", "4711", "--nodes", "4", "--uid", "1000", "--clients", "127.0.0.9"});
  EXPECT_TRUE(have(kAll, "job", "4711"));
  const Outcome refused = ctl("agg0", {"rule", "start", "silver", "jobid=b"});
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.errors, HasSubstr("this is an aggregator"));
  run({"job", "stop", "4711"});
  EXPECT_TRUE(nobody_has("job", "4711"));
  run({"rule", "stop", "gold"});
  EXPECT_TRUE(nobody_has("rule", "gold"));
  expect_progress({"a", "b"});
  for (const std::size_t i : kAll) EXPECT_TRUE(had_a_leader_always(i)) << i;
}

TEST_P(CoordinatorTree, AnAggregatorsDeathLeavesItsProxiesAloneAndTheOthersLed) {
  aggregators_[0].kill();
  expect_progress({"a", "b"});
  EXPECT_TRUE(is_alone(kFirst));
  expect_progress({"a", "b"});
  for (const std::size_t i : kFirst) EXPECT_TRUE(has_no_limit(i)) << i;
  run({"rule", "start", "gold", "jobid=a", "weight=4"});
  EXPECT_TRUE(have(kSecond, "rule", "gold"));
  for (const std::size_t i : kFirst) EXPECT_FALSE(has(i, "rule", "gold")) << i;
  aggregators_[0].start();
  EXPECT_EQ(aggregators_[0].term(), 2U);
  EXPECT_TRUE(is_led(kFirst, 2));
  EXPECT_TRUE(have(kFirst, "rule", "gold"));
  run({"rule", "stop", "gold"});
  EXPECT_TRUE(nobody_has("rule", "gold"));
  expect_whole();
  expect_limits();
  expect_progress({"a", "b"});
  EXPECT_TRUE(is_led(kSecond, 1));
  for (const std::size_t i : kSecond) EXPECT_TRUE(had_a_leader_always(i)) << i;
}

TEST_P(CoordinatorTree, TheRootsDeathLeavesEachAggregatorToLeadItsOwnProxies) {
  run({"rule", "start", "gold", "jobid=a", "weight=4"});
  EXPECT_TRUE(have(kAll, "rule", "gold"));
  expect_limits();
  root_.kill();
  expect_progress({"gold", "b"});
  for (CoordinatorProcess& each : aggregators_) {
    EXPECT_TRUE(each.logs("its lease has ended: going on alone")) << each.process().errors();
  }
  // They lead without what only the root can know.
  EXPECT_TRUE(is_led(kAll, 1));
  EXPECT_TRUE(of_each(kAll, [&](std::size_t i) { return has_no_limit(i); }));
  EXPECT_TRUE(is_led(kAll, 1));
  EXPECT_TRUE(have(kAll, "rule", "gold"));
  expect_progress({"gold", "b"});
  root_.start();
  EXPECT_EQ(root_.term(), 2U);
  EXPECT_TRUE(have(kAll, "rule", "gold"));
  run({"rule", "stop", "gold"});
  EXPECT_TRUE(nobody_has("rule", "gold"));
  expect_whole();
  expect_limits();
  EXPECT_TRUE(is_led(kAll, 1));
  expect_progress({"a", "b"});
}

INSTANTIATE_TEST_SUITE_P(Policies, CoordinatorTree, ::testing::Values("total", "psfa"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace vpfs::test
