#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/result.h"
#include "control/allocation/allocation_policy.h"

namespace vpfs::allocation::test {

// What a job did on a stage, by names.
struct Did {
  std::string job;
  std::string stage;
  Pair pair = {};
};

// Gives a policy cycles by names, as a coordinator would.
class Cycles {
 public:
  explicit Cycles(AllocationPolicy& policy) : policy_(policy) {}

  // By job and stage.
  using Grants = std::map<std::pair<std::string, std::string>, Grant>;
  [[nodiscard]] Result<Grants> next(std::vector<Did> rows, const Amounts& less = {},
                                    Duration period = std::chrono::seconds(1)) {
    std::ranges::sort(rows, {}, [](const Did& each) { return std::tie(each.job, each.stage); });
    std::set<std::string_view> job_names;
    std::set<std::string_view> stage_names;
    for (const Did& each : rows) {
      job_names.insert(each.job);
      stage_names.insert(each.stage);
    }
    const std::vector<std::string_view> jobs(job_names.begin(), job_names.end());
    const std::vector<std::string_view> stages(stage_names.begin(), stage_names.end());
    const auto number = [](const std::vector<std::string_view>& names, std::string_view name) {
      return static_cast<std::uint32_t>(std::ranges::find(names, name) - names.begin());
    };
    std::vector<Pair> pairs;
    for (const Did& each : rows) {
      Pair& pair = pairs.emplace_back(each.pair);
      pair.job = number(jobs, each.job);
      pair.stage = number(stages, each.stage);
      pair.id = ids_.try_emplace({each.job, each.stage}, static_cast<std::uint32_t>(ids_.size()))
                    .first->second;
    }
    std::vector<Grant> grants(pairs.size());
    VPFS_TRY(policy_.allocate(pairs, period, less, jobs, grants));
    Grants named;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      named.emplace(std::pair(rows[i].job, rows[i].stage), grants[i]);
    }
    return named;
  }

 private:
  AllocationPolicy& policy_;
  std::map<std::pair<std::string, std::string>, std::uint32_t> ids_;
};

}  // namespace vpfs::allocation::test
