#include "base/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>

#include "base/wide.h"

namespace vpfs {
namespace {

// Buckets count in ns; the first power of two (below 1024 ns) is divided evenly.
constexpr int kFirstBits = 10;

}  // namespace

std::size_t LatencyHistogram::index_of(Duration latency) {
  const auto ns = static_cast<std::uint64_t>(std::max<std::int64_t>(latency.count(), 0));
  const int power = std::max(static_cast<int>(std::bit_width(ns)) - kFirstBits, 0);
  if (power >= kPowers) return kBuckets - 1;
  const int shift = kFirstBits - kSubBits + std::max(power - 1, 0);
  constexpr std::uint64_t kSubMask = (1U << kSubBits) - 1;
  return static_cast<std::size_t>(power) << kSubBits | ((ns >> shift) & kSubMask);
}

Duration LatencyHistogram::upper_edge(std::size_t index) {
  const auto power = static_cast<int>(index >> kSubBits);
  const auto sub = static_cast<std::int64_t>(index & ((1U << kSubBits) - 1));
  const int shift = kFirstBits - kSubBits + std::max(power - 1, 0);
  const std::int64_t base = power == 0 ? 0 : std::int64_t{1} << kSubBits;
  return Duration((base + sub + 1) << shift);
}

std::uint64_t& LatencyHistogram::count_of(std::size_t index) {
  constexpr std::size_t kPower = std::size_t{1} << kSubBits;
  const std::size_t power = index - index % kPower;
  if (counts_.empty()) first_ = power;
  if (power < first_) {
    std::vector<std::uint64_t> longer(first_ - power);
    longer.reserve(longer.size() + counts_.size());
    longer.insert(longer.end(), counts_.begin(), counts_.end());
    counts_ = std::move(longer);
    first_ = power;
  } else if (power - first_ >= counts_.size()) {
    counts_.reserve(power - first_ + kPower);  // exactly
    counts_.resize(power - first_ + kPower);
  }
  return counts_[index - first_];
}

void LatencyHistogram::check_buckets() {
  constexpr std::size_t kPower = std::size_t{1} << kSubBits;
  const bool fits = first_ % kPower == 0 && counts_.size() % kPower == 0 && first_ <= kBuckets &&
                    counts_.size() <= kBuckets - first_;
  if (!fits) clear();
}

void LatencyHistogram::carry() {
  earlier_ += whole_microseconds(sum_);
  sum_ %= 1000;
}

void LatencyHistogram::record(Duration latency) {
  latency = std::max(latency, Duration::zero());
  ++count_of(index_of(latency));
  ++count_;
  sum_ += static_cast<std::uint64_t>(latency.count());
  if (sum_ >= kMostSum) carry();
  max_ = std::max(max_, latency);
}

void LatencyHistogram::merge(const LatencyHistogram& other) {
  for (std::size_t i = 0; i < other.counts_.size(); ++i) {
    if (other.counts_[i] != 0) count_of(other.first_ + i) += other.counts_[i];
  }
  count_ += other.count_;
  sum_ += other.sum_;
  earlier_ += other.earlier_;
  if (sum_ >= kMostSum) carry();
  max_ = std::max(max_, other.max_);
}

void LatencyHistogram::clear() {
  *this = LatencyHistogram();
}

Duration LatencyHistogram::quantile(double q) const {
  if (count_ == 0) return Duration::zero();
  const double wanted = std::ceil(std::clamp(q, 0.0, 1.0) * static_cast<double>(count_));
  const auto rank = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(wanted), 1, count_);
  std::uint64_t seen = 0;
  std::size_t index = 0;
  while ((seen += counts_[index]) < rank) ++index;
  return first_ + index == kBuckets - 1 ? max_ : std::min(upper_edge(first_ + index), max_);
}

Duration LatencyHistogram::mean() const {
  if (count_ == 0) return Duration::zero();
  const Wide mean = (Wide{earlier_.count()} * 1000 + sum_) / count_;
  return Duration(static_cast<std::int64_t>(std::min<Wide>(mean, INT64_MAX)));
}

std::vector<LatencyHistogram::Bucket> LatencyHistogram::buckets() const {
  std::vector<Bucket> used;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] != 0) used.push_back({.upper = upper_edge(first_ + i), .count = counts_[i]});
  }
  return used;
}

}  // namespace vpfs
