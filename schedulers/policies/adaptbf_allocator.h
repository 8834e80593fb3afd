#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/saved/saved_state.h"
#include "base/wide.h"

namespace vpfs {

// Divides the tokens of the next period among the jobs of one data server, as AdapTBF does
// [ADAPTBF] (docs/schedulers.md has equations 1 to 25 with the paper's open points settled):
//
//   1. the budget is divided among the active jobs by their nodes;
//   2. tokens that a job would leave over are lent to jobs that would use them; the records keep
//      count;
//   3. jobs that lent before take back from those that owe;
//   4. each of these becomes whole tokens at once, and remainders are carried.
//
// The allocations of a period sum to its budget and the records of all jobs to zero. The result
// does not depend on the order of `active`.
//
// Arithmetic. Tokens and records are integers. Values are fixed point with 64 fraction bits, each
// rounded to nearest. Flooring and comparing remainders use a grid of 2^-32: values that are equal
// in exact arithmetic stay equal here for some 2^30 periods. Nodes, demand and budget above kMost
// count as kMost, and zero nodes or tokens count as one. Nothing overflows with up to kMostActive
// jobs. A record has 63 bits: at kMost tokens in every period it lasts for 2^23 periods of nothing
// but lending, at 2^20 tokens for 2^43.
class AdapTbfAllocator {
 public:
  // Small and dense: they index a vector. The smaller job goes first when remainders are equal.
  using Job = std::uint32_t;
  static constexpr std::uint64_t kMost = std::uint64_t{1} << 40;
  static constexpr std::size_t kMostActive = std::size_t{1} << 20;

  // `tokens`: the demand that arrived in the period or was waiting when it began.
  struct Demand {
    Job job;
    std::uint64_t nodes;
    std::uint64_t tokens;
  };
  // `record`: positive when the job has lent more tokens than it has borrowed.
  struct Allocation {
    Job job;
    std::uint64_t tokens;
    std::int64_t record;
  };

  // Ends a period. `active`: the jobs with at least one request in it, each once. `budget`: the
  // tokens of the next period. The answer has the order of `active` and is valid until the next
  // call. Without active jobs no job gets anything. A job that is not active keeps its record and
  // its remainder. Allocates memory only when more jobs than ever before appear.
  [[nodiscard]] std::span<const Allocation> allocate(std::span<const Demand> active,
                                                     std::uint64_t budget);

  // The same in parts. start() borrows `active` until go_on() has returned true; then allocations()
  // has the answer. go_on() does at most `steps` steps, or a few more, each of which looks at one
  // job. Some twenty steps are needed for each job.
  void start(std::span<const Demand> active, std::uint64_t budget);
  [[nodiscard]] bool go_on(std::size_t steps);
  [[nodiscard]] std::size_t steps_left() const { return steps_; }
  [[nodiscard]] std::span<const Allocation> allocations() const { return allocations_; }

  // Until go_on() returns true, that of the period before.
  [[nodiscard]] std::int64_t record(Job job) const;

  // A job's account, for a successor; with all of them the records sum to zero there as well.
  // Whether its tokens were given in the period before is told apart from numbers of periods.
  // REQUIRES (both): go_on() has returned true since start().
  void save(Job job, SavedState& to);
  void restore(Job job, const SavedState& from);
  // All jobs that are there are restored. Those that are missing have ended.
  void end_missing();

  // The job has ended and is forgotten; its number may be used again. The records still sum to
  // zero: an ended lender's claim is taken off the debts of all debtors, and an ended debtor's debt
  // off the claims of all lenders, each in proportion, in whole tokens by largest remainders.
  // O(jobs ever seen). REQUIRES: go_on() has returned true since start().
  void end(Job job);

 private:
  using Indices = std::vector<std::uint32_t>;

  // numerator / divisor, with as many fraction bits as asked for later.
  struct Quotient {
    Quotient(Wide numerator, std::uint64_t by);
    // Times 2^shift, rounded to nearest; 1 <= shift < 128.
    [[nodiscard]] Wide scaled(int shift) const;

    Wide whole;
    std::uint64_t rest;
    std::uint64_t divisor;
  };

  // Ratios to one whole, 1 <= whole < 2^127, for one slow division.
  class Whole {
   public:
    Whole() = default;
    explicit Whole(Wide whole);

    // part / whole times 2^kRatioBits; part <= whole.
    [[nodiscard]] Wide ratio(Wide part) const;

   private:
    int shift_ = 0;
    Wide inverse_ = 0;  // 2^253 / divisor
  };

  struct Account {
    std::int64_t record = 0;
    std::uint64_t tokens = 0;  // given at the end of ...
    std::uint64_t period = 0;  // ... the last period in which it was active
    SignedWide remainder = 0;  // of its last rounding, times 2^64
  };

  // An active job during allocate(). What only some stages look at is apart, in Rounding and
  // Factor: with many jobs each stage waits for the memory that it goes through.
  struct Active {
    Job job;
    std::uint64_t nodes;
    std::uint64_t demand;
    std::uint64_t previous;  // a_prev or what stands for it: u = demand / previous
    std::uint64_t tokens;    // a, then a_RD, then a_RC
    std::int64_t record;
    std::int64_t record_before;
  };
  struct Rounding {
    SignedWide remainder;    // times 2^64
    std::int64_t rank = 0;   // remainder times 2^32, rounded to nearest
    std::uint64_t part = 0;  // the whole tokens that round() made of a value
  };
  struct Factor {
    Quotient factor;  // DF times the nodes of all
    Wide weight = 0;  // factor, scaled as the step wants it
  };

  // A claim to one more token, or one less. Kept apart from Active because choosing the largest
  // moves these.
  struct Candidate {
    std::int64_t rank;
    Job job;
    std::uint32_t index;
  };

  // Debts or claims that shrink because of a job that has ended.
  struct Settlement {
    Job job;
    Wide rest;
  };

  // The parts of start() to the last go_on(). weigh and share, and the three of rounding, are for
  // the members that their caller names; then comes the stage that it names.
  enum class Stage : std::uint8_t {
    take_demands,
    divide_by_nodes,
    compare_with_demand,
    lend,
    find_payback_ratio,
    take_back,
    give_back,
    keep,
    done,
    weigh,
    share,
    find_candidates,
    choose,
    change,
  };
  // The partition of a quickselect: candidates from `low` to `high` by a pivot, which is the last
  // of them. Those before `store` come before the pivot, the others up to the cursor after it.
  struct Selection {
    std::size_t low = 0;
    std::size_t high = 0;
    std::size_t store = 0;
  };

  [[nodiscard]] bool do_stage();
  void enter(Stage stage) {
    stage_ = stage;
    cursor_ = 0;
  }
  // Calls `each` with the numbers from cursor_ to `end` as far as steps are left; the following
  // with those of jobs. True: with all.
  template <typename Each>
  [[nodiscard]] bool step_through(std::size_t end, Each each);
  template <typename Each>
  [[nodiscard]] bool for_all(Each each);
  template <typename Each>
  [[nodiscard]] bool for_lenders(Each each);
  template <typename Each>
  [[nodiscard]] bool for_members(Each each);

  // They do one stage as far as steps are left. True: all of it.
  [[nodiscard]] bool take_demands();
  [[nodiscard]] bool divide_by_nodes();
  [[nodiscard]] bool compare_with_demand();
  [[nodiscard]] bool lend();
  [[nodiscard]] bool find_payback_ratio();
  [[nodiscard]] bool take_back();
  [[nodiscard]] bool give_back();
  [[nodiscard]] bool keep();
  [[nodiscard]] bool weigh();
  [[nodiscard]] bool share();
  [[nodiscard]] bool find_candidates();
  [[nodiscard]] bool choose();
  [[nodiscard]] bool change();

  void set_members(bool of_lenders, Stage next);
  void begin_share(std::uint64_t amount);
  // Makes a part of `value`, which is times 2^64.
  void round(std::uint32_t index, Wide value);
  void end_round(std::uint64_t total);
  void begin_partition(std::size_t low, std::size_t high);
  void end_partition();

  std::vector<Account> accounts_;  // by job
  std::uint64_t period_ = 1;       // an account's period is never the one before the first
  std::uint64_t nodes_ = 0;        // of all active jobs

  Stage stage_ = Stage::done;
  std::size_t cursor_ = 0;  // of the stage
  std::size_t steps_ = 0;   // left

  // Only used from start() to the last go_on(); kept for their memory.
  std::span<const Demand> demands_;
  std::uint64_t budget_ = 0;
  std::vector<Active> active_;
  std::vector<Rounding> roundings_;  // of each in active_
  std::vector<Factor> factors_;      // likewise
  Indices lenders_;                  // J+
  std::vector<Candidate> candidates_;
  std::vector<Settlement> settlements_;
  std::vector<Allocation> allocations_;
  Whole whole_;
  Wide sum_ = 0;              // of what the stage adds up
  int shift_ = 0;             // of what it adds up
  std::uint64_t amount_ = 0;  // that is lent, or paid back
  Wide payback_ratio_ = 0;    // C of eq. 13
  bool of_lenders_ = false;   // the members; false: all
  Stage next_ = Stage::done;  // after what is done for the members
  // For rounding.
  std::uint64_t parts_ = 0;  // their sum
  std::uint64_t total_ = 0;  // what it is to be
  std::int64_t least_ = 0;   // the rank from which jobs are due a token
  std::size_t chosen_ = 0;   // how many candidates are given a token, or lose one
  Selection selection_;
};

}  // namespace vpfs
