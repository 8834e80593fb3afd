// What a proxy shows of a policy that vpfs does not know (RoundRobin).
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/system_clock.h"
#include "proxy/config/config_summary.h"
#include "proxy/status.h"
#include "stage/config/scheduler_config.h"
#include "stage/config/share_config.h"
#include "test/support/round_robin.h"

namespace vpfs::proxy {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class AddedPolicyTest : public ::testing::Test {
 protected:
  AddedPolicyTest() {
    config_.listen = config_.upstream = "127.0.0.1:1";
    config_.policies = policies_;
    ConfigErrors errors("f.yaml");
    {
      ConfigReader reader(
          "scheduler: {policy: round_robin, round_robin: {visit: 2, rest: 5 ms}}\n"
          "virtual_pfs: {a: {visit: 3}}\n",
          errors);
      stage::read_scheduler(reader.child("scheduler"), config_, nullptr);
      stage::read_shares(reader, config_);
    }
    EXPECT_EQ(errors.to_string(), "");
  }

  const std::vector<const PolicyKind*> policies_ = policies_with_round_robin();
  Config config_;
};

TEST_F(AddedPolicyTest, TheSummaryHasItsSettingsAndItsWord) {
  EXPECT_THAT(to_summary(config_), AllOf(HasSubstr("  a turn is 2 requests\n"),
                                         HasSubstr("    a        weight 1, visit 3\n")));
}

TEST_F(AddedPolicyTest, StatusHasItsFieldsWithTheirUnits) {
  TimePoint now = TimePoint{} + 10s;
  Dispatcher dispatcher(
      std::make_shared<const WorkerSettings>(config_), 1, [](std::size_t) {}, now);
  PendingIo io;
  const stage::VirtualPfsId id =
      dispatcher.find({.virtual_pfs = "a", .declared_name = "a"}, now).id;
  io.app = id.app;
  io.generation = id.generation;
  io.size = {1000};
  io.cost = 1000;
  Turn turn;
  io.arrival = now;
  turn.arrived.push_back(&io);
  std::vector<PendingIo*> released;
  (void)dispatcher.turn(0, turn, now, released);
  ASSERT_EQ(released.size(), 1U);

  const SystemClock clock;
  SharedState shared(clock, std::nullopt);
  control::SnapshotReader reader;
  const auto status = nlohmann::json::parse(
      status_text(WorkerSettings(config_), shared, {.snapshot = reader.read(dispatcher, now)}));
  EXPECT_EQ(status["policy"], "round_robin");
  EXPECT_EQ(status["rest_us"], 5000);
  EXPECT_EQ(status["order"], "in turn");
  const auto& rows = status["virtual_pfs"];
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[1]["name"], "a");
  EXPECT_EQ(rows[1]["visit"], 3);
  EXPECT_EQ(rows[1]["turns"], 1);
  EXPECT_EQ(rows[1]["longest_wait_us"], 0);
  EXPECT_EQ(rows[1]["waits_for_turn"], false);
  EXPECT_FALSE(rows[0].contains("visit"));
}

}  // namespace
}  // namespace vpfs::proxy
