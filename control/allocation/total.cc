#include "control/allocation/total.h"

#include <algorithm>
#include <array>

#include "control/allocation/siblings.h"
#include "control/allocation/within_job.h"

namespace vpfs::allocation {
namespace {

class TotalPolicy final : public AllocationPolicy {
 public:
  explicit TotalPolicy(const AllocationPolicySettings& settings) : floor_(settings.floor) {}

  Result<void> allocate(std::span<const Pair> pairs, Duration period, const Amounts& /*less*/,
                        std::span<const std::string_view> /*jobs*/,
                        std::span<Grant> grants) override {
    siblings_.begin();
    for (AmountDivider& each : dividers_) each.begin(period);
    for_each_job(pairs, [&](std::size_t first, std::size_t count) {
      const std::span<const Pair> of_job = pairs.subspan(first, count);
      const std::span<Grant> granted = grants.subspan(first, count);
      siblings_.add(of_job, 0, granted);
      for (std::size_t i = 0; i < kResources.size(); ++i) {
        const std::uint64_t most = pairs[first].most.*kResources[i].amount;
        if (most == 0) continue;
        dividers_[i].divide(most, floor_.*kResources[i].amount, of_job, granted);
      }
    });
    return {};
  }

 private:
  const Amounts floor_;
  Siblings siblings_;
  std::array<AmountDivider, kResources.size()> dividers_ = {
      AmountDivider(kResources[0]), AmountDivider(kResources[1]), AmountDivider(kResources[2])};
};

}  // namespace

const AllocationPolicyKind kTotal = {
    .name = "total",
    .what = "shares by weight of what jobs get on all stages together",
    .needs_elsewhere = true,
    .make = [](const AllocationPolicySettings& settings) -> std::unique_ptr<AllocationPolicy> {
      return std::make_unique<TotalPolicy>(settings);
    }};

}  // namespace vpfs::allocation
