#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stage/stage.h"

namespace vpfs::stage {

using namespace std::chrono_literals;

inline constexpr auto kForever = 24h;
inline constexpr Bytes kSize = {64 * kKiB};

inline Limits bytes(std::uint64_t rate) {
  return {.bytes = BytesPerSecond{rate}};
}

// A stage of two virtual PFSes and a template, and a coordinator of it. Time is virtual.
class StageAllocations : public ::testing::Test {
 protected:
  static Config config_of(const std::string& policy) {
    Config config;
    config.policy = policy;
    config.scheduler.depth.requests = 100'000;
    config.cost.per_request = {};
    config.virtual_pfs = {{.name = "a", .share = {}},
                          {.name = "b", .share = {.weight = 2}},
                          {.name = "job-{jobid}", .share = {}}};
    config.idle = 5s;
    return config;
  }
  void make() {
    stage_ = std::make_unique<Stage>(config_, now_);
    stage_->set_hold(2 * kForever, now_);
  }
  VirtualPfsId id(const std::string& name) {
    const bool is_job = name.starts_with("job-");
    return stage_->find({.virtual_pfs = name, .declared_name = is_job ? "job-{jobid}" : name}, now_)
        .id;
  }
  CycleResult allocate(std::uint64_t term, std::uint64_t sequence,
                       const std::vector<Allocation>& allocations, Duration lease = 1s,
                       bool complete = false) {
    const CycleAnswer answer = stage_->allocate(
        {.epoch = {.term = term, .sequence = sequence}, .lease = lease, .complete = complete},
        allocations, now_);
    unknown_ = answer.unknown;
    return answer.result;
  }
  Held& arrive(VirtualPfsId to, std::uint32_t device = 0) {
    Held& io = requests_.emplace_back();
    io.app = to.app;
    io.generation = to.generation;
    io.size = io.asked = kSize;
    io.cost = kSize.count;
    io.arrival = now_;
    io.device = device;
    stage_->arrive(io, now_);
    return io;
  }
  // Releases what may go and ends it at once.
  std::size_t release() {
    std::vector<Held*> released;
    until_ = stage_->release(now_, released);
    for (Held* io : released) {
      Stage::took_over(*io);
      stage_->end(*io, {.moved = io->size}, now_);
    }
    return released.size();
  }
  void retire(VirtualPfsId which) {
    now_ += 2 * config_.idle;
    stage_->find_idle(100, now_);
    stage_->retire(100, now_);
    ASSERT_FALSE(stage_->virtual_pfs().is_there(which));
  }
  // A backlog that used up its burst.
  VirtualPfsId backlog(const std::string& name, int requests = 100) {
    const VirtualPfsId of = id(name);
    for (int i = 0; i < requests; ++i) arrive(of);
    return of;
  }

  Config config_ = config_of("sfq");
  TimePoint now_ = TimePoint{} + 1h;
  std::unique_ptr<Stage> stage_;
  std::deque<Held> requests_;
  std::vector<VirtualPfsId> unknown_;
  TimePoint until_ = kNever;
};

}  // namespace vpfs::stage
