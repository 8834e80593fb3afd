// A leader whose rules have names, and a name service that is slow.

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
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
#include "test/support/comes_true.h"
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

class LeaderNames : public ::testing::Test {
 protected:
  LeaderNames() {
    ConfigErrors errors("c.yaml");
    const std::string place = folder_.path().string();
    config_ = parse_config("{name: main, policy: total, journal: " + place +
                               "/journal, stages: {dial: [{address: " + place +
                               "/a.sock}]}, control: {socket: " + place + "/c.sock}}",
                           errors);
    EXPECT_THAT(errors.lines(), IsEmpty());
  }
  ~LeaderNames() override {
    asio::post(context_, [this] {
      caller_.end();
      coordinator_->stop();
      context_.stop();
    });
    if (thread_.joinable()) thread_.join();
  }

  void make(const stage::Names& databases) {
    auto made = Coordinator::make({.context = context_,
                                   .clock = clock_,
                                   .config = config_,
                                   .options = options_,
                                   .term = 1,
                                   .incarnation = 7,
                                   .clear_from = clock_.now(),
                                   .records = records_,
                                   .store = caller_,
                                   .over = [](const std::string&) {},
                                   .store_problem = [] { return std::string(); },
                                   .databases = &databases});
    ASSERT_TRUE(made) << made.error().message;
    coordinator_ = std::move(*made);
  }
  void run() {
    coordinator_->start();
    thread_ = std::thread([this] {
      const auto guard = asio::make_work_guard(context_);
      context_.run();
    });
  }
  // Why each rule is not in force; "": it is.
  [[nodiscard]] std::map<std::string, std::string> problems() {
    control::Envelope list;
    list.mutable_rule()->set_action(control::Rule::LIST);
    auto client = control::PortClient::connect({.path = folder_.path() / "c.sock", .host = ""}, {});
    EXPECT_TRUE(client);
    const auto reply = client->ask(list, 10s);
    EXPECT_TRUE(reply) << reply.error().error.text();
    std::map<std::string, std::string> all;
    for (const auto& each : reply->rule_reply().rules()) all[each.name()] = each.problem();
    return all;
  }

  test::TemporaryDirectory folder_;
  test::ScriptedStore::State state_;
  control::StoreThread store_{std::make_unique<test::ScriptedStore>(state_)};
  SystemClock clock_;
  Config config_;
  const Coordinator::Options options_;
  control::StateStore::Loaded records_;
  asio::io_context context_{1};
  control::StoreCaller caller_{
      store_, [this](std::function<void()> what) { asio::post(context_, std::move(what)); }};
  std::unique_ptr<Coordinator> coordinator_;
  std::thread thread_;
};

TEST_F(LeaderNames, NoNameIsLookedUpBeforeTheOfficeBegins) {
  records_.records.push_back({.text = start_record("known", "client=h1", 1), .place = "j:1"});
  records_.records.push_back({.text = start_record("gone", "client=h2", 2), .place = "j:2"});
  const SlowNames databases;
  make(databases);
  EXPECT_EQ(databases.asked(), 0) << "its office has to wait";
  run();
  EXPECT_EQ(problems()["gone"], "") << "it cannot know yet";
  EXPECT_TRUE(test::comes_true([this] { return !problems()["gone"].empty(); }));
  EXPECT_THAT(problems()["gone"], HasSubstr("h2"));
  EXPECT_EQ(problems()["known"], "");
  EXPECT_EQ(databases.asked(), 2);
}

}  // namespace
}  // namespace vpfs::coordinator
