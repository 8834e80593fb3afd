#include "control/allocation/total.h"

#include <vector>

namespace vpfs::allocation {
namespace {

class TotalPolicy final : public Policy {
 public:
  Result<void> allocate(std::span<const Pair> pairs, Duration /*period*/, const Amounts& /*less*/,
                        std::span<const std::string_view> /*jobs*/,
                        std::span<Grant> grants) override {
    ++cycle_;
    for (std::size_t first = 0; first < pairs.size();) {
      std::size_t end = first;
      Cost of_job = 0;
      for (; end < pairs.size() && pairs[end].job == pairs[first].job; ++end) {
        of_job += service_in_cycle(pairs[end]);
      }
      for (; first < end; ++first) {
        Known& known = known_[pairs[first].id];
        known.elsewhere += of_job - known.in_cycle;
        grants[first] = {.elsewhere_total = known.elsewhere};
      }
    }
    return {};
  }

 private:
  struct Known {
    std::uint64_t cycle = 0;  // the last one that had the pair; zero: none
    Cost done = 0;
    Cost in_cycle = 0;
    Cost elsewhere = 0;
  };

  Cost service_in_cycle(const Pair& pair) {
    if (pair.id >= known_.size()) known_.resize(std::size_t{pair.id} + 1);
    Known& known = known_[pair.id];
    if (known.cycle == 0 || known.cycle + 1 != cycle_) {
      // A stage that was away ignores totals below the one that it knows.
      known = {.done = pair.done, .elsewhere = known.elsewhere};
    }
    known.cycle = cycle_;
    known.in_cycle = pair.done > known.done ? pair.done - known.done : 0;
    known.done = pair.done;
    return known.in_cycle;
  }

  std::uint64_t cycle_ = 0;
  std::vector<Known> known_;  // by pair
};

}  // namespace

const PolicyKind kTotal = {
    .name = "total",
    .what = "shares by weight of what jobs get on all stages together",
    .needs_elsewhere = true,
    .make = [](const PolicySettings& /*settings*/) -> std::unique_ptr<Policy> {
      return std::make_unique<TotalPolicy>();
    }};

}  // namespace vpfs::allocation
