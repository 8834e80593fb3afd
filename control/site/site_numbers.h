#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "control/allocation/cycle_state.h"
#include "control/allocation/totals_watch.h"
#include "control/coordinator/links/cycle_times.h"
#include "control/coordinator/links/parent_link.h"
#include "control/coordinator/links/stage_links.h"
#include "control/site/site_stages.h"

namespace vpfs::coordinator {

// What a coordinator shows of itself, copied at one moment.
struct SiteNumbers {
  struct Stage {
    std::string name;
    std::string address;
    std::string program;
    bool connected = false;
    bool late = false;
    bool silent = false;
    bool was_dialled = false;
    bool is_aggregator = false;
    std::uint64_t late_cycles = 0;
    std::uint64_t lies = 0;
    std::uint64_t refused_answers = 0;
    std::uint64_t not_applied = 0;
    std::string problem;
    std::size_t jobs = 0;
    allocation::Amounts caps;  // sums of what its jobs were granted
    // The state of the site's rules: "in force", "asked", "not taken", "waiting".
    std::string rules;
    std::string rules_problem;
    std::vector<std::string> rules_warnings;
  };
  struct Job {
    std::string name;
    std::uint32_t weight = 0;
    allocation::Amounts most;  // zero: no bound
    std::size_t stages = 0;
    allocation::Amounts granted;  // zero: nothing was
    allocation::Amounts arrived;  // in the last cycle
    std::uint64_t done = 0;       // cost
    // With a policy that shares totals, if the job had requests in flight for most of the time.
    struct Total {
      std::uint64_t cost = 0;  // each second, as the following one
      std::uint64_t entitled = 0;
      bool is_reached = false;
      std::string why;     // if it is not, as the following two
      std::string remedy;  // what would help
      std::vector<std::string> stages;
    };
    std::optional<Total> total;
  };

  std::string name;
  std::string policy;
  std::string policy_problem;
  std::uint64_t term = 0;
  std::uint64_t sequence = 0;
  WallTime started = {};
  allocation::Amounts capacity;
  allocation::Amounts in_force;
  RecentCycles::Summary cycles;
  StageLinks::Counters links;
  std::string store_problem;                 // "": it works
  std::optional<WallTime> certificate_end;   // of the first that ends; nothing: it has none
  std::optional<ParentLink::Status> parent;  // of an aggregator
  std::vector<Stage> stages;                 // in the order of names; absent ones too
  std::vector<Job> jobs;                     // those of the last cycle, in the order of names
  // Sums over all stages that there ever were.
  std::uint64_t lies = 0;
  std::uint64_t refused_answers = 0;
  std::uint64_t not_applied = 0;

  [[nodiscard]] std::size_t connected() const;
};

// Sums of counters whose owners come and go: it never goes down.
class GrowingSums {
 public:
  static constexpr std::size_t kCounters = 3;
  using Counts = std::array<std::uint64_t, kCounters>;

  // What all owners say now. One that says less than before, or was not there, counts anew.
  void add(const std::map<std::string, Counts>& now);
  [[nodiscard]] const Counts& sums() const { return sums_; }

 private:
  std::map<std::string, Counts> last_;
  Counts sums_ = {};
};

// Fills in `stages`, `jobs`, and what else `state` and `stages` know. Cost: the rows of a cycle.
void add_stages(SiteNumbers& numbers, const allocation::CycleState& state,
                const SiteStages& stages);
void add_jobs(SiteNumbers& numbers, const allocation::CycleState& state);
// REQUIRES: add_jobs() was called.
void add_totals(SiteNumbers& numbers, const allocation::TotalsWatch& totals);

}  // namespace vpfs::coordinator
