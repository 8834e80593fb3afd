#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "control/allocation/allocation_policy.h"
#include "control/allocation/siblings.h"
#include "control/allocation/within_job.h"

namespace vpfs::allocation {

// The policy of an aggregator: divides what its parent granted each job among its own pairs of that
// job, caps by demand as PSFA does within a job. No administrator chooses it, so it is not in the
// registry.
//
// A resource has no caps if the parent grants none of it to any job. If it grants one to each job
// that it mentions, a job that it does not know yet has a cap of zero: its stages let it live until
// the parent does. Caps of silent stages do not lower those of others: CycleState holds raises
// back.
//
// Totals of service elsewhere are what the parent adds to its own, and what the other pairs here
// did. Only additions count: the first total of a job is a base, as is the first one after
// forget_totals(). So a parent that begins again at zero, or far above, charges no pair.
class GivenPolicy final : public AllocationPolicy {
 public:
  explicit GivenPolicy(const Amounts& floor) : floor_(floor) {}

  // A complete cycle of the parent comes: what it does not mention has no grant.
  void begin_parent();
  void give(std::string_view job, const Grant& grant);
  // The totals of the parent that follow have another base: its term is new, or its lease had
  // ended, in which the group was on its own.
  void forget_totals();
  // The parent is lost, and so are its caps. Totals go on within the group if it gave any.
  void end_parent();

  [[nodiscard]] Result<void> allocate(std::span<const Pair> pairs, Duration period,
                                      const Amounts& less, std::span<const std::string_view> jobs,
                                      std::span<Grant> grants) override;

 private:
  struct Given {
    std::uint64_t cycle = 0;  // of the parent, the last one that mentioned it
    Grant grant;
    std::uint64_t base = 0;  // number of the base of `total`; zero: none
    Cost total = 0;
    Cost more = 0;  // of the parent's, that no pair has got yet
  };
  struct Divided {
    AmountDivider divider;
    // As of the parent's last cycle: a job has a cap, and none that it mentions has none.
    bool has_caps = false;
    bool is_of_all = true;
  };

  const Amounts floor_;
  std::map<std::string, Given, std::less<>> given_;
  std::uint64_t cycle_ = 0;
  std::uint64_t base_ = 1;     // number of the present base of totals
  bool mentions_any_ = false;  // in this cycle of the parent
  bool has_totals_ = false;    // some job has, in its last cycle that mentioned any
  std::array<Divided, kResources.size()> resources_ = {{{.divider = AmountDivider(kResources[0])},
                                                        {.divider = AmountDivider(kResources[1])},
                                                        {.divider = AmountDivider(kResources[2])}}};
  Siblings siblings_;
};

}  // namespace vpfs::allocation
