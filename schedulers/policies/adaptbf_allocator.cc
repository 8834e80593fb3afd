#include "schedulers/policies/adaptbf_allocator.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/check.h"
#include "base/wide.h"

namespace vpfs {
namespace {

constexpr int kFractionBits = 64;
constexpr int kGridBits = 32;
constexpr SignedWide kOne = SignedWide{1} << kFractionBits;
constexpr std::int64_t kGridOne = std::int64_t{1} << kGridBits;
// Ratios, at most 1, are kept to 2^-125: a ratio times kMost is then still good to 2^-84.
constexpr int kRatioBits = 125;

constexpr std::uint64_t high_half(Wide value) {
  return static_cast<std::uint64_t>(value >> 64);
}
constexpr std::uint64_t low_half(Wide value) {
  return static_cast<std::uint64_t>(value);
}
constexpr int bit_width(Wide value) {
  const std::uint64_t high = high_half(value);
  return static_cast<int>(high != 0 ? 64 + std::bit_width(high) : std::bit_width(low_half(value)));
}

// left * right / 2^128.
constexpr Wide multiply_high(Wide left, Wide right) {
  const Wide low = Wide{low_half(left)} * low_half(right);
  const Wide cross = Wide{high_half(left)} * low_half(right) + high_half(low);
  const Wide other = Wide{low_half(left)} * high_half(right) + low_half(cross);
  return Wide{high_half(left)} * high_half(right) + high_half(cross) + high_half(other);
}

// Ratios to one whole, 1 <= whole < 2^127, for one slow division.
class Whole {
 public:
  explicit Whole(Wide whole) : shift_(127 - bit_width(whole)) {
    const Wide divisor = whole << shift_;
    Wide rest = Wide{1} << 126;
    for (int bit = 0; bit < 127; ++bit) {
      rest <<= 1;
      inverse_ <<= 1;
      if (rest < divisor) continue;
      rest -= divisor;
      inverse_ |= 1;
    }
  }

  // part / whole times 2^kRatioBits; part <= whole.
  [[nodiscard]] Wide ratio(Wide part) const { return multiply_high(part << shift_, inverse_); }

 private:
  int shift_;
  Wide inverse_ = 0;  // 2^253 / divisor
};

// amount * ratio times 2^kFractionBits, rounded to nearest; amount <= kMost.
constexpr Wide times(std::uint64_t amount, Wide ratio) {
  constexpr int kExtra = kRatioBits - kFractionBits;
  const Wide high = Wide{high_half(ratio)} * amount;
  const Wide low = Wide{low_half(ratio)} * amount;
  return (high << (64 - kExtra)) + ((low + (Wide{1} << (kExtra - 1))) >> kExtra);
}

constexpr SignedWide to_grid(SignedWide value) {
  constexpr int kExtra = kFractionBits - kGridBits;
  return (value + (SignedWide{1} << (kExtra - 1))) >> kExtra;
}
constexpr std::uint64_t floor_on_grid(Wide value) {
  return static_cast<std::uint64_t>(to_grid(static_cast<SignedWide>(value)) >> kGridBits);
}

constexpr std::uint64_t magnitude(std::int64_t value) {
  return value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
}

}  // namespace

AdapTbfAllocator::Quotient::Quotient(Wide numerator, std::uint64_t by)
    : whole(numerator / by), rest(low_half(numerator - whole * by)), divisor(by) {}

Wide AdapTbfAllocator::Quotient::scaled(int shift) const {
  if (rest == 0) return whole << shift;
  const Wide shifted = Wide{rest} << 64;
  const Wide high = shifted / divisor;
  Wide fraction = high << 64;
  if (shift >= 64) fraction |= ((shifted - high * divisor) << 64) / divisor;
  return (whole << shift) + (fraction >> (128 - shift)) + (fraction >> (127 - shift) & 1);
}

std::span<const AdapTbfAllocator::Allocation> AdapTbfAllocator::allocate(
    std::span<const Demand> active, std::uint64_t budget) {
  budget = std::min(budget, kMost);
  begin(active);
  if (!active.empty()) {
    divide_by_nodes(budget);
    lend_surplus(budget);
    pay_back();
  }
  keep();
  return allocations_;
}

void AdapTbfAllocator::begin(std::span<const Demand> active) {
  VPFS_ASSERT(active.size() <= kMostActive);
  ++period_;
  nodes_ = 0;
  active_.clear();
  for (const Demand& demand : active) {
    if (demand.job >= accounts_.size()) accounts_.resize(std::size_t{demand.job} + 1);
    Account& account = accounts_[demand.job];
    VPFS_ASSERT(account.period != period_);  // each job once
    const bool was_active = account.period + 1 == period_;
    account.period = period_;
    const std::uint64_t nodes = std::clamp(demand.nodes, std::uint64_t{1}, kMost);
    nodes_ += nodes;
    active_.push_back({.job = demand.job,
                       .nodes = nodes,
                       .demand = std::clamp(demand.tokens, std::uint64_t{1}, kMost),
                       .previous = was_active ? account.tokens : 0,
                       .tokens = 0,
                       .factor = Quotient(0, 1),
                       .weight = 0,
                       .value = 0,
                       .remainder = account.remainder,
                       .rank = 0,
                       .part = 0,
                       .record = account.record,
                       .record_before = account.record});
  }
  if (everyone_.capacity() < active.size()) {
    everyone_.reserve(active.size());
    lenders_.reserve(active.size());
    candidates_.reserve(active.size());
    allocations_.reserve(active.size());
  }
  everyone_.resize(active.size());
  std::iota(everyone_.begin(), everyone_.end(), 0U);
}

// Eq. 1 and 2 of [ADAPTBF].
void AdapTbfAllocator::divide_by_nodes(std::uint64_t budget) {
  const Whole all(nodes_);
  for (Active& job : active_) job.value = times(budget, all.ratio(job.nodes));
  round(everyone_, budget);
  for (Active& job : active_) job.tokens = job.part;
}

// Eq. 3 to 8.
void AdapTbfAllocator::lend_surplus(std::uint64_t budget) {
  std::uint64_t surplus = 0;
  for (Active& job : active_) {
    if (job.previous == 0) job.previous = std::max<std::uint64_t>(job.tokens, 1);
    // DF = u + u*p or u*p, times the nodes of all.
    const Wide nodes = job.demand > job.previous ? Wide{nodes_} + job.nodes : Wide{job.nodes};
    job.factor = Quotient(nodes * job.demand, job.previous);
    surplus += job.tokens - std::min(job.tokens, job.demand);
  }
  share_by_factor(everyone_, surplus);
  for (Active& job : active_) job.value += Wide{std::min(job.tokens, job.demand)} << kFractionBits;
  round(everyone_, budget);
  for (Active& job : active_) {
    job.record += static_cast<std::int64_t>(job.tokens) - static_cast<std::int64_t>(job.part);
    job.tokens = job.part;
  }
}

// Eq. 9 to 20.
void AdapTbfAllocator::pay_back() {
  lenders_.clear();
  for (const std::uint32_t index : everyone_) {
    const Active& job = active_[index];
    if (job.record_before > 0 && job.record > 0) lenders_.push_back(index);
  }
  if (lenders_.empty()) return;

  const Wide ratio = payback_ratio();
  std::uint64_t taken = 0;
  for (Active& job : active_) {
    if (job.record_before >= 0 || job.record >= 0) continue;
    const std::uint64_t take = std::min(
        {magnitude(job.record_before), floor_on_grid(times(job.tokens, ratio)), job.tokens});
    job.tokens -= take;
    job.record += static_cast<std::int64_t>(take);
    taken += take;
  }
  share_by_factor(lenders_, taken);
  round(lenders_, taken);
  for (const std::uint32_t index : lenders_) {
    Active& job = active_[index];
    job.tokens += job.part;
    job.record -= static_cast<std::int64_t>(job.part);
  }
}

// C of eq. 13, at most 1: no job can pay back more than it has.
Wide AdapTbfAllocator::payback_ratio() const {
  constexpr Wide kAll = Wide{1} << kRatioBits;
  const Wide twice = Wide{2} * nodes_;
  const int shift = 126 - bit_width(twice);
  Wide sum = 0;  // C times `twice`
  for (const std::uint32_t index : lenders_) {
    const Active& job = active_[index];
    const Wide demand = Wide{job.nodes} * std::max(job.demand, job.previous);
    if (demand >= twice * job.previous) return kAll;
    sum += Quotient(demand, job.previous).scaled(shift);
    if (job.tokens > job.demand) {
      sum += Quotient(Wide{job.nodes} * (job.tokens - job.demand), job.tokens).scaled(shift);
    }
    if (sum >= twice << shift) return kAll;
  }
  return Whole(twice << shift).ratio(sum);
}

// value = amount * DF / sum DF. The factors are scaled for their sum to have some 125 bits.
void AdapTbfAllocator::share_by_factor(const Indices& members, std::uint64_t amount) {
  if (amount == 0) {
    for (const std::uint32_t index : members) active_[index].value = 0;
    return;
  }
  Wide sum = 0;
  for (const std::uint32_t index : members) sum += active_[index].factor.whole + 1;
  const int shift = 126 - bit_width(sum);
  sum = 0;
  for (const std::uint32_t index : members) {
    Active& job = active_[index];
    job.weight = job.factor.scaled(shift);
    sum += job.weight;
  }
  const Whole all(sum);
  for (const std::uint32_t index : members) {
    Active& job = active_[index];
    job.value = times(amount, all.ratio(job.weight));
  }
}

// Eq. 21 to 25: part = floor(value + remainder), and the parts of all members sum to `total`.
void AdapTbfAllocator::round(const Indices& members, std::uint64_t total) {
  std::uint64_t sum = 0;
  for (const std::uint32_t index : members) {
    Active& job = active_[index];
    job.remainder += static_cast<SignedWide>(job.value);
    const SignedWide on_grid = to_grid(job.remainder);
    job.part = static_cast<std::uint64_t>(std::max<SignedWide>(on_grid >> kGridBits, 0));
    job.rank = static_cast<std::int64_t>(on_grid - (SignedWide{job.part} << kGridBits));
    job.remainder -= SignedWide{job.part} << kFractionBits;
    sum += job.part;
  }
  if (sum < total) add_tokens(members, total - sum);
  if (sum > total) take_tokens(members, sum - total);
}

// Each token goes to the largest remainder at that moment and lowers it by one. In a round every
// job whose remainder is not below `least` is due one token. Only a job that would otherwise have
// fewer than zero tokens starts below zero.
void AdapTbfAllocator::add_tokens(const Indices& members, std::uint64_t missing) {
  for (std::int64_t least = 0; missing > 0; least -= kGridOne) {
    candidates_.clear();
    for (const std::uint32_t index : members) {
      if (active_[index].rank >= least) consider(index);
    }
    const std::uint64_t count = std::min<std::uint64_t>(missing, candidates_.size());
    change_largest(count, true);
    missing -= count;
  }
}

// Takes one token from each job that has any, the largest remainders first, and repeats while there
// are too many. Each token taken raises the job's remainder by one.
void AdapTbfAllocator::take_tokens(const Indices& members, std::uint64_t excess) {
  while (excess > 0) {
    candidates_.clear();
    for (const std::uint32_t index : members) {
      if (active_[index].part > 0) consider(index);
    }
    const std::uint64_t count = std::min<std::uint64_t>(excess, candidates_.size());
    change_largest(count, false);
    excess -= count;
  }
}

void AdapTbfAllocator::consider(std::uint32_t index) {
  const Active& job = active_[index];
  candidates_.push_back({.rank = job.rank, .job = job.job, .index = index});
}

void AdapTbfAllocator::change_largest(std::uint64_t count, bool add) {
  const auto end = candidates_.begin() + static_cast<std::ptrdiff_t>(count);
  std::ranges::nth_element(candidates_, end, [](const Candidate& one, const Candidate& two) {
    return one.rank != two.rank ? one.rank > two.rank : one.job < two.job;
  });
  for (auto candidate = candidates_.begin(); candidate != end; ++candidate) {
    Active& job = active_[candidate->index];
    job.part += add ? 1 : ~std::uint64_t{0};
    job.rank -= add ? kGridOne : -kGridOne;
    job.remainder -= add ? kOne : -kOne;
  }
}

void AdapTbfAllocator::keep() {
  allocations_.clear();
  for (const Active& job : active_) {
    Account& account = accounts_[job.job];
    account.record = job.record;
    account.tokens = job.tokens;
    account.remainder = job.remainder;
    allocations_.push_back({.job = job.job, .tokens = job.tokens, .record = job.record});
  }
}

std::int64_t AdapTbfAllocator::record(Job job) const {
  return job < accounts_.size() ? accounts_[job].record : 0;
}

void AdapTbfAllocator::end(Job job) {
  if (job >= accounts_.size()) return;
  const std::int64_t ended = accounts_[job].record;
  accounts_[job] = {};
  if (ended == 0) return;

  const auto is_other_side = [&](const Account& account) {
    return ended > 0 ? account.record < 0 : account.record > 0;
  };
  Wide sum = 0;
  for (const Account& account : accounts_) {
    if (is_other_side(account)) sum += magnitude(account.record);
  }
  std::uint64_t left = magnitude(ended);
  VPFS_ASSERT(sum > 0 && sum >= left);  // since the records of all summed to zero
  const auto settle = [&](Account& account, std::uint64_t amount) {
    const auto change = static_cast<std::int64_t>(amount);
    account.record += ended > 0 ? change : -change;
    left -= amount;
  };
  settlements_.clear();
  settlements_.reserve(accounts_.size());
  for (Job other = 0; other < accounts_.size(); ++other) {
    Account& account = accounts_[other];
    if (!is_other_side(account)) continue;
    const Wide product = Wide{magnitude(account.record)} * magnitude(ended);
    settlements_.push_back({.job = other, .rest = product % sum});
    settle(account, low_half(product / sum));
  }
  const auto end = settlements_.begin() + static_cast<std::ptrdiff_t>(left);
  std::ranges::nth_element(settlements_, end, [](const Settlement& one, const Settlement& two) {
    return one.rest != two.rest ? one.rest > two.rest : one.job < two.job;
  });
  std::for_each(settlements_.begin(), end, [&](Settlement& one) { settle(accounts_[one.job], 1); });
}

}  // namespace vpfs
