// AdapTBF that gives spare capacity to waiting requests.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "schedulers/policies/adaptbf.h"
#include "test/schedulers/capacities.h"
#include "test/support/simulation/job_simulation.h"

namespace vpfs {
namespace {

using namespace std::chrono_literals;

constexpr Cost kRequest = 256 * kKiB;

SchedulerSettings settings(std::uint64_t capacity, bool work_conserving) {
  SchedulerSettings made = {.depth = {.requests = 8}};
  made.own.of<AdapTbfSettings>().capacity.configured = capacity;
  made.own.of<AdapTbfSettings>().work_conserving = work_conserving;
  return made;
}

// The used part of the server's speed while one job floods and three lenders ask for a little now
// and then.
double used(bool work_conserving, std::uint64_t capacity) {
  JobSimulation simulation(settings(capacity, work_conserving),
                           {.parallelism = 2, .cost_per_second = kServerSpeed}, 1);
  for (std::uint32_t job = 0; job < 4; ++job) simulation.set_job(job, 1);
  for (std::uint32_t job = 0; job < 3; ++job) {
    simulation.trickle(job, 130ms + job * 10ms, kRequest);
  }
  simulation.flood(3, 400, kRequest, kRequest);
  simulation.run_for(1s);
  const Cost before = simulation.done();
  simulation.run_for(10s);
  return static_cast<double>(simulation.done() - before) / 10 / static_cast<double>(kServerSpeed);
}

TEST(AdapTbfSpare, NothingIsLeftIdleWhileAJobWaits) {
  EXPECT_LT(used(false, kServerSpeed), 0.97) << "strict, some belongs to idle jobs";
  EXPECT_GT(used(true, kServerSpeed), 0.995);
  EXPECT_GT(used(true, kServerSpeed / 2), 0.995) << "also when the capacity is set too low";
  EXPECT_GT(used(true, 0), 0.995) << "also when it is measured";
}

TEST(AdapTbfSpare, SharesFollowTheNodesWhileAllPress) {
  for (const std::uint64_t capacity : {kServerSpeed, kServerSpeed * 3 / 2, std::uint64_t{0}}) {
    JobSimulation simulation(settings(capacity, true),
                             {.parallelism = 2, .cost_per_second = kServerSpeed}, 2);
    const std::uint64_t nodes[] = {1, 1, 3, 5};
    for (std::uint32_t job = 0; job < 4; ++job) {
      simulation.set_job(job, nodes[job]);
      simulation.flood(job, 400, kRequest, kRequest);
    }
    simulation.run_for(3s);
    Cost before[4];
    for (std::uint32_t job = 0; job < 4; ++job) before[job] = simulation.done(job);
    const Cost all_before = simulation.done();
    simulation.run_for(10s);
    const auto all = static_cast<double>(simulation.done() - all_before);
    for (std::uint32_t job = 0; job < 4; ++job) {
      const double part = static_cast<double>(simulation.done(job) - before[job]) / all;
      EXPECT_NEAR(part, static_cast<double>(nodes[job]) / 10, 0.01)
          << "job " << job << ", capacity " << capacity;
    }
  }
}

// A lender's next burst waits for the requests at the server and for due ones, not for those that
// wait for spare capacity.
TEST(AdapTbfSpare, AJobThatComesBackIsServedBeforeTheOneThatTookTheSpare) {
  const auto scheduler = make_scheduler("adaptbf", settings(kServerSpeed, true)).value();
  for (std::uint32_t job = 0; job < 2; ++job) {
    (void)scheduler->set_share(AppId{job}, {.own = {{"nodes", 1}}}, {});
  }
  std::vector<IoRequest> flood(200);
  TimePoint now = {};
  for (IoRequest& request : flood) {
    request = {.app = AppId{0}, .size = {kMiB}, .cost = kMiB, .arrival = now};
    scheduler->enqueue(request, now);
  }
  IoRequest small = {.app = AppId{1}, .size = {4096}, .cost = 4096, .arrival = now};
  scheduler->enqueue(small, now);
  // The server is far faster than the capacity says, so most requests go without tokens.
  for (int i = 0; i < 110; ++i) {
    IoRequest* const request = scheduler->next(now).request;
    ASSERT_NE(request, nullptr);
    now += 1ms;
    scheduler->complete(*request, request->cost, now);
  }
  IoRequest back = {.app = AppId{1}, .size = {4096}, .cost = 4096, .arrival = now};
  scheduler->enqueue(back, now);
  std::vector<IoRequest*> sent;
  for (int i = 0; i < 8; ++i) sent.push_back(scheduler->next(now).request);
  EXPECT_NE(std::ranges::find(sent, &back), sent.end());
}

}  // namespace
}  // namespace vpfs
