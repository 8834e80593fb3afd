#include "sim/cluster/placement/batch.h"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "sim/cluster/network/topologies.h"

namespace vpfs::sim {
namespace {

using namespace std::chrono_literals;

// Four nodes. Jobs only compute.
class SimBatch : public testing::Test {
 protected:
  SimBatch()
      : topology_(make_single_switch(4, {10'000'000'000}).value()), storage_(*topology_, {}) {}

  void add(std::uint32_t tasks, Duration length, Duration arrival = {}) {
    jobs_.push_back({.profile = {.tasks = tasks,
                                 .io_tasks = tasks,
                                 .steps = 1,
                                 .compute = 1000,
                                 .read = 0,
                                 .write = 0,
                                 .compute_time = length},
                     .arrival = arrival,
                     .wall_time = length});
  }
  void run() {
    Engine engine;
    Network network(engine, storage_.capacities(), {});
    Batch batch({engine, network, *topology_, storage_}, settings_, jobs_);
    while (engine.step()) {
    }
    ASSERT_TRUE(batch.is_done());
    outcomes_ = batch.outcomes();
  }
  Duration started(std::size_t job) { return outcomes_[job].started - TimePoint(); }
  Duration ended(std::size_t job) { return outcomes_[job].ended - TimePoint(); }

  std::unique_ptr<const Topology> topology_;
  Storage storage_;
  Batch::Settings settings_;
  std::vector<Batch::Job> jobs_;
  std::vector<Batch::Outcome> outcomes_;
};

TEST_F(SimBatch, WhatFitsRunsAtOnce) {
  add(2, 10s);
  add(2, 20s);
  run();
  EXPECT_EQ(started(0), 0s);
  EXPECT_EQ(started(1), 0s);
  EXPECT_EQ(ended(1), 20s);
}

TEST_F(SimBatch, TheFirstOneOfTheQueueIsFirst) {
  add(3, 10s);
  add(4, 5s, 1s);
  add(1, 1s, 2s);  // would fit beside the first one
  run();
  EXPECT_EQ(started(1), 10s);
  EXPECT_EQ(started(2), 15s);
  EXPECT_EQ(outcomes_[2].arrived - TimePoint(), 2s);
}

TEST_F(SimBatch, BackfillingTakesAJobThatDelaysNoOther) {
  settings_.backfills = true;
  add(3, 10s);
  add(4, 5s, 1s);
  add(1, 1s, 2s);   // ends before the first one
  add(1, 20s, 2s);  // would end after it
  run();
  EXPECT_EQ(started(1), 10s);
  EXPECT_EQ(started(2), 2s);
  EXPECT_EQ(started(3), 15s);
}

TEST_F(SimBatch, BackfillingTakesAJobThatLeavesEnough) {
  settings_.backfills = true;
  add(3, 10s);
  add(3, 5s, 1s);
  add(1, 100s, 2s);  // the first one of the queue needs three, and four are there
  run();
  EXPECT_EQ(started(1), 10s);
  EXPECT_EQ(started(2), 2s);
}

// This takes minutes if each job of the queue is compared with all jobs at each event.
TEST_F(SimBatch, ALongQueueIsBackfilledInReasonableTime) {
  settings_.backfills = true;
  constexpr int kWaiting = 10'000;
  add(3, 24h);
  add(4, 1s, 1s);
  for (int i = 0; i < kWaiting; ++i) add(1, 48h, 2s + i * 1s);  // each would delay the second one
  add(1, 1h, 2h);
  run();
  EXPECT_EQ(started(1), 24h);
  EXPECT_EQ(started(2), 24h + 1s);
  EXPECT_EQ(started(jobs_.size() - 1), 2h);
}

TEST_F(SimBatch, OneThatStartsTakesWhatWasToSpare) {
  settings_.backfills = true;
  add(2, 10s);
  add(3, 5s, 1s);
  add(1, 100s, 2s);  // with it three are there at 10 s
  add(1, 100s, 2s);
  run();
  EXPECT_EQ(started(1), 10s);
  EXPECT_EQ(started(2), 2s);
  EXPECT_EQ(started(3), 15s);
}

TEST_F(SimBatch, DataLieWhereTheyAreSupposedTo) {
  jobs_.push_back({.profile = {.tasks = 2,
                               .io_tasks = 2,
                               .steps = 1,
                               .compute = 0,
                               .read = 1000,
                               .write = 0,
                               .io_bytes = {1'000'000'000},
                               .data_bytes = {1'000'000'000}}});
  settings_.is_staged = true;
  settings_.data = Batch::Data::cache;
  run();
  EXPECT_EQ(ended(0), 1s + 500ms);  // staged into two devices, and read
  settings_.data = Batch::Data::external;
  settings_.access = Access::affinity;
  run();
  EXPECT_EQ(ended(0), 1s + 500ms);  // the network is not the bottleneck
  settings_.data = Batch::Data::central;
  run();
  EXPECT_EQ(ended(0), 800ms);
  settings_.data = Batch::Data::internal;
  settings_.nodes = Batch::Nodes::random;
  run();
  EXPECT_EQ(ended(0), 1s + 500ms);
  settings_.is_staged = false;
  run();
  EXPECT_EQ(ended(0), 500ms);
}

TEST_F(SimBatch, TasksMayGoWhereTheirDataAre) {
  BlockProfile profile = {.tasks = 2, .readers = 2, .writers = 2, .devices = 2};
  profile.data = {1'000'000'000};
  jobs_.push_back({.blocks = profile});
  settings_.data = Batch::Data::external;
  run();
  EXPECT_EQ(outcomes_[0].tally.local.count, 0U);
  settings_.nodes = Batch::Nodes::near_data;
  run();
  EXPECT_EQ(outcomes_[0].tally.remote.count, 0U);
  EXPECT_GT(outcomes_[0].tally.local.count, 0U);
}

TEST_F(SimBatch, ApplicationsOfBlocksWaitForNodesLikeOthers) {
  BlockProfile profile = {.tasks = 4, .readers = 4, .writers = 4, .devices = 2};
  profile.data = {1'000'000'000};
  jobs_ = {{.blocks = profile}, {.blocks = profile}};
  run();
  EXPECT_EQ(started(1), ended(0));
  EXPECT_GT(ended(0), 2s) << "staging is part of the run";
  EXPECT_EQ(outcomes_[0].tally.staged.count, 2'000'000'000U);
}

}  // namespace
}  // namespace vpfs::sim
