#include "tools/load/meter.h"

#include <algorithm>

namespace vpfs::load {
namespace {

std::size_t intervals(Duration length, Duration interval) {
  const Duration positive = std::max(length, Duration::zero());
  return static_cast<std::size_t>((positive + interval - Duration(1)) / interval);
}

}  // namespace

Meter::Meter(Duration begin, const RunEnd& end, Duration interval)
    : begin_(begin),
      end_(end),
      interval_(interval),
      bins_(intervals(end.planned() - begin, interval)) {}

void Meter::completed(Duration now, Duration latency, std::uint64_t bytes) {
  add(live_bytes_, bytes);
  add(live_requests_, 1);
  if (now < begin_ || now >= end_.get()) return;
  bytes_ += bytes;
  ++requests_;
  last_ = now - begin_;
  latency_.record(latency);
  Bin& bin = bins_[static_cast<std::size_t>((now - begin_) / interval_)];
  bin.bytes += bytes;
  ++bin.requests;
  bin.longest = std::max(bin.longest, latency);
}

void Meter::verified(std::uint64_t blocks, std::uint64_t failures) {
  verified_blocks_ += blocks;
  add(verify_failures_, failures);
}

Meter::Live Meter::live() const {
  return {.bytes = live_bytes_.load(std::memory_order_relaxed),
          .requests = live_requests_.load(std::memory_order_relaxed),
          .errors = errors_.load(std::memory_order_relaxed),
          .verify_failures = verify_failures_.load(std::memory_order_relaxed)};
}

void Meter::add_to(Totals& totals) const {
  totals.bytes += bytes_;
  totals.requests += requests_;
  totals.errors += errors_.load(std::memory_order_relaxed);
  totals.verified_blocks += verified_blocks_;
  totals.verify_failures += verify_failures_.load(std::memory_order_relaxed);
  totals.latency.merge(latency_);
  totals.last = std::max(totals.last, last_);
  totals.bins.resize(intervals(end_.get() - begin_, interval_));
  for (std::size_t i = 0; i < totals.bins.size(); ++i) {
    totals.bins[i].bytes += bins_[i].bytes;
    totals.bins[i].requests += bins_[i].requests;
    totals.bins[i].longest = std::max(totals.bins[i].longest, bins_[i].longest);
  }
}

}  // namespace vpfs::load
