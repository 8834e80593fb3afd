#include "control/allocation/psfa.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"

namespace vpfs::allocation {
namespace {

__extension__ using Wide = unsigned __int128;

// Amounts that are not unbounded stay below kMostAmount, so that no sum of two overflows.
std::uint64_t bounded(Wide amount) {
  return static_cast<std::uint64_t>(std::min<Wide>(amount, kMostAmount));
}

// Rounded up.
std::uint64_t each_second(std::uint64_t arrived, const Divider& period) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  if (arrived < std::uint64_t{1} << 34) {
    const Divider::Result exact = period.divide(arrived * kSecond);
    return exact.quotient + (exact.remainder > 0 ? 1 : 0);
  }
  const Wide nanoseconds = period.divisor();
  return bounded((Wide{arrived} * kSecond + nanoseconds - 1) / nanoseconds);
}

// What is left of an amount without the first part.
std::uint64_t beyond(std::uint64_t part, std::uint64_t amount) {
  return amount > part ? amount - part : 0;
}

}  // namespace

std::uint64_t Psfa::demand_of(const Row& row, const Divider& period, Duration held) {
  if (row.id >= histories_.size()) histories_.resize(std::size_t{row.id} + 1);
  History& history = histories_[row.id];
  if (history.cycle == 0 || history.cycle + 1 != cycle_) history = {};
  history.cycle = cycle_;
  std::shift_right(history.wanted.begin(), history.wanted.end(), 1);
  std::shift_right(history.limited.begin(), history.limited.end(), 1);
  history.wanted.front() = each_second(row.arrived, period);
  history.limited.front() = row.limited >= held;
  if (std::ranges::find(history.limited, true) != history.limited.end()) return kUnbounded;
  const std::uint64_t largest = std::ranges::max(history.wanted);
  return bounded(Wide{largest} + largest / 4 + (largest % 4 > 0 ? 1 : 0));
}

void Psfa::find_jobs(std::span<const Row> rows) {
  jobs_.clear();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i == 0 || rows[i].job != rows[i - 1].job) {
      jobs_.push_back({.first = i, .weight = rows[i].weight, .most = bounded(rows[i].most)});
    }
    ++jobs_.back().count;
  }
}

// Returns what the floors leave.
std::expected<std::uint64_t, Psfa::NoFloor> Psfa::set_floors(std::span<const Row> rows,
                                                             std::uint64_t capacity,
                                                             std::uint64_t floor) {
  const std::uint64_t of_all = std::min(floor, capacity / (kFloorPart * rows.size()));
  std::uint64_t left = capacity;
  for (Job& job : jobs_) {
    job.floor = job.most > 0 ? std::min(of_all, job.most / job.count) : of_all;
    if (job.floor == 0) return std::unexpected(NoFloor{.job = rows[job.first].job});
    left -= job.floor * job.count;
  }
  return left;
}

// Beyond the floors.
void Psfa::set_demands() {
  for (Job& job : jobs_) {
    const std::uint64_t floors = job.floor * job.count;
    Wide sum = 0;
    bool is_unbounded = false;
    for (const std::uint64_t each : std::span(demands_).subspan(job.first, job.count)) {
      sum += each;
      is_unbounded = is_unbounded || each == kUnbounded;
    }
    job.demand = is_unbounded ? kUnbounded : beyond(floors, bounded(sum));
    if (job.most > 0) job.demand = std::min(job.demand, job.most - floors);
  }
}

void Psfa::divide_among_jobs(std::uint64_t amount) {
  claims_.clear();
  for (const Job& job : jobs_) claims_.push_back({.weight = job.weight, .demand = job.demand});
  by_demand_.resize(jobs_.size());
  const std::uint64_t left = max_min_.fill(amount, claims_, by_demand_);
  // What all leave is headroom, by weight.
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    const Job& job = jobs_[i];
    claims_[i].demand =
        job.most > 0 ? job.most - job.floor * job.count - by_demand_[i] : kUnbounded;
  }
  headroom_.resize(jobs_.size());
  (void)max_min_.fill(left, claims_, headroom_);
}

void Psfa::divide_within(const Job& job, std::uint64_t amount, std::span<std::uint64_t> caps) {
  claims_.clear();
  for (std::size_t i = job.first; i < job.first + job.count; ++i) {
    const std::uint64_t demand = demands_[i];
    claims_.push_back({.demand = demand == kUnbounded ? demand : beyond(job.floor, demand)});
  }
  const std::span<std::uint64_t> own = caps.subspan(job.first, job.count);
  const std::uint64_t left = max_min_.fill(amount, claims_, own);
  if (left == 0) {
    for (std::uint64_t& each : own) each += job.floor;
    return;
  }
  for (Claim& each : claims_) each.demand = kUnbounded;
  part_.resize(job.count);
  (void)max_min_.fill(left, claims_, part_);
  for (std::size_t i = 0; i < job.count; ++i) own[i] += job.floor + part_[i];
}

std::expected<void, Psfa::NoFloor> Psfa::divide(std::span<const Row> rows, Duration period,
                                                std::uint64_t capacity, std::uint64_t floor,
                                                std::span<std::uint64_t> caps) {
  VPFS_ASSERT(caps.size() == rows.size() && period > Duration::zero() && capacity <= kMostAmount);
  ++cycle_;
  if (rows.empty()) return {};
  demands_.clear();
  const Divider nanoseconds(static_cast<std::uint64_t>(period.count()));
  for (const Row& row : rows) {
    demands_.push_back(demand_of(row, nanoseconds, period / kLimitedPart));
  }
  find_jobs(rows);
  const auto left = set_floors(rows, capacity, floor);
  if (!left) return std::unexpected(left.error());
  set_demands();
  divide_among_jobs(*left);
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    divide_within(jobs_[i], by_demand_[i] + headroom_[i], caps);
  }
  return {};
}

namespace {

class PsfaPolicy final : public Policy {
 public:
  explicit PsfaPolicy(const PolicySettings& settings) : settings_(settings) {}

  Result<void> allocate(std::span<const Pair> pairs, Duration period, const Amounts& less,
                        std::span<const std::string_view> jobs, std::span<Grant> grants) override {
    std::ranges::fill(grants, Grant{});
    for (std::size_t i = 0; i < kResources.size(); ++i) {
      if (settings_.capacity.*kResources[i].amount == 0) continue;
      Result<void> done = divide(psfas_[i], kResources[i], pairs, period, less, jobs);
      if (!done) return done;
      for (std::size_t pair = 0; pair < grants.size(); ++pair) {
        grants[pair].*kResources[i].grant = caps_[pair];
      }
    }
    return {};
  }

 private:
  Result<void> divide(Psfa& psfa, const Resource& resource, std::span<const Pair> pairs,
                      Duration period, const Amounts& less,
                      std::span<const std::string_view> jobs) {
    rows_.clear();
    for (const Pair& pair : pairs) {
      rows_.push_back({.id = pair.id,
                       .job = pair.job,
                       .weight = pair.weight,
                       .most = pair.most.*resource.amount,
                       .arrived = pair.arrived.*resource.amount,
                       .limited = pair.limited});
    }
    caps_.resize(pairs.size());
    const std::uint64_t capacity = std::min(settings_.capacity.*resource.amount, kMostAmount);
    const std::uint64_t taken = std::min(less.*resource.amount, capacity);
    const std::uint64_t floor = std::max<std::uint64_t>(settings_.floor.*resource.amount, 1);
    const auto done = psfa.divide(rows_, period, capacity - taken, floor, caps_);
    if (done) return {};
    return fail(
        fmt::format("capacity.{}: no floor is left for job {}: {} a second, less {} of "
                    "silent stages, for {} pairs",
                    resource.name, jobs[done.error().job], capacity, taken, pairs.size()));
  }

  const PolicySettings settings_;
  std::array<Psfa, kResources.size()> psfas_;
  // Kept from one call to the next.
  std::vector<Psfa::Row> rows_;
  std::vector<std::uint64_t> caps_;
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
