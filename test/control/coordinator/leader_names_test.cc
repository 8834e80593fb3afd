// A leader whose rules have names, and a name service that is slow.

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <gmock/gmock.h>

#include "base/system_clock.h"
#include "control/coordinator/config/config.h"
#include "control/coordinator/coordinator.h"
#include "control/wire/client.h"
#include "stage/book/record.h"
#include "stage/rules/names.h"
#include "test/support/control/scripted_store.h"
#include "test/support/process.h"

namespace vpfs::coordinator {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Knows "h1" alone, and takes its time.
class SlowNames final : public stage::Names {
 public:
  [[nodiscard]] std::optional<std::uint32_t> user(const std::string&) const override { return {}; }
  [[nodiscard]] std::optional<std::uint32_t> group(const std::string&) const override { return {}; }
  [[nodiscard]] std::vector<std::string> addresses(const std::string& host) const override {
    ++asked_;
    std::this_thread::sleep_for(kTakes);
    return host == "h1" ? std::vector<std::string>{"10.0.0.1"} : std::vector<std::string>();
  }
  [[nodiscard]] int asked() const { return asked_; }

  static constexpr auto kTakes = 500ms;

 private:
  mutable std::atomic<int> asked_ = 0;
};

std::string start_record(const std::string& name, const std::string& condition,
                         std::uint64_t number) {
  const stage::BookOperation start = {
      .at = wall_clock_now(),
      .who = "ops",
      .what =
          stage::StartRule{.rule = {.name = name, .condition = condition, .words = {"weight=2"}}}};
  return stage::to_record(start, number).value();
}

TEST(LeaderNames, NoNameIsLookedUpBeforeTheOfficeBegins) {
  const test::TemporaryDirectory folder;
  const std::string place = folder.path().string();
  ConfigErrors errors("c.yaml");
  const Config config = parse_config("{name: main, policy: total, journal: " + place +
                                         "/journal, stages: {dial: [{address: " + place +
                                         "/a.sock}]}, control: {socket: " + place + "/c.sock}}",
                                     errors);
  ASSERT_THAT(errors.lines(), IsEmpty());
  control::StateStore::Loaded records;
  records.records.push_back({.text = start_record("known", "client=h1", 1), .place = "journal:1"});
  records.records.push_back({.text = start_record("gone", "client=h2", 2), .place = "journal:2"});
  const SlowNames databases;
  const SystemClock clock;
  const Coordinator::Options options;
  test::ScriptedStore::State state;
  control::StoreThread store(std::make_unique<test::ScriptedStore>(state));
  asio::io_context context{1};
  control::StoreCaller caller(
      store, [&](std::function<void()> what) { asio::post(context, std::move(what)); });

  const auto began = std::chrono::steady_clock::now();
  auto coordinator = Coordinator::make({.context = context,
                                        .clock = clock,
                                        .config = config,
                                        .options = options,
                                        .term = 1,
                                        .incarnation = 7,
                                        .clear_from = clock.now(),
                                        .records = records,
                                        .store = caller,
                                        .over = [](const std::string&) {},
                                        .store_problem = [] { return std::string(); },
                                        .databases = &databases});
  ASSERT_TRUE(coordinator) << coordinator.error().message;
  EXPECT_EQ(databases.asked(), 0) << "its office has to wait";
  (*coordinator)->start();
  std::thread thread([&] {
    const auto guard = asio::make_work_guard(context);
    context.run();
  });

  control::Envelope list;
  list.mutable_rule()->set_action(control::Rule::LIST);
  std::vector<std::string> problems;
  for (bool is_first = true; problems.size() < 2; is_first = false) {
    auto client = control::PortClient::connect({.path = folder.path() / "c.sock", .host = ""}, {});
    ASSERT_TRUE(client);
    const auto reply = client->ask(list, 10s);
    ASSERT_TRUE(reply) << reply.error().error.text();
    if (is_first) {
      EXPECT_LT(std::chrono::steady_clock::now() - began, SlowNames::kTakes);
    }
    ASSERT_EQ(reply->rule_reply().rules_size(), 2);
    if (std::chrono::steady_clock::now() - began > 10s) break;
    if (reply->rule_reply().rules(1).problem().empty()) {
      std::this_thread::sleep_for(10ms);
      continue;
    }
    for (const auto& each : reply->rule_reply().rules()) problems.push_back(each.problem());
  }
  ASSERT_EQ(problems.size(), 2U) << "the names were never looked up";
  EXPECT_EQ(problems[0], "");
  EXPECT_THAT(problems[1], HasSubstr("h2"));
  EXPECT_EQ(databases.asked(), 2);
  asio::post(context, [&] {
    caller.end();
    (*coordinator)->stop();
    context.stop();
  });
  thread.join();
}

}  // namespace
}  // namespace vpfs::coordinator
