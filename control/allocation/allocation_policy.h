#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "control/allocation/pair.h"

namespace vpfs::allocation {

// What the administrator configured for a policy.
struct AllocationPolicySettings {
  Amounts capacity;  // of all stages, each second; zero: not divided
  Amounts floor;     // of each pair; zero: one of a unit
  std::map<std::string, Amounts, std::less<>> limits;  // static: of each job on each stage
};

// Divides what the site has among the jobs on its stages. A pure state machine: it reads no clock
// and does no I/O.
class AllocationPolicy {
 public:
  virtual ~AllocationPolicy() = default;

  // What the pairs may do until the next cycle: a grant for each, in their order. The cycle took
  // `period`. `less` of the capacity is in the hands of stages that are silent. `jobs` has the
  // names by number. An error says what is wrong with the pairs; then the grants before stay in
  // force. Pairs that are missing are forgotten. REQUIRES: `pairs` ascend by (job, stage), pairs of
  // one job have one weight, and no two have the same id; the grants are empty. A pair gets no
  // grant of what it has no part of (has_part()).
  [[nodiscard]] virtual Result<void> allocate(std::span<const Pair> pairs, Duration period,
                                              const Amounts& less,
                                              std::span<const std::string_view> jobs,
                                              std::span<Grant> grants) = 0;
};

// A policy that may be chosen by name.
struct AllocationPolicyKind {
  std::string_view name;
  std::string_view what;  // for the manual
  // What stages need to be able to do. The bound of a job (Pair::most) is granted as caps without
  // `needs_caps`, too; stages that cannot cap are not sent them.
  bool needs_caps = false;
  bool needs_elsewhere = false;
  std::unique_ptr<AllocationPolicy> (*make)(const AllocationPolicySettings& settings);
};

// All policies; the first one is the default.
[[nodiscard]] std::span<const AllocationPolicyKind* const> policies();
// nullptr: there is none of that name.
[[nodiscard]] const AllocationPolicyKind* find_policy(std::string_view name);

}  // namespace vpfs::allocation
