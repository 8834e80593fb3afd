#include "control/allocation/psfa.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/check.h"

namespace vpfs::allocation {

void Psfa::begin(Duration period) {
  demands_.begin(period);
  wants_.clear();
  jobs_.clear();
  stages_ = 0;
}

void Psfa::add(const Row& row) {
  if (jobs_.empty() || jobs_.back().number != row.job) {
    jobs_.push_back({.number = row.job,
                     .first = wants_.size(),
                     .weight = row.weight,
                     .most = bounded(row.most)});
  }
  const Want want = {.demand = demands_.of(row.id, row.arrived, row.limited), .stages = row.stages};
  wants_.push_back(want);
  stages_ += want.stages;
  Job& job = jobs_.back();
  ++job.count;
  job.stages += want.stages;
  const bool is_unbounded = job.demand == kUnbounded || want.demand == kUnbounded;
  job.demand = is_unbounded ? kUnbounded : std::min(job.demand + want.demand, kMostAmount);
}

// Returns what the floors leave.
std::expected<std::uint64_t, Psfa::NoFloor> Psfa::set_floors(std::uint64_t capacity,
                                                             std::uint64_t floor) {
  const std::uint64_t of_all = std::min(floor, capacity / (kFloorPart * stages_));
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
  // What all leave is headroom, by weight.
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    const Job& job = jobs_[i];
    claims_[i].demand =
        job.most > 0 ? job.most - job.floor * job.stages - by_demand_[i] : kUnbounded;
  }
  headroom_.resize(jobs_.size());
  (void)max_min_.fill(left, claims_, headroom_);
}

std::expected<void, Psfa::NoFloor> Psfa::finish(std::uint64_t capacity, std::uint64_t floor,
                                                std::span<std::uint64_t> caps) {
  VPFS_ASSERT(caps.size() == wants_.size() && capacity <= kMostAmount);
  if (wants_.empty()) return {};
  const auto left = set_floors(capacity, floor);
  if (!left) return std::unexpected(left.error());
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
  begin(period);
  for (const Row& row : rows) add(row);
  return finish(capacity, floor, caps);
}

namespace {

class PsfaPolicy final : public Policy {
 public:
  explicit PsfaPolicy(const PolicySettings& settings) : settings_(settings) {}

  Result<void> allocate(std::span<const Pair> pairs, Duration period, const Amounts& less,
                        std::span<const std::string_view> jobs, std::span<Grant> grants) override {
    constexpr std::size_t kAhead = 8;
    for (Divided& each : resources_) each.psfa.begin(period);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const Pair& pair = pairs[i];
      for (Divided& each : resources_) {
        if (settings_.capacity.*each.resource.amount == 0) continue;
        if (i + kAhead < pairs.size()) each.psfa.prefetch(pairs[i + kAhead].id);
        each.psfa.add({.id = pair.id,
                       .job = pair.job,
                       .weight = pair.weight,
                       .most = pair.most.*each.resource.amount,
                       .arrived = pair.arrived.*each.resource.amount,
                       .limited = pair.limited,
                       .stages = pair.stages});
      }
    }
    for (Divided& each : resources_) {
      if (settings_.capacity.*each.resource.amount == 0) continue;
      if (Result<void> done = finish(each, pairs.size(), less, jobs); !done) return done;
    }
    for (const Divided& each : resources_) {
      const bool is_divided = settings_.capacity.*each.resource.amount > 0;
      for (std::size_t i = 0; i < grants.size(); ++i) {
        grants[i].*each.resource.grant = is_divided ? std::optional(each.caps[i]) : std::nullopt;
      }
    }
    return {};
  }

 private:
  struct Divided {
    const Resource& resource;
    Psfa psfa = {};
    std::vector<std::uint64_t> caps = {};  // kept from one call to the next
  };

  Result<void> finish(Divided& divided, std::size_t pairs, const Amounts& less,
                      std::span<const std::string_view> jobs) {
    const Resource& resource = divided.resource;
    divided.caps.resize(pairs);
    const std::uint64_t capacity = std::min(settings_.capacity.*resource.amount, kMostAmount);
    const std::uint64_t taken = std::min(less.*resource.amount, capacity);
    const std::uint64_t floor = std::max<std::uint64_t>(settings_.floor.*resource.amount, 1);
    const auto done = divided.psfa.finish(capacity - taken, floor, divided.caps);
    if (done) return {};
    return fail(
        fmt::format("capacity.{}: no floor is left for job {}: {} a second, less {} of "
                    "silent stages, for {} pairs",
                    resource.name, jobs[done.error().job], capacity, taken, pairs));
  }

  const PolicySettings settings_;
  std::array<Divided, kResources.size()> resources_ = {
      {{.resource = kResources[0]}, {.resource = kResources[1]}, {.resource = kResources[2]}}};
};

}  // namespace

const PolicyKind kPsfa = {
    .name = "psfa",
    .what = "caps that follow what jobs ask for, in proportion to their weights",
    .needs_caps = true,
    .make = [](const PolicySettings& settings) -> std::unique_ptr<Policy> {
      return std::make_unique<PsfaPolicy>(settings);
    }};

}  // namespace vpfs::allocation
