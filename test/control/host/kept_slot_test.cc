// What an administrator is told of a request that waits because a slot is kept for another virtual
// PFS: in the status file, and by the control port.
#include <deque>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "control/admin/stats_reply.h"
#include "control/host/status.h"
#include "schedulers/policies/anticipation_settings.h"
#include "test/control/gate/quiet_gate.h"

namespace vpfs::control {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

// A data server that takes a millisecond for each request, one after the other. "thinker" has one
// request in flight and thinks for 400 us after each answer; "batch" has eight.
class KeptSlotTest : public ::testing::Test {
 protected:
  static constexpr Duration kStep = 50us;

  static stage::Config make_config() {
    stage::Config config;
    config.scheduler.depth.requests = 4;
    config.scheduler.own.set(AnticipationSettings{.on = true});
    config.virtual_pfs = {{.name = "thinker", .share = {.weight = 8}}, {.name = "batch"}};
    config.rules = {{.name = "thinker", .virtual_pfs = "thinker"},
                    {.name = "batch", .virtual_pfs = "batch"}};
    return config;
  }

  KeptSlotTest() {
    arrive("thinker", 0);
    for (int i = 0; i < 8; ++i) arrive("batch", 1);
  }
  void arrive(const std::string& name, std::uint32_t rule) {
    stage::Held& io = ios_.emplace_back();
    io.set_place(gate_.find({.virtual_pfs = name, .declared_name = name, .rule = rule}, now_,
                            config_.rules));
    arrive(io);
  }
  void arrive(stage::Held& io) {
    io.size = io.asked = {256 * kKiB};
    io.cost = 256 * kKiB;
    io.arrival = now_;
    gate_.act(now_, [&](stage::Stage& stage, TimePoint at) {
      stage.arrive(io, at);
      release(stage, at);
    });
  }
  void release(stage::Stage& stage, TimePoint at) {
    std::vector<stage::Held*> released;
    (void)stage.release(at, released);
    for (stage::Held* each : released) {
      stage::Stage::took_over(*each);
      at_server_.push_back(each);
    }
  }
  void step() {
    now_ += kStep;
    if (thinks_until_ <= now_) {
      thinks_until_ = kNever;
      arrive(ios_.front());
    }
    if (!at_server_.empty() && now_ >= busy_until_) {
      stage::Held& io = *at_server_.front();
      at_server_.pop_front();
      busy_until_ = now_ + 1ms;
      gate_.act(now_, [&](stage::Stage& stage, TimePoint at) {
        stage.end(io, {.moved = io.size}, at);
        release(stage, at);
      });
      &io == &ios_.front() ? void(thinks_until_ = now_ + 400us) : arrive(io);
    }
    gate_.act(now_, [&](stage::Stage& stage, TimePoint at) { release(stage, at); });
  }
  StageSnapshot snapshot() { return reader_.read(gate_, now_); }
  json status() {
    const StageSnapshot seen = snapshot();
    nlohmann::ordered_json status = {{"bypass", seen.bypass}};
    add_stage(status, config_, seen);
    return json::parse(to_text(status));
  }
  static json row_of(const json& status, const std::string& name) {
    for (const json& row : status["virtual_pfs"]) {
      if (row["name"] == name) return row;
    }
    return {};
  }

  TimePoint now_ = TimePoint(100s);
  const stage::Config config_ = make_config();
  test::QuietGate gate_{config_, now_};
  SnapshotReader reader_;
  std::deque<stage::Held> ios_;  // the first one is that of "thinker"
  std::deque<stage::Held*> at_server_;
  TimePoint busy_until_ = {};
  TimePoint thinks_until_ = kNever;
};

TEST_F(KeptSlotTest, StatusAndControlPortNameTheFlowThatTheSlotIsKeptFor) {
  int kept = 0;
  for (int i = 0; i < 200'000 && kept < 20; ++i) {
    step();
    if (i % 7 != 0) continue;
    const json seen = status();
    const json batch = row_of(seen, "batch");
    if (!batch.contains("oldest_waits_for")) continue;
    const std::string why = batch["oldest_waits_for"];
    EXPECT_FALSE(why.ends_with("for")) << why << " whom?";

    StatsReply reply;
    add_stage(reply, snapshot(), config_, WallTime{});
    for (const VirtualPfs& each : reply.virtual_pfs()) {
      if (each.name() == "batch") EXPECT_EQ(each.wait().reason(), why);
    }
    if (why != "a slot is kept for thinker") continue;
    ++kept;
    EXPECT_EQ(seen["expected_flows"], 1);
    EXPECT_LT(seen["outstanding"], 4);
    EXPECT_GT(row_of(seen, "thinker")["think_time_us"], 300);
    EXPECT_GE(seen["slots_kept_us"], row_of(seen, "thinker")["slots_kept_us"]);
  }
  EXPECT_EQ(kept, 20);
}

}  // namespace
}  // namespace vpfs::control
