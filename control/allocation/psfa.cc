#include "control/allocation/psfa.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/check.h"
#include "base/result.h"

namespace vpfs::allocation {

// Returns what the floors leave.
std::expected<std::uint64_t, Psfa::NoFloor> Psfa::set_floors(std::uint64_t capacity,
                                                             std::uint64_t floor) {
  std::uint64_t stages = 0;
  for (const Job& job : jobs_) stages += job.stages;
  const std::uint64_t of_all = std::min(floor, capacity / (kFloorPart * stages));
  std::uint64_t left = capacity;
  for (Job& job : jobs_) {
    job.floor = job.most > 0 ? std::min(of_all, job.most / job.stages) : of_all;
    if (job.floor == 0) return std::unexpected(NoFloor{.job = job.number});
    left -= job.floor * job.stages;
  }
  return left;
}

void Psfa::divide_among_jobs(std::uint64_t amount) {
  claims_.clear();
  for (const Job& job : jobs_) {
    const std::uint64_t floors = job.floor * job.stages;
    const std::uint64_t beyond = job.demand > floors ? job.demand - floors : 0;
    std::uint64_t demand = job.demand == kUnbounded ? kUnbounded : beyond;
    if (job.most > 0) demand = std::min(demand, job.most - floors);
    claims_.push_back({.weight = job.weight, .demand = demand});
  }
  by_demand_.resize(jobs_.size());
  const std::uint64_t left = max_min_.fill(amount, claims_, by_demand_);
  // The rest is headroom, by weight.
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    const Job& job = jobs_[i];
    claims_[i].demand =
        job.most > 0 ? job.most - job.floor * job.stages - by_demand_[i] : kUnbounded;
  }
  headroom_.resize(jobs_.size());
  (void)max_min_.fill(left, claims_, headroom_);
}

std::expected<void, Psfa::NoFloor> Psfa::divide_all(std::uint64_t capacity, std::uint64_t floor,
                                                    std::span<std::uint64_t> caps) {
  VPFS_ASSERT(capacity <= kMostAmount);
  if (wants_.empty()) return {};
  const auto left = set_floors(capacity, floor);
  VPFS_TRY(left);
  divide_among_jobs(*left);
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    const Job& job = jobs_[i];
    within_job_.divide(by_demand_[i] + headroom_[i], job.floor,
                       std::span(wants_).subspan(job.first, job.count),
                       caps.subspan(job.first, job.count));
  }
  return {};
}

std::expected<void, Psfa::NoFloor> Psfa::divide(std::span<const Row> rows, Duration period,
                                                std::uint64_t capacity, std::uint64_t floor,
                                                std::span<std::uint64_t> caps) {
  VPFS_ASSERT(caps.size() == rows.size());
  return divide_rows([rows](std::size_t i) { return rows[i]; }, period, capacity, floor, caps);
}

namespace {

class PsfaPolicy final : public AllocationPolicy {
 public:
  explicit PsfaPolicy(const AllocationPolicySettings& settings) : settings_(settings) {}

  Result<void> allocate(std::span<const Pair> pairs, Duration period, const Amounts& less,
                        std::span<const std::string_view> jobs, std::span<Grant> grants) override {
    for (Divided& each : resources_) {
      if (!is_divided(each.resource)) continue;
      if (Result<void> done = divide(each, pairs, period, less, jobs); !done) return done;
    }
    for (std::size_t which = 0; which < resources_.size(); ++which) {
      const Divided& each = resources_[which];
      if (!is_divided(each.resource)) {
        grant_bounds(bounds_[which], each.resource, pairs, period, grants);
        continue;
      }
      for (std::size_t i = 0; i < each.caps.size(); ++i) {
        grants[each.pair(i)].*each.resource.grant = each.caps[i];
      }
    }
    return {};
  }

 private:
  struct Divided {
    const Resource& resource;
    Psfa psfa = {};
    // Kept from one call to the next.
    std::vector<std::uint64_t> caps = {};
    std::vector<std::uint32_t> parts = {};  // the pairs that have a part, unless all have
    bool all_have = true;

    [[nodiscard]] std::size_t pair(std::size_t row) const { return all_have ? row : parts[row]; }
  };

  [[nodiscard]] bool is_divided(const Resource& resource) const {
    return settings_.capacity.*resource.amount > 0;
  }

  static void choose(Divided& divided, std::span<const Pair> pairs) {
    const auto has = [&divided](const Pair& pair) { return has_part(pair, divided.resource); };
    divided.all_have = std::ranges::all_of(pairs, has);
    if (divided.all_have) return;
    divided.parts.clear();
    for (std::uint32_t i = 0; i < pairs.size(); ++i) {
      if (has(pairs[i])) divided.parts.push_back(i);
    }
  }

  Result<void> divide(Divided& divided, std::span<const Pair> pairs, Duration period,
                      const Amounts& less, std::span<const std::string_view> jobs) {
    const Resource& resource = divided.resource;
    choose(divided, pairs);
    const auto row_at = [&pairs, &divided, amount = resource.amount](std::size_t i) {
      const Pair& pair = pairs[divided.pair(i)];
      return Psfa::Row{.id = pair.id,
                       .job = pair.job,
                       .weight = pair.weight,
                       .most = pair.most.*amount,
                       .arrived = pair.arrived.*amount,
                       .limited = pair.limited,
                       .stages = pair.stages};
    };
    divided.caps.resize(divided.all_have ? pairs.size() : divided.parts.size());
    const std::uint64_t capacity = std::min(settings_.capacity.*resource.amount, kMostAmount);
    const std::uint64_t taken = std::min(less.*resource.amount, capacity);
    const std::uint64_t floor = std::max<std::uint64_t>(settings_.floor.*resource.amount, 1);
    const auto done =
        divided.psfa.divide_rows(row_at, period, capacity - taken, floor, divided.caps);
    if (done) return {};
    return fail(
        fmt::format("capacity.{}: no floor is left for job {}: {} a second, less {} of "
                    "silent stages, for {} pairs",
                    resource.name, jobs[done.error().job], capacity, taken, divided.caps.size()));
  }

  // The bound of a job needs no capacity.
  void grant_bounds(AmountDivider& divider, const Resource& resource, std::span<const Pair> pairs,
                    Duration period, std::span<Grant> grants) const {
    divider.begin(period);
    for_each_job(pairs, [&](std::size_t first, std::size_t count) {
      const std::uint64_t most = pairs[first].most.*resource.amount;
      if (most == 0) return;
      divider.divide(most, settings_.floor.*resource.amount, pairs.subspan(first, count),
                     grants.subspan(first, count));
    });
  }

  const AllocationPolicySettings settings_;
  std::array<Divided, kResources.size()> resources_ = {
      {{.resource = kResources[0]}, {.resource = kResources[1]}, {.resource = kResources[2]}}};
  std::array<AmountDivider, kResources.size()> bounds_ = {
      AmountDivider(kResources[0]), AmountDivider(kResources[1]), AmountDivider(kResources[2])};
};

}  // namespace

const AllocationPolicyKind kPsfa = {
    .name = "psfa",
    .what = "caps that follow what jobs ask for, in proportion to their weights",
    .needs_caps = true,
    .make = [](const AllocationPolicySettings& settings) -> std::unique_ptr<AllocationPolicy> {
      return std::make_unique<PsfaPolicy>(settings);
    }};

}  // namespace vpfs::allocation
