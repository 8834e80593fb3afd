#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "control/allocation/cycle_state.h"
#include "test/control/allocation/model_stage.h"
#include "test/control/allocation/virtual_time.h"

namespace vpfs::allocation {

// Divides the capacity at random, in each cycle anew and to the last unit.
class RandomPolicy final : public AllocationPolicy {
 public:
  RandomPolicy(const Amounts& capacity, std::uint64_t seed) : capacity_(capacity), random_(seed) {}

  Result<void> allocate(std::span<const Pair> pairs, Duration period, const Amounts& less,
                        std::span<const std::string_view> jobs, std::span<Grant> grants) override;
  // From now on the same pairs get the same.
  void hold_still() { is_still_ = true; }

 private:
  Amounts capacity_;
  std::mt19937_64 random_;
  bool is_still_ = false;
};

// The caps in force on stages, whoever they belong to. Whenever those of one change, the sum is
// checked.
class CapSum {
 public:
  explicit CapSum(const Amounts& capacity) : capacity_(capacity) {}

  void count(ModelStage& stage);
  [[nodiscard]] const bool& is_safe() const { return is_safe_; }
  [[nodiscard]] const Amounts& in_force() const { return in_force_; }
  [[nodiscard]] const Amounts& most() const { return most_; }  // at any time

 private:
  Amounts capacity_;
  Amounts in_force_;
  Amounts most_;
  bool is_safe_ = true;
};

struct SiteSettings {
  std::uint32_t stages = 1000;
  std::uint64_t seed = 1;
  Duration faults_end = std::chrono::seconds(4);
  Duration end = std::chrono::seconds(8);
  // How often this happens to a stage, in 10,000 cycles.
  std::uint64_t breaks = 20;
  std::uint64_t restarts = 10;
  std::uint64_t hangs = 20;
  std::uint64_t refusals = 10;  // the stage applies nothing for some time
  std::uint64_t flow_changes = 50;
  std::uint64_t coordinator_restarts = 100;  // each cycle, in 10,000
};

// A coordinator and its stages in virtual time, over streams that are slow and break. A stage is
// what stage/allocations.h makes of it.
class CoordinatedSite {
 public:
  explicit CoordinatedSite(const SiteSettings& settings);
  ~CoordinatedSite();
  CoordinatedSite(const CoordinatedSite&) = delete;
  CoordinatedSite& operator=(const CoordinatedSite&) = delete;

  // Until the end, or until the caps in force pass the capacity.
  void run();

  struct Outcome {
    std::uint64_t applied = 0;
    std::uint64_t outdated = 0;
    std::uint64_t refused = 0;
    std::uint64_t lease_ends = 0;
    std::uint64_t breaks = 0;
    std::uint64_t stage_restarts = 0;
    std::uint64_t coordinator_restarts = 0;
    std::uint64_t disconnected = 0;  // since they were silent
  };
  [[nodiscard]] const Outcome& outcome() const { return outcome_; }
  [[nodiscard]] const CapSum& caps() const { return caps_; }
  [[nodiscard]] const Amounts& capacity() const { return cycle_settings_.capacity; }

 private:
  struct StageConnection;

  [[nodiscard]] TimePoint now() const { return time_.now(); }
  [[nodiscard]] bool has_faults() const { return now() < TimePoint{} + settings_.faults_end; }

  void start_coordinator(std::uint64_t term, TimePoint clear_from);
  void restart_coordinator();
  void cycle();
  void start_process(std::uint32_t stage);
  void connect(std::uint32_t stage);
  void break_connection(std::uint32_t stage, bool coordinator_lives);
  void fault(std::uint32_t stage);
  void deliver(const std::shared_ptr<StageConnection>& connection);
  void apply(StageConnection& connection, const SentCycle& cycle);
  void answer(const std::shared_ptr<StageConnection>& connection, const SentCycle& cycle);
  void take_answer(const std::shared_ptr<StageConnection>& connection);
  void end_lease(ModelStage& stage);

  SiteSettings settings_;
  CycleSettings cycle_settings_;
  VirtualTime time_;
  CapSum caps_;
  std::unique_ptr<CycleState> coordinator_;
  std::vector<std::shared_ptr<ModelStage>> processes_;         // by stage
  std::vector<std::shared_ptr<StageConnection>> connections_;  // by stage; empty: not connected
  std::vector<std::uint32_t> stage_by_id_;
  RandomPolicy* policy_ = nullptr;
  std::uint64_t incarnations_ = 0;
  std::uint64_t coordinator_number_ = 0;  // cycles of a dead one do not go on
  Outcome outcome_;
};

}  // namespace vpfs::allocation
