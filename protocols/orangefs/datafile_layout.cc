#include "protocols/orangefs/datafile_layout.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "protocols/orangefs/floor_sum.h"

namespace vpfs::orangefs {
namespace {

// twod_stripe and varstrip_dist count stripes in 32 bits.
constexpr std::int64_t kMostStripes = std::int64_t{1} << 31;
// A count by closed form takes this many steps for each strip of a period.
constexpr std::int64_t kClosedFormSteps = 128;
// basic_dist is one strip without end; any period tells the same.
constexpr std::int64_t kAnyPeriod = 65536;

std::int64_t product_or_max(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<std::int64_t>::max()
                                                : product;
}

// Twice the sum over the runs' begins x, moved by `shift`, of the sum of floor(y / period) for y
// below x + shift; modulo 2^128.
Wide twice_quotients_below(const Runs& runs, std::int64_t shift, std::int64_t period) {
  const auto start = static_cast<std::uint64_t>(runs.begin + shift);
  const auto step = static_cast<std::uint64_t>(runs.stride);
  const FloorSums sums = floor_sums(static_cast<std::uint64_t>(runs.count), step, start,
                                    static_cast<std::uint64_t>(period));
  // With z = q * period + r below z: the quotients sum up to q * z - period * q * (q + 1) / 2.
  return 2 * Wide{start} * sums.q + Wide{step} * sums.twice_i_q -
         static_cast<Wide>(period) * (sums.q_squared + sums.q);
}

}  // namespace

// Reads "server:size[KMG];..." as PVFS 2 writes it. Refuses what PVFS 2 would read in surprising
// ways: blanks, signs, empty parts.
class DatafileLayout::StripReader {
 public:
  explicit StripReader(std::string_view text) : rest_(text) {}

  struct Strip {
    std::uint32_t server_nr = 0;
    std::int64_t size = 0;
  };
  [[nodiscard]] bool at_end() const { return rest_.empty(); }
  [[nodiscard]] std::optional<Strip> next() {
    Strip strip;
    if (!number(strip.server_nr) || !skip(':') || !number(strip.size)) return std::nullopt;
    if (!apply_unit(strip.size) || strip.size <= 0) return std::nullopt;
    if (!rest_.empty() && !skip(';')) return std::nullopt;
    return strip;
  }

 private:
  template <typename Number>
  [[nodiscard]] bool number(Number& value) {
    if (rest_.empty() || rest_.front() == '-') return false;
    const char* const end = rest_.data() + rest_.size();
    const auto [last, error] = std::from_chars(rest_.data(), end, value);
    if (error != std::errc()) return false;
    rest_ = std::string_view(last, static_cast<std::size_t>(end - last));
    return true;
  }
  [[nodiscard]] bool skip(char wanted) {
    if (rest_.empty() || rest_.front() != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }
  [[nodiscard]] bool apply_unit(std::int64_t& size) {
    int shift = 0;
    if (skip('k') || skip('K'))
      shift = 10;
    else if (skip('m') || skip('M'))
      shift = 20;
    else if (skip('g') || skip('G'))
      shift = 30;
    if (size > kMostLimit >> shift) return false;
    size <<= shift;
    return true;
  }

  std::string_view rest_;
};

DatafileLayout::DatafileLayout(std::int64_t period, std::int64_t limit)
    : period_(period), limit_(std::min(limit, kMostLimit)) {}

bool DatafileLayout::add_group(const StripGroup& group) {
  if (group_count_ == kMostGroups) return false;
  groups_[group_count_++] = group;
  size_in_period_ += group.count * group.size;
  strips_in_period_ += group.count;
  smallest_strip_ = std::min(smallest_strip_, group.size);
  return true;
}

bool DatafileLayout::add_strip(std::int64_t begin, std::int64_t size) {
  if (group_count_ == 0) return add_group({.begin = begin, .step = period_, .size = size});
  StripGroup& last = groups_[group_count_ - 1];
  if (last.count == 1 && last.begin + last.size == begin) {
    last.size += size;
    size_in_period_ += size;
    return true;
  }
  const std::int64_t step = last.count == 1 ? begin - last.begin : last.step;
  if (size != last.size || begin != last.begin + step * last.count) {
    return add_group({.begin = begin, .step = period_, .size = size});
  }
  last.step = step;
  ++last.count;
  ++strips_in_period_;
  size_in_period_ += size;
  return true;
}

std::optional<DatafileLayout> DatafileLayout::regular(std::int64_t period,
                                                      const StripGroup& group) {
  DatafileLayout layout(period, kMostLimit);
  (void)layout.add_group(group);
  return layout;
}

std::optional<DatafileLayout> DatafileLayout::two_dimensional(const TwoDStripe& stripe,
                                                              Placement placement) {
  if (stripe.groups == 0 || stripe.factor == 0) return std::nullopt;
  if (placement.server_ct == 1) {
    return regular(kAnyPeriod, {.step = kAnyPeriod, .size = kAnyPeriod});
  }
  if (stripe.groups > placement.server_ct) return std::nullopt;
  const std::int64_t strips = std::int64_t{placement.server_ct} * stripe.factor;
  if (strips >= kMostStripes || stripe.strip_size > kMostLimit / strips) return std::nullopt;
  // Groups have equal sizes; the last also takes the remaining servers.
  const std::uint32_t usual = placement.server_ct / stripe.groups;
  const std::uint32_t group = std::min(placement.server_nr / usual, stripe.groups - 1);
  const std::uint32_t servers =
      group + 1 < stripe.groups ? usual : placement.server_ct - usual * (stripe.groups - 1);
  const std::uint32_t first_server = group * usual;
  const std::int64_t period = strips * stripe.strip_size;
  DatafileLayout layout(period, product_or_max(period, kMostStripes / stripe.factor));
  const StripGroup mine{
      .begin = (std::int64_t{first_server} * stripe.factor + (placement.server_nr - first_server)) *
               stripe.strip_size,
      .step = servers * stripe.strip_size,
      .count = stripe.factor,
      .size = stripe.strip_size};
  (void)layout.add_group(mine);
  return layout;
}

std::optional<DatafileLayout> DatafileLayout::varying(std::string_view strips,
                                                      Placement placement) {
  constexpr std::size_t kMostText = 1023;
  if (strips.empty() || strips.size() > kMostText) return std::nullopt;
  std::int64_t period = 0;
  bool all_mine = true;
  for (StripReader reader(strips); !reader.at_end();) {
    const auto strip = reader.next();
    if (!strip || strip->size > kMostLimit - period) return std::nullopt;
    period += strip->size;
    all_mine = all_mine && strip->server_nr == placement.server_nr;
  }
  // With one datafile the data server ignores the ends of strips.
  if (placement.server_ct == 1 && !all_mine) return std::nullopt;
  DatafileLayout layout(period, product_or_max(period, kMostStripes));
  std::int64_t begin = 0;
  for (StripReader reader(strips); !reader.at_end();) {
    const auto strip = reader.next();
    if (strip->server_nr == placement.server_nr && !layout.add_strip(begin, strip->size)) {
      return std::nullopt;
    }
    begin += strip->size;
  }
  return layout;
}

std::optional<DatafileLayout> DatafileLayout::of(const Distribution& distribution,
                                                 std::string_view strips, Placement placement) {
  if (placement.server_nr >= placement.server_ct) return std::nullopt;
  if (std::holds_alternative<BasicDistribution>(distribution)) {
    return regular(kAnyPeriod, {.step = kAnyPeriod, .size = kAnyPeriod});
  }
  if (std::holds_alternative<VarStrip>(distribution)) return varying(strips, placement);
  if (const auto* stripe = std::get_if<TwoDStripe>(&distribution)) {
    if (stripe->strip_size <= 0) return std::nullopt;
    return two_dimensional(*stripe, placement);
  }
  const std::int64_t strip = std::get<SimpleStripe>(distribution).strip_size;
  if (strip <= 0 || strip > kMostLimit / placement.server_ct) return std::nullopt;
  const std::int64_t period = strip * placement.server_ct;
  return regular(period, {.begin = strip * placement.server_nr, .step = period, .size = strip});
}

std::optional<DatafileLayout> DatafileLayout::of(const Distribution& distribution,
                                                 Placement placement) {
  const auto* varying = std::get_if<VarStrip>(&distribution);
  return of(distribution, varying == nullptr ? std::string_view() : varying->strips, placement);
}

std::int64_t DatafileLayout::below(std::int64_t logical) const {
  const std::int64_t rest = logical % period_;
  std::int64_t bytes = logical / period_ * size_in_period_;
  for (const StripGroup& group : groups()) {
    if (rest <= group.begin) break;
    const std::int64_t inside = rest - group.begin;
    const std::int64_t strips = inside / group.step;
    if (strips >= group.count) {
      bytes += group.count * group.size;
    } else {
      bytes += strips * group.size + std::min(inside - strips * group.step, group.size);
    }
  }
  return bytes;
}

DatafileLayout::StripRest DatafileLayout::strip_from(std::int64_t physical) const {
  std::int64_t rest = physical % size_in_period_;
  for (const StripGroup& group : groups()) {
    const std::int64_t size = group.count * group.size;
    if (rest >= size) {
      rest -= size;
      continue;
    }
    const std::int64_t inside = rest % group.size;
    return {.begin = physical / size_in_period_ * period_ + group.begin +
                     rest / group.size * group.step + inside,
            .size = group.size - inside};
  }
  return {.begin = limit_};  // not reached
}

std::int64_t DatafileLayout::logical_end(std::int64_t physical) const {
  if (physical <= 0) return 0;
  if (size_in_period_ == 0 || (physical - 1) / size_in_period_ > limit_ / period_) return limit_;
  return std::min(limit_, strip_from(physical - 1).begin + 1);
}

// A run needs two translations; each looks at all groups.
DatafileLayout::Plan DatafileLayout::plan(const Runs& runs) const {
  const auto groups = static_cast<std::int64_t>(group_count_);
  Plan best{.way = Way::run_by_run, .steps = product_or_max(runs.count, 2 * groups)};
  if (best.steps <= 64 || runs.size > runs.stride) return best;
  const std::int64_t end = runs.begin + runs.stride * (runs.count - 1) + runs.size;
  const std::int64_t strips = (below(end) - below(runs.begin)) / smallest_strip_ + 2;
  const std::int64_t by_strip = product_or_max(strips, 2 * groups);
  if (by_strip < best.steps) best = {.way = Way::strip_by_strip, .steps = by_strip};
  const std::int64_t closed = product_or_max(strips_in_period_, kClosedFormSteps);
  if (closed < best.steps) best = {.way = Way::closed_form, .steps = closed};
  return best;
}

std::int64_t DatafileLayout::counted_by_run(const Runs& runs) const {
  std::int64_t bytes = 0;
  for (std::int64_t i = 0; i < runs.count; ++i) {
    const std::int64_t begin = runs.begin + i * runs.stride;
    bytes += below(begin + runs.size) - below(begin);
  }
  return bytes;
}

std::int64_t DatafileLayout::counted_by_strip(const Runs& runs) const {
  const auto bytes_before = [&runs](std::int64_t logical) {
    if (logical <= runs.begin) return std::int64_t{0};
    const std::int64_t inside = logical - runs.begin;
    const std::int64_t whole = inside / runs.stride;
    if (whole >= runs.count) return runs.count * runs.size;
    return whole * runs.size + std::min(inside - whole * runs.stride, runs.size);
  };
  const std::int64_t end = below(runs.begin + runs.stride * (runs.count - 1) + runs.size);
  std::int64_t bytes = 0;
  for (std::int64_t at = below(runs.begin); at < end;) {
    const StripRest strip = strip_from(at);
    bytes += bytes_before(strip.begin + strip.size) - bytes_before(strip.begin);
    at += strip.size;
  }
  return bytes;
}

// Up to a constant, below(x) is the difference of two sums of floor(y / period) over all y below x:
// one shifted by a strip's begin, one by its end.
std::int64_t DatafileLayout::counted_in_closed_form(const Runs& runs) const {
  Runs ends = runs;
  ends.begin += runs.size;
  Wide twice = 0;
  for (const StripGroup& group : groups()) {
    for (std::int64_t i = 0; i < group.count; ++i) {
      const std::int64_t after_begin = period_ - (group.begin + i * group.step);
      const std::int64_t after_end = after_begin - group.size;
      twice += twice_quotients_below(ends, after_begin, period_) -
               twice_quotients_below(ends, after_end, period_) -
               twice_quotients_below(runs, after_begin, period_) +
               twice_quotients_below(runs, after_end, period_);
    }
  }
  return static_cast<std::int64_t>(twice / 2);
}

std::int64_t DatafileLayout::in_runs(const Runs& runs) const {
  if (group_count_ == 0 || runs.size == 0) return 0;
  switch (plan(runs).way) {
    case Way::run_by_run:
      return counted_by_run(runs);
    case Way::strip_by_strip:
      return counted_by_strip(runs);
    case Way::closed_form:
      return counted_in_closed_form(runs);
  }
  return 0;
}

}  // namespace vpfs::orangefs
