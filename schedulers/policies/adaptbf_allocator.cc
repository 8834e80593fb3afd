#include "schedulers/policies/adaptbf_allocator.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

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

AdapTbfAllocator::Whole::Whole(Wide whole) : shift_(127 - bit_width(whole)) {
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

inline Wide AdapTbfAllocator::Whole::ratio(Wide part) const {
  return multiply_high(part << shift_, inverse_);
}

std::span<const AdapTbfAllocator::Allocation> AdapTbfAllocator::allocate(
    std::span<const Demand> active, std::uint64_t budget) {
  start(active, budget);
  while (!go_on(SIZE_MAX)) {
  }
  return allocations_;
}

void AdapTbfAllocator::start(std::span<const Demand> active, std::uint64_t budget) {
  VPFS_ASSERT(active.size() <= kMostActive && stage_ == Stage::done);
  demands_ = active;
  budget_ = std::min(budget, kMost);
  ++period_;
  nodes_ = 0;
  active_.clear();
  roundings_.clear();
  factors_.clear();
  allocations_.clear();
  if (allocations_.capacity() < active.size()) {
    active_.reserve(active.size());
    roundings_.reserve(active.size());
    factors_.reserve(active.size());
    lenders_.reserve(active.size());
    candidates_.reserve(active.size());
    allocations_.reserve(active.size());
  }
  if (!active.empty()) enter(Stage::take_demands);
}

bool AdapTbfAllocator::go_on(std::size_t steps) {
  constexpr std::array kStages = {
      &AdapTbfAllocator::take_demands,
      &AdapTbfAllocator::divide_by_nodes,
      &AdapTbfAllocator::compare_with_demand,
      &AdapTbfAllocator::lend,
      &AdapTbfAllocator::find_payback_ratio,
      &AdapTbfAllocator::take_back,
      &AdapTbfAllocator::give_back,
      &AdapTbfAllocator::keep,
      &AdapTbfAllocator::keep,  // done
      &AdapTbfAllocator::weigh,
      &AdapTbfAllocator::share,
      &AdapTbfAllocator::find_candidates,
      &AdapTbfAllocator::choose,
      &AdapTbfAllocator::change,
  };
  steps_ = steps;
  while (stage_ != Stage::done) {
    if (!(this->*kStages[std::to_underlying(stage_)])()) return false;
  }
  return true;
}

template <typename Each>
bool AdapTbfAllocator::step_through(std::size_t end, Each each) {
  const std::size_t until = cursor_ + std::min(end - cursor_, steps_);
  steps_ -= until - cursor_;
  for (; cursor_ < until; ++cursor_) each(cursor_);
  return cursor_ == end;
}
template <typename Each>
bool AdapTbfAllocator::for_all(Each each) {
  return step_through(active_.size(),
                      [&](std::size_t index) { each(static_cast<std::uint32_t>(index)); });
}
template <typename Each>
bool AdapTbfAllocator::for_lenders(Each each) {
  return step_through(lenders_.size(), [&](std::size_t at) { each(lenders_[at]); });
}
template <typename Each>
bool AdapTbfAllocator::for_members(Each each) {
  return of_lenders_ ? for_lenders(each) : for_all(each);
}

bool AdapTbfAllocator::take_demands() {
  const auto take = [this](std::size_t index) {
    const Demand& demand = demands_[index];
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
                       .record = account.record,
                       .record_before = account.record});
    roundings_.push_back({.remainder = account.remainder});
  };
  if (!step_through(demands_.size(), take)) return false;
  whole_ = Whole(nodes_);
  parts_ = 0;
  enter(Stage::divide_by_nodes);
  return true;
}

// Eq. 1 and 2 of [ADAPTBF].
bool AdapTbfAllocator::divide_by_nodes() {
  const auto divide = [this](std::uint32_t index) {
    round(index, times(budget_, whole_.ratio(active_[index].nodes)));
  };
  if (!for_all(divide)) return false;
  amount_ = 0;
  sum_ = 0;
  set_members(false, Stage::compare_with_demand);
  end_round(budget_);
  return true;
}

// Eq. 3 to 5.
bool AdapTbfAllocator::compare_with_demand() {
  const auto compare = [this](std::uint32_t index) {
    Active& job = active_[index];
    job.tokens = roundings_[index].part;
    if (job.previous == 0) job.previous = std::max<std::uint64_t>(job.tokens, 1);
    // DF = u + u*p or u*p, times the nodes of all.
    const Wide nodes = job.demand > job.previous ? Wide{nodes_} + job.nodes : Wide{job.nodes};
    factors_.push_back({.factor = Quotient(nodes * job.demand, job.previous)});
    sum_ += factors_.back().factor.whole + 1;
    amount_ += job.tokens - std::min(job.tokens, job.demand);
  };
  if (!for_all(compare)) return false;
  set_members(false, Stage::lend);
  total_ = budget_;
  begin_share(amount_);
  return true;
}

// Eq. 6 to 8, and J+ of eq. 9.
bool AdapTbfAllocator::lend() {
  if (cursor_ == 0) {
    lenders_.clear();
    sum_ = 0;
  }
  const auto lend_one = [this](std::size_t index) {
    Active& job = active_[index];
    const std::uint64_t part = roundings_[index].part;
    job.record += static_cast<std::int64_t>(job.tokens) - static_cast<std::int64_t>(part);
    job.tokens = part;
    if (job.record_before <= 0 || job.record <= 0) return;
    lenders_.push_back(static_cast<std::uint32_t>(index));
    sum_ += factors_[index].factor.whole + 1;
  };
  if (!step_through(active_.size(), lend_one)) return false;
  amount_ = 0;
  enter(lenders_.empty() ? Stage::keep : Stage::find_payback_ratio);
  return true;
}

// C of eq. 13, at most 1: no job can pay back more than it has.
bool AdapTbfAllocator::find_payback_ratio() {
  const Wide twice = Wide{2} * nodes_;
  const int shift = 126 - bit_width(twice);
  if (cursor_ == 0) payback_ratio_ = 0;  // until the end, C times `twice`
  const auto add = [&](std::uint32_t index) {
    const Active& job = active_[index];
    if (payback_ratio_ >= twice << shift) return;
    const Wide demand = Wide{job.nodes} * std::max(job.demand, job.previous);
    if (demand >= twice * job.previous) {
      payback_ratio_ = twice << shift;
      return;
    }
    payback_ratio_ += Quotient(demand, job.previous).scaled(shift);
    if (job.tokens <= job.demand) return;
    payback_ratio_ +=
        Quotient(Wide{job.nodes} * (job.tokens - job.demand), job.tokens).scaled(shift);
  };
  if (!for_lenders(add)) return false;
  constexpr Wide kAll = Wide{1} << kRatioBits;
  const bool all = payback_ratio_ >= twice << shift;
  payback_ratio_ = all ? kAll : Whole(twice << shift).ratio(payback_ratio_);
  enter(Stage::take_back);
  return true;
}

// Eq. 9 to 16.
bool AdapTbfAllocator::take_back() {
  const auto take = [this](std::uint32_t index) {
    Active& job = active_[index];
    if (job.record_before >= 0 || job.record >= 0) return;
    const std::uint64_t taken =
        std::min({magnitude(job.record_before), floor_on_grid(times(job.tokens, payback_ratio_)),
                  job.tokens});
    job.tokens -= taken;
    job.record += static_cast<std::int64_t>(taken);
    amount_ += taken;
  };
  if (!for_all(take)) return false;
  set_members(true, Stage::give_back);
  total_ = amount_;
  begin_share(amount_);
  return true;
}

// Eq. 17 to 20.
bool AdapTbfAllocator::give_back() {
  const auto give = [this](std::uint32_t index) {
    const std::uint64_t part = roundings_[index].part;
    active_[index].tokens += part;
    active_[index].record -= static_cast<std::int64_t>(part);
  };
  if (!for_lenders(give)) return false;
  enter(Stage::keep);
  return true;
}

bool AdapTbfAllocator::keep() {
  const auto keep_one = [this](std::uint32_t index) {
    const Active& job = active_[index];
    Account& account = accounts_[job.job];
    account.record = job.record;
    account.tokens = job.tokens;
    account.remainder = roundings_[index].remainder;
    allocations_.push_back({.job = job.job, .tokens = job.tokens, .record = job.record});
  };
  if (!for_all(keep_one)) return false;
  enter(Stage::done);
  return true;
}

void AdapTbfAllocator::set_members(bool of_lenders, Stage next) {
  of_lenders_ = of_lenders;
  next_ = next;
}

// value = amount * DF / sum DF, beside what the job has in any case. sum_ is at least the sum of
// the factors, which are scaled for their sum to have some 125 bits.
void AdapTbfAllocator::begin_share(std::uint64_t amount) {
  parts_ = 0;
  if (amount == 0) return enter(Stage::share);
  shift_ = 126 - bit_width(sum_);
  sum_ = 0;
  enter(Stage::weigh);
}

bool AdapTbfAllocator::weigh() {
  const auto weigh_one = [this](std::uint32_t index) {
    Factor& of = factors_[index];
    of.weight = of.factor.scaled(shift_);
    sum_ += of.weight;
  };
  if (!for_members(weigh_one)) return false;
  whole_ = Whole(sum_);
  enter(Stage::share);
  return true;
}

bool AdapTbfAllocator::share() {
  const auto share_one = [this](std::uint32_t index) {
    Wide value = amount_ == 0 ? 0 : times(amount_, whole_.ratio(factors_[index].weight));
    const Active& job = active_[index];
    if (!of_lenders_) value += Wide{std::min(job.tokens, job.demand)} << kFractionBits;
    round(index, value);
  };
  if (!for_members(share_one)) return false;
  end_round(total_);
  return true;
}

// Eq. 21 to 25: part = floor(value + remainder), and the parts of all members sum to the total.
void AdapTbfAllocator::round(std::uint32_t index, Wide value) {
  Rounding& of = roundings_[index];
  of.remainder += static_cast<SignedWide>(value);
  const SignedWide on_grid = to_grid(of.remainder);
  of.part = static_cast<std::uint64_t>(std::max<SignedWide>(on_grid >> kGridBits, 0));
  of.rank = static_cast<std::int64_t>(on_grid - (SignedWide{of.part} << kGridBits));
  of.remainder -= SignedWide{of.part} << kFractionBits;
  parts_ += of.part;
}

// Missing tokens go to the largest remainders, each of which a token lowers by one. In a round
// every job whose remainder is not below `least_` is due one token. Only a job that would otherwise
// have fewer than zero tokens starts below zero.
//
// If there are too many tokens, one is taken from each job that has any, the largest remainders
// first, until the sum is right. Each token taken raises the job's remainder by one.
void AdapTbfAllocator::end_round(std::uint64_t total) {
  total_ = total;
  least_ = 0;
  enter(parts_ == total ? next_ : Stage::find_candidates);
}

bool AdapTbfAllocator::find_candidates() {
  if (cursor_ == 0) candidates_.clear();
  const bool add = parts_ < total_;
  const auto consider = [&](std::size_t at) {
    const auto index = of_lenders_ ? lenders_[at] : static_cast<std::uint32_t>(at);
    const Rounding& of = roundings_[index];
    if (add ? of.rank < least_ : of.part == 0) return;
    candidates_.push_back({.rank = of.rank, .job = active_[index].job, .index = index});
  };
  if (!step_through(of_lenders_ ? lenders_.size() : active_.size(), consider)) return false;
  const std::uint64_t wanted = add ? total_ - parts_ : parts_ - total_;
  chosen_ = static_cast<std::size_t>(std::min<std::uint64_t>(wanted, candidates_.size()));
  begin_partition(0, candidates_.size());
  return true;
}

// Finds the first `chosen_` candidates, in any order, by a quickselect.
void AdapTbfAllocator::begin_partition(std::size_t low, std::size_t high) {
  if (high - low < 2 || chosen_ == 0 || chosen_ == candidates_.size()) return enter(Stage::change);
  std::swap(candidates_[low + (high - low) / 2], candidates_[high - 1]);
  selection_ = {.low = low, .high = high, .store = low};
  enter(Stage::choose);
  cursor_ = low;
}

bool AdapTbfAllocator::choose() {
  const Candidate pivot = candidates_[selection_.high - 1];
  const auto compare = [&](std::size_t at) {
    const Candidate& one = candidates_[at];
    const bool before = one.rank != pivot.rank ? one.rank > pivot.rank : one.job < pivot.job;
    std::swap(candidates_[selection_.store], candidates_[at]);
    selection_.store += before ? 1 : 0;
  };
  if (!step_through(selection_.high - 1, compare)) return false;
  end_partition();
  return true;
}

void AdapTbfAllocator::end_partition() {
  const auto [low, high, store] = selection_;
  std::swap(candidates_[store], candidates_[high - 1]);
  if (chosen_ == store || chosen_ == store + 1) return enter(Stage::change);
  chosen_ < store ? begin_partition(low, store) : begin_partition(store + 1, high);
}

bool AdapTbfAllocator::change() {
  const bool add = parts_ < total_;
  const auto change_one = [&](std::size_t at) {
    Rounding& of = roundings_[candidates_[at].index];
    of.part += add ? 1 : ~std::uint64_t{0};
    of.rank -= add ? kGridOne : -kGridOne;
    of.remainder -= add ? kOne : -kOne;
  };
  if (!step_through(chosen_, change_one)) return false;
  parts_ += add ? chosen_ : 0 - chosen_;
  least_ -= kGridOne;
  enter(parts_ == total_ ? next_ : Stage::find_candidates);
  return true;
}

std::int64_t AdapTbfAllocator::record(Job job) const {
  return job < accounts_.size() ? accounts_[job].record : 0;
}

void AdapTbfAllocator::end(Job job) {
  VPFS_ASSERT(stage_ == Stage::done);
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
