#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "schedulers/policies/registry.h"
#include "schedulers/rate_limits.h"
#include "schedulers/scheduler.h"
#include "stage/service_speed.h"

namespace vpfs::stage {

// The scheduler of a data server, or one for each of its targets: the lanes, at least one. All
// lanes share the limits of the virtual PFSes, so that a cap counts for the data server. If the
// policy counts service elsewhere, weights divide the service of all lanes together.
class Lanes {
 public:
  struct Lane {
    std::optional<std::uint32_t> target;  // nothing: for all requests, or no request has come yet
    std::unique_ptr<Scheduler> scheduler;
    ServiceSpeed speed = {};
  };
  // A data server has few targets.
  static constexpr std::size_t kMost = 64;

  // `policy` outlives the lanes.
  Lanes(const PolicyKind& policy, const SchedulerSettings& settings, bool per_target);

  // Takes on a policy and settings; returns whether they changed. The present schedulers stay until
  // each is replaced by make().
  [[nodiscard]] bool use(const PolicyKind& policy, const SchedulerSettings& settings);
  [[nodiscard]] std::unique_ptr<Scheduler> make();

  struct Found {
    std::size_t lane;
    bool made;  // its scheduler knows no flow yet
  };
  // The lane for requests of a target. The first target takes the lane that exists from the start.
  // Targets beyond kMost share it, or take over an idle lane.
  [[nodiscard]] Found find(std::uint32_t target);

  // The limits that lanes share; nullptr: each has its own.
  [[nodiscard]] RateLimits* shared_limits() { return per_target_ ? &limits_ : nullptr; }

  struct Elsewhere {
    Cost cost = 0;
    // For how long it may hold a head. Nothing: as long as the lane's speed says, for requests of
    // this cost.
    std::optional<Duration> delay;
    Cost request = 0;
  };
  // As in Scheduler. Lanes that share totals count all of it, each by itself.
  void served_elsewhere(AppId app, const Elsewhere& elsewhere, TimePoint now);
  // For how long a lane may hold the head of a flow for what the flow got from the others. Nothing:
  // as long as it must at least.
  void set_longest_delay(std::optional<Duration> delay);
  // A cycle of a coordinator begins: measures what the lanes do.
  void measure(TimePoint now) {
    for (Lane& lane : lanes_) lane.speed.look(now);
  }

  [[nodiscard]] std::size_t size() const { return lanes_.size(); }
  [[nodiscard]] Lane& operator[](std::size_t lane) { return lanes_[lane]; }
  [[nodiscard]] const Lane& operator[](std::size_t lane) const { return lanes_[lane]; }
  [[nodiscard]] auto begin() { return lanes_.begin(); }
  [[nodiscard]] auto end() { return lanes_.end(); }
  [[nodiscard]] auto begin() const { return lanes_.begin(); }
  [[nodiscard]] auto end() const { return lanes_.end(); }
  [[nodiscard]] const PolicyKind& policy() const { return *policy_; }
  [[nodiscard]] const SchedulerSettings& settings() const { return settings_; }

 private:
  [[nodiscard]] std::size_t reused_for(std::uint32_t target);

  const PolicyKind* policy_;
  SchedulerSettings settings_;
  bool per_target_;
  // The limits of all lanes; unused with one scheduler for all targets.
  RateLimits limits_;
  std::unique_ptr<Scheduler::TotalServices> totals_;
  std::vector<Lane> lanes_;
};

}  // namespace vpfs::stage
