// A gate whose threads run whatever they release, as those of a mount do. The way with inboxes is
// in test/proxy/dispatcher_test.cc.
#include "control/gate/stage_gate.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "test/control/gate/quiet_gate.h"
#include "test/support/start_time.h"

namespace vpfs::control {
namespace {

using namespace std::chrono_literals;
using stage::Held;
using stage::Stage;
using test::kStart;

stage::Config config_of_depth(std::uint32_t depth) {
  stage::Config config;
  config.scheduler.depth.requests = depth;
  config.virtual_pfs = {{.name = "a", .share = {.weight = 2}},
                        {.name = "b", .share = {}},
                        {.name = "job-{jobid}", .share = {}}};
  config.idle = 60s;
  return config;
}

// What one call of act() let go, all of it taken over.
std::vector<Held*> taken(Stage& stage, TimePoint now) {
  std::vector<Held*> let_go;
  (void)stage.release(now, let_go);
  for (Held* each : let_go) Stage::took_over(*each);
  return let_go;
}
std::vector<Held*> arrive(StageGate& gate, Held& io, std::uint32_t app, TimePoint now) {
  std::vector<Held*> let_go;
  gate.act(now, [&](Stage& stage, TimePoint at) {
    io.app = AppId{app};
    io.size = io.asked = {1000};
    io.cost = 1000;
    io.arrival = at;
    stage.arrive(io, at);
    let_go = taken(stage, at);
  });
  return let_go;
}
std::vector<Held*> end(StageGate& gate, Held& io, TimePoint now) {
  std::vector<Held*> let_go;
  gate.act(now, [&](Stage& stage, TimePoint at) {
    stage.end(io, {.moved = {1000}}, at);
    let_go = taken(stage, at);
  });
  return let_go;
}

TEST(StageGate, TheCallerThatEndsARequestGetsWhatThatReleases) {
  test::QuietGate gate(config_of_depth(1), kStart);
  Held first;
  Held second;
  EXPECT_EQ(arrive(gate, first, 1, kStart), (std::vector<Held*>{&first}));
  EXPECT_TRUE(arrive(gate, second, 2, kStart).empty());
  EXPECT_EQ(gate.queued(), 1U);
  EXPECT_EQ(end(gate, first, kStart + 1ms), (std::vector<Held*>{&second}));
  EXPECT_EQ(second.state, Held::State::outstanding);
  EXPECT_TRUE(end(gate, second, kStart + 2ms).empty());
  EXPECT_EQ(gate.outstanding() + gate.queued(), 0U);
  EXPECT_EQ(gate.asked(), 0U) << "requests wake no thread: the caller gets what may go";
}

TEST(StageGate, AChangeFromOutsideAsksTheOwnerToLookAgain) {
  test::QuietGate gate(config_of_depth(1), kStart);
  gate.reconfigure(config_of_depth(2), kStart);
  EXPECT_EQ(gate.asked(), 1U);
  gate.bypass(true, kStart);
  EXPECT_TRUE(gate.bypassed());
  EXPECT_EQ(gate.asked(), 2U);
  EXPECT_EQ(gate.allocate({.epoch = {.term = 1, .sequence = 1}, .lease = 1s}, {}, kStart).result,
            stage::CycleResult::applied);
  EXPECT_EQ(gate.asked(), 3U);
  EXPECT_EQ(gate.allocate({.epoch = {.term = 1, .sequence = 1}, .lease = 1s}, {}, kStart).result,
            stage::CycleResult::outdated);
  EXPECT_EQ(gate.asked(), 3U) << "nothing changed";
}

TEST(StageGate, TheTimeOfTheStageNeverGoesBack) {
  test::QuietGate gate(config_of_depth(1), kStart);
  gate.act(kStart + 2s, [](Stage&, TimePoint at) { EXPECT_EQ(at, kStart + 2s); });
  gate.act(kStart + 1s, [](Stage&, TimePoint at) { EXPECT_EQ(at, kStart + 2s); });
}

// Its owner looks a virtual PFS up and brings the request within one act(): no caller keeps a
// number.
TEST(StageGate, AnOwnerThatKeepsNoNumbersHasIdleVirtualPfsesRetiredAtTheNextCall) {
  test::QuietGate gate(config_of_depth(1), kStart);
  const stage::Place place =
      gate.find({.virtual_pfs = "job-7", .declared_name = "job-{jobid}"}, kStart);
  const auto is_there = [&] {
    bool is = false;
    gate.inspect(kStart,
                 [&](Stage& stage, TimePoint) { is = stage.virtual_pfs().is_there(place.id); });
    return is;
  };
  gate.retire_idle(kStart + 59s);
  gate.retire_idle(kStart + 59s);
  EXPECT_TRUE(is_there());
  gate.retire_idle(kStart + 61s);
  EXPECT_TRUE(is_there()) << "found to be idle, and a thread may be about to use it";
  gate.retire_idle(kStart + 62s);
  EXPECT_FALSE(is_there());
}

TEST(StageGate, AllCountersAreCopied) {
  test::QuietGate gate(config_of_depth(4), kStart);
  Held io;
  (void)arrive(gate, io, 2, kStart);
  (void)end(gate, io, kStart);
  std::vector<stage::CounterRow> rows;
  gate.copy_counters(kStart + 1s, rows);
  ASSERT_GT(rows.size(), 2U);
  EXPECT_EQ(rows[1].counters.done.all().requests, 0U);
  EXPECT_EQ(rows[2].counters.done.all().requests, 1U);
  gate.inspect(kStart + 1s, [](Stage& stage, TimePoint at) {
    EXPECT_EQ(at, kStart + 1s);
    EXPECT_EQ(stage.outstanding(), 0U);
  });
}

// A request of a thread that waits until another one has released it.
struct Waiting : Held {
  bool goes = false;
};

TEST(StageGate, ThreadsThatWaitForTheirTurnAllGetItAndNeverMoreThanTheDepthAtOnce) {
  constexpr std::uint32_t kDepth = 2;
  constexpr int kThreads = 6;
  constexpr int kEach = 200;
  test::QuietGate gate(config_of_depth(kDepth), kStart);
  std::mutex mutex;  // guards Waiting::goes
  std::condition_variable released;
  std::atomic<std::uint32_t> inside = 0;
  std::atomic<std::uint32_t> most = 0;
  const auto let = [&](const std::vector<Held*>& all) {
    const std::lock_guard lock(mutex);
    for (Held* each : all) static_cast<Waiting*>(each)->goes = true;
    released.notify_all();
  };
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, app = static_cast<std::uint32_t>(1 + thread % 2)] {
        for (int i = 0; i < kEach; ++i) {
          Waiting io;
          let(arrive(gate, io, app, kStart));
          {
            std::unique_lock lock(mutex);
            released.wait(lock, [&] { return io.goes; });
          }
          const std::uint32_t now_inside = ++inside;
          std::uint32_t before = most;
          while (before < now_inside && !most.compare_exchange_weak(before, now_inside)) {
          }
          --inside;
          let(end(gate, io, kStart));
        }
      });
    }
  }
  EXPECT_LE(most, kDepth);
  EXPECT_EQ(gate.outstanding() + gate.queued(), 0U);
}

}  // namespace
}  // namespace vpfs::control
