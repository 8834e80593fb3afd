#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "sim/cluster/network/network.h"
#include "sim/cluster/placement/batch.h"
#include "sim/cluster/placement/tally.h"
#include "sim/cluster/scenario.h"
#include "sim/engine/engine.h"

namespace vpfs::sim {

// What an application of a cluster did.
struct ClusterApplicationResult {
  std::string name;
  std::uint32_t tasks = 0;
  TimePoint arrived;  // at the batch system
  TimePoint started;
  TimePoint ended;
  Tally tally;

  [[nodiscard]] Duration waiting() const { return started - arrived; }
  [[nodiscard]] Duration running() const { return ended - started; }
};

// What passed a link, or a part of a device, until the last application ended.
struct ClusterLinkResult {
  std::string name;
  BytesPerSecond rate;
  Bytes carried;  // by transfers that ended
};

struct ClusterResult {
  std::vector<ClusterApplicationResult> applications;  // in the order of the scenario
  std::vector<ClusterLinkResult> links;                // that carried anything, the busiest first
  Duration makespan = {};                              // from the first arrival to the last end
  std::uint64_t events = 0;
  // With apportioned classes: how often they may have missed their shares.
  std::uint64_t unsettled = 0;
};

// Runs a scenario in virtual time: where should data be, and what does priority in the network
// bring? The same scenario gives the same result on every machine.
class Cluster {
 public:
  // The scenario outlives it. REQUIRES: it was read without errors.
  explicit Cluster(const ClusterScenario& scenario);

  [[nodiscard]] bool is_done() const { return batch_.is_done(); }
  [[nodiscard]] std::size_t applications() const { return names_.size(); }
  [[nodiscard]] std::size_t ended() const { return batch_.ended(); }
  [[nodiscard]] Duration now() const { return engine_.now() - TimePoint(); }
  [[nodiscard]] std::uint64_t events() const { return events_; }

  // Runs so many events, or fewer if all applications have ended. False: they would take longer
  // than kLongest.
  static constexpr Duration kLongest = std::chrono::hours(24 * 365 * 10);
  [[nodiscard]] bool run(std::uint64_t events);
  // REQUIRES: is_done().
  [[nodiscard]] ClusterResult result() const;

 private:
  [[nodiscard]] std::vector<Batch::Job> make_jobs();
  [[nodiscard]] std::string name_of(LinkId link) const;
  [[nodiscard]] std::vector<ClusterLinkResult> links() const;

  const ClusterScenario& scenario_;
  Storage storage_;
  Engine engine_;
  Network network_;
  // By job.
  std::vector<std::string> names_;
  std::vector<Profile> profiles_;
  Batch batch_;
  std::uint64_t events_ = 0;
};

}  // namespace vpfs::sim
