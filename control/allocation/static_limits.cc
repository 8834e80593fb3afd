#include "control/allocation/static_limits.h"

namespace vpfs::allocation {
namespace {

std::optional<std::uint64_t> limit(std::uint64_t amount) {
  return amount > 0 ? std::optional(amount) : std::nullopt;
}

class StaticPolicy final : public Policy {
 public:
  explicit StaticPolicy(const PolicySettings& settings) : settings_(settings) {}

  Result<void> allocate(std::span<const Pair> pairs, Duration /*period*/, const Amounts& /*less*/,
                        std::span<const std::string_view> jobs, std::span<Grant> grants) override {
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      if (i > 0 && pairs[i].job == pairs[i - 1].job) {
        grants[i] = grants[i - 1];
        continue;
      }
      const auto found = settings_.limits.find(jobs[pairs[i].job]);
      grants[i] = {};
      if (found == settings_.limits.end()) continue;
      grants[i] = {.bytes = limit(found->second.bytes),
                   .operations = limit(found->second.operations),
                   .metadata_operations = limit(found->second.metadata_operations)};
    }
    return {};
  }

 private:
  const PolicySettings settings_;
};

}  // namespace

const PolicyKind kStatic = {
    .name = "static",
    .what = "the limits that the configuration has for each job, on each stage",
    .needs_caps = true,
    .make = [](const PolicySettings& settings) -> std::unique_ptr<Policy> {
      return std::make_unique<StaticPolicy>(settings);
    }};

}  // namespace vpfs::allocation
