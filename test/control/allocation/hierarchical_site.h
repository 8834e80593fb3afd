#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "control/allocation/cycle_state.h"
#include "control/allocation/uplink.h"
#include "test/control/allocation/coordinated_site.h"
#include "test/control/allocation/model_stage.h"
#include "test/control/allocation/virtual_time.h"

namespace vpfs::allocation {

struct HierarchySettings {
  std::uint32_t aggregators = 4;
  std::uint32_t stages = 25;  // of each
  std::uint64_t seed = 1;
  Duration faults_end = std::chrono::seconds(4);
  Duration end = std::chrono::seconds(7);
  // How often this happens to a stage, in 10,000 times 50 ms; as SiteSettings has them.
  std::uint64_t breaks = 50;
  std::uint64_t restarts = 30;
  std::uint64_t hangs = 100;
  std::uint64_t refusals = 30;
  std::uint64_t flow_changes = 200;
  Duration longest_hang = std::chrono::seconds(2);
  Duration longest_delay = std::chrono::milliseconds(600);  // of a message to a stage
  // The same for an aggregator.
  std::uint32_t silent_cycles = 5;
  std::uint64_t aggregator_breaks = 100;  // it loses its parent
  std::uint64_t aggregator_restarts = 50;
  std::uint64_t aggregator_hangs = 0;
  Duration longest_aggregator_hang = std::chrono::seconds(2);
  std::uint64_t root_restarts = 100;
};

// A coordinator, aggregators and their stages in virtual time, over streams that are slow and
// break. What the processes decide is all of the code that is tested. The caps in force on all
// stages are added up.
class HierarchicalSite {
 public:
  explicit HierarchicalSite(const HierarchySettings& settings);
  ~HierarchicalSite();
  HierarchicalSite(const HierarchicalSite&) = delete;
  HierarchicalSite& operator=(const HierarchicalSite&) = delete;

  // Until the end, or until the caps in force pass the capacity.
  void run();

  struct Outcome {
    std::uint64_t applied = 0;
    std::uint64_t lease_ends = 0;         // of stages
    std::uint64_t parent_lease_ends = 0;  // of aggregators
    std::uint64_t stages_disconnected = 0;
    std::uint64_t aggregators_disconnected = 0;
    std::uint64_t aggregator_restarts = 0;
    std::uint64_t root_restarts = 0;
    std::uint64_t answers = 0;  // of aggregators
    std::uint64_t pending = 0;  // among them
  };
  [[nodiscard]] const Outcome& outcome() const { return outcome_; }
  [[nodiscard]] const CapSum& caps() const { return caps_; }
  [[nodiscard]] const Amounts& capacity() const { return root_settings_.capacity; }

 private:
  struct Aggregator;
  // A stream of cycles, to a stage or an aggregator.
  struct TreeLink;
  using LinkPtr = std::shared_ptr<TreeLink>;

  [[nodiscard]] TimePoint now() const { return time_.now(); }
  [[nodiscard]] bool has_faults() const { return now() < TimePoint{} + settings_.faults_end; }

  void start_root(std::uint64_t term, TimePoint clear_from);
  void restart_root();
  void root_cycle();
  void start_aggregator(std::uint32_t number);
  void restart_aggregator(std::uint32_t number);
  void connect_aggregator(std::uint32_t number);
  void aggregator_cycle(const std::shared_ptr<Aggregator>& aggregator);
  void answer_parent(const std::shared_ptr<Aggregator>& aggregator);
  void start_stage(std::uint32_t number);
  void connect_stage(std::uint32_t number);
  void fault_stage(std::uint32_t number);
  void fault_aggregator(std::uint32_t number);

  [[nodiscard]] LinkPtr& link_of_stage(std::uint32_t number);
  [[nodiscard]] Aggregator& aggregator_of_stage(std::uint32_t number);
  // Sends what the state says over its links. Returns those that are to be closed.
  [[nodiscard]] std::vector<LinkPtr> send(const CycleState& state,
                                          std::span<const Outgoing> outgoing,
                                          const std::vector<LinkPtr>& by_id, Duration longest);
  void lose(const LinkPtr& link);
  void break_stage_link(std::uint32_t number);
  void break_parent_link(std::uint32_t number);
  void deliver(const LinkPtr& link);
  void deliver_to_stage(const LinkPtr& link);
  void deliver_to_aggregator(const LinkPtr& link);
  void reply(const LinkPtr& link, SentReport report);
  void take_reply(const LinkPtr& link);
  void end_lease(ModelStage& stage);

  HierarchySettings settings_;
  CycleSettings root_settings_;
  CycleSettings aggregator_settings_;
  VirtualTime time_;
  CapSum caps_;
  std::unique_ptr<CycleState> root_;
  RandomPolicy* root_policy_ = nullptr;
  std::uint64_t root_number_ = 0;  // cycles of a dead one do not go on
  std::vector<LinkPtr> root_links_;
  std::vector<std::shared_ptr<Aggregator>> aggregators_;
  std::vector<std::weak_ptr<Aggregator>> all_aggregators_;  // former ones too
  std::vector<std::uint64_t> aggregator_terms_;
  std::vector<std::shared_ptr<ModelStage>> stages_;
  std::uint64_t incarnations_ = 0;
  Outcome outcome_;
};

}  // namespace vpfs::allocation
