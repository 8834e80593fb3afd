#include "control/allocation/static_limits.h"

#include "control/allocation/max_min.h"

namespace vpfs::allocation {
namespace {

// The limit applies to each stage; an aggregator gets the sum of all stages below it.
std::optional<std::uint64_t> limit(std::uint64_t amount, std::uint32_t stages) {
  if (amount == 0) return std::nullopt;
  return amount > kMostAmount / stages ? kMostAmount : amount * stages;
}

class StaticPolicy final : public AllocationPolicy {
 public:
  explicit StaticPolicy(const AllocationPolicySettings& settings) : settings_(settings) {}

  Result<void> allocate(std::span<const Pair> pairs, Duration /*period*/, const Amounts& /*less*/,
                        std::span<const std::string_view> jobs, std::span<Grant> grants) override {
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const std::uint32_t stages = pairs[i].stages;
      const bool limits_metadata = pairs[i].takes_metadata_caps;
      if (i > 0 && pairs[i].job == pairs[i - 1].job && stages == pairs[i - 1].stages &&
          limits_metadata == pairs[i - 1].takes_metadata_caps) {
        grants[i] = grants[i - 1];
        continue;
      }
      const auto found = settings_.limits.find(jobs[pairs[i].job]);
      grants[i] = {};
      if (found == settings_.limits.end()) continue;
      grants[i] = {.bytes = limit(found->second.bytes, stages),
                   .operations = limit(found->second.operations, stages)};
      if (!limits_metadata) continue;
      grants[i].metadata_operations = limit(found->second.metadata_operations, stages);
    }
    return {};
  }

 private:
  const AllocationPolicySettings settings_;
};

}  // namespace

const AllocationPolicyKind kStatic = {
    .name = "static",
    .what = "the limits that the configuration has for each job, on each stage",
    .needs_caps = true,
    .make = [](const AllocationPolicySettings& settings) -> std::unique_ptr<AllocationPolicy> {
      return std::make_unique<StaticPolicy>(settings);
    }};

}  // namespace vpfs::allocation
