#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/flat_table.h"
#include "control/allocation/cycle_types.h"
#include "control/allocation/flow_base.h"

namespace vpfs::allocation {

// The members of a division: jobs, stages and the pairs of both, in dense tables. Numbers are used
// again, those of pairs not before the next release_numbers().
class Membership {
 public:
  static constexpr std::uint32_t kNone = 0xffffffff;

  struct Job {
    std::string_view name;
    std::optional<std::uint32_t> weight;  // configured
    std::uint32_t announced_weight = 1;   // by a stage, the last one
    Amounts most;
    bool is_configured = false;    // stays without a pair
    std::uint32_t pairs = 0;       // it is live if there are any
    std::uint32_t rank = 0;        // in the order of names, as of the last rank()
    std::uint32_t generation = 0;  // of its number; another one whenever a job becomes live
    std::uint32_t stages = 0;      // as LiveJob has it
    JobTotals totals;              // without the present cycle's time limited
    Microseconds limited = {};     // in this cycle, on the stage where it was longest
  };

  // A job on a stage. It outlives its flow for as long as a cap of it may be in force.
  struct PairRecord {
    std::uint32_t job = kNone;  // kNone: there is no such pair
    std::uint32_t stage = 0;
    std::uint32_t place = 0;  // in the list of its stage
    std::uint32_t flow = kNone;
    std::uint32_t stages = 1;  // as FlowName has it
    bool has_ended = false;    // its flow has, and the stage has not said that no cap is in force
    Amounts arrived;
    Duration limited = {};
    Cost done = 0;
    QueueTimes times;
  };

  struct Flow {
    std::uint32_t pair = kNone;  // kNone: it is not announced on this connection
    std::uint32_t generation = 0;
    bool is_known = false;      // a flow of this process had that generation
    std::uint32_t job = kNone;  // of the base, also when it is not announced
    std::uint32_t job_generation = 0;
    std::uint64_t announced = 0;  // so many reports had come before
    FlowBase base;
  };

  // What a stage was sent and has not answered.
  struct Open {
    std::uint64_t sequence = 0;  // zero: it has answered all
    std::uint64_t term = 0;
    bool allocates = false;
    bool wants_report = false;
    bool has_caps = false;  // in what it allocates
    Duration lease = {};

    explicit operator bool() const { return sequence != 0; }
  };

  // Members that each cycle reads come first.
  struct Stage {
    Open open;
    TimePoint caps_until = kNever;   // settled ones are in force, while no allocating cycle is open
    TimePoint stale_until = kNever;  // caps of former processes are
    std::uint32_t missed = 0;        // cycles that began without its answer to the one before
    std::uint32_t cycles = 0;        // that began since its last counters
    std::uint32_t first_grant = 0;   // of this cycle
    std::uint32_t grants = 0;
    bool is_known = false;       // the table has such a stage, connected or not
    bool is_introduced = false;  // has reported on this connection
    bool is_pending = false;     // so was its last answer to a cycle that allocates
    bool has_ended = false;      // one of its pairs
    bool takes_caps = true;
    bool takes_metadata_caps = true;
    bool lacks_caps = false;  // it was granted some that it does not take
    Duration lease = {};      // the longest one that this process was sent
    StageStatus status;
    std::vector<Flow> flows;           // by number
    std::vector<std::uint32_t> pairs;  // with a flow or without
    std::uint64_t reports = 0;         // with counters
    TimePoint reported_at = {};        // its last counters
    std::uint32_t rank = 0;            // in the order of names, as of the last rank()

    // Its pairs are divided among.
    [[nodiscard]] bool takes_part() const {
      return status.connected && is_introduced && !status.silent;
    }
  };

  // The job of that name, which is made if there is none.
  Job& find_or_make_job(std::string_view name, std::uint32_t& number);
  // The number of the job of that name.
  [[nodiscard]] std::optional<std::uint32_t> find_job(std::string_view name) const;
  // Forgets the job if nothing is left of it.
  void drop_job_if_unused(std::uint32_t number);

  // The number of the stage of that name, which is made if there is none.
  std::uint32_t find_or_make_stage(std::string_view name);
  // REQUIRES: it has no pairs.
  void forget_stage(std::uint32_t number);

  std::uint32_t find_or_make_pair(std::uint32_t job, std::uint32_t stage);
  void forget_pair(std::uint32_t pair);
  // Numbers of pairs that were forgotten may be used.
  void release_numbers();

  // Numbers jobs and stages in the order of their names.
  void rank();
  // The stages that take part, in the order of their names; by rank().
  [[nodiscard]] std::span<const std::uint32_t> ranked_stages() const { return ranked_stages_; }
  // By rank().
  [[nodiscard]] std::span<const std::string_view> job_names() const { return job_names_; }

  [[nodiscard]] Job& job(std::uint32_t number) { return jobs_[number]; }
  // All that there ever were at the same time, those without a name among them.
  [[nodiscard]] std::vector<Job>& jobs() { return jobs_; }
  [[nodiscard]] const std::vector<Job>& jobs() const { return jobs_; }
  [[nodiscard]] PairRecord& pair(std::uint32_t number) { return pairs_[number]; }
  [[nodiscard]] const PairRecord& pair(std::uint32_t number) const { return pairs_[number]; }
  [[nodiscard]] std::size_t pairs() const { return pairs_.size(); }
  // All that there ever were at the same time, those that are not known among them.
  [[nodiscard]] std::vector<Stage>& stages() { return stages_; }
  [[nodiscard]] const std::vector<Stage>& stages() const { return stages_; }

 private:
  using Names = std::map<std::string, std::uint32_t, std::less<>>;

  std::vector<Job> jobs_;
  std::vector<std::uint32_t> free_jobs_;
  Names job_by_name_;
  std::vector<Stage> stages_;
  std::vector<std::uint32_t> free_stages_;
  Names stage_by_name_;
  std::vector<PairRecord> pairs_;
  std::vector<std::uint32_t> free_pairs_;
  std::vector<std::uint32_t> forgotten_pairs_;
  FlatTable<std::uint32_t> pair_by_members_;  // by job and stage

  std::vector<std::string> job_texts_;  // copies, since jobs may go before the next rank()
  std::vector<std::string_view> job_names_;
  std::vector<std::uint32_t> ranked_stages_;
};

}  // namespace vpfs::allocation
