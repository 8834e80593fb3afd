#include "schedulers/depth_controller.h"

#include <algorithm>

namespace vpfs {
namespace {

using namespace std::chrono_literals;
constexpr std::int64_t kWhole = std::int64_t{1} << 20;
constexpr std::int64_t per_mille(std::int64_t value) {
  return value * kWhole / 1000;
}

constexpr Duration kSettle = 3s;          // at first and after a change of the server
constexpr Duration kSettleMore = 1500ms;  // after a large step
constexpr Duration kShortPhase = 80ms;
constexpr Duration kBasePhase = 240ms;
constexpr Duration kBetweenUps = 300ms;
constexpr std::int64_t kLossInverse = 80;  // of throughput, that lower probes may cost
constexpr std::int64_t kLossInverseSettling = 5;
constexpr std::uint64_t kLeastRoundsToLower = 8;
constexpr std::uint64_t kLeastDoneToLower = 64;
constexpr std::uint64_t kLeastDoneToDouble = 64;
constexpr std::uint64_t kLeastRoundsToNoticeChange = 24;
constexpr std::uint64_t kLeastDoneToNoticeChange = 1000;
constexpr std::uint64_t kDoneToWiden = 1500;
constexpr std::uint64_t kLeastBlocks = 8;

// Memory of a level, halved when it exceeds both, or when the sums could overflow.
constexpr std::uint64_t kMemoryDone = 20'000;
constexpr std::uint64_t kMemoryTime = 4'000'000'000;
constexpr std::uint64_t kMostRounds = std::uint64_t{1} << 15;
constexpr std::int64_t kGain = per_mille(15);
constexpr std::int64_t kSteepLoss = per_mille(20);
constexpr std::int64_t kChange = per_mille(80);

// How many standard errors are evidence; squared, in hundredths. A step up needs little evidence if
// the lower level shows that the server is just busy: the step back is harmless.
constexpr std::int64_t kToRaise = 400;
constexpr std::int64_t kToRaiseWhenSteep = 64;
constexpr std::int64_t kToDouble = 324;
constexpr std::int64_t kToStopDoubling = 100;
constexpr std::int64_t kToLower = 144;
constexpr std::int64_t kToBeSteep = 225;
constexpr std::int64_t kToBeSure = 900;
constexpr std::int64_t kToBeChange = 1225;
constexpr std::uint32_t kFineStep = 25;
constexpr std::uint32_t kWideStep = 50;
constexpr std::uint32_t kDoubling = 100;
constexpr std::uint64_t kBlockUnit = 4096;
constexpr std::int64_t kMostVariance = 16 * kWhole;

// Whether an excess is more than noise of this variance explains.
bool exceeds(std::int64_t excess, std::int64_t evidence, std::int64_t variance) {
  return excess > 0 && excess * excess / kWhole * 100 > evidence * variance;
}

// The squared error of a round's ends, as a part of the round.
std::int64_t edge_variance(std::uint64_t rounds) {
  const auto n = static_cast<std::int64_t>(std::min<std::uint64_t>(rounds, kMostRounds));
  return kWhole / 16 / (n * n);
}

std::int64_t square_root(std::int64_t part) {
  const std::int64_t value = part * kWhole;
  std::int64_t root = 0;
  for (std::int64_t bit = std::int64_t{1} << 30; bit > 0; bit >>= 1) {
    if ((root + bit) * (root + bit) <= value) root += bit;
  }
  return root;
}

TimePoint later(TimePoint now, Duration by) {
  return kNever - by < now ? kNever : now + by;
}

// 1 - a / b, with a capped at four times b.
std::int64_t shortfall(std::int64_t a, std::int64_t b) {
  return kWhole - std::min(a, 4 * b) * kWhole / b;
}

}  // namespace

void DepthController::Level::add(const Sample& round) {
  all.add(round);
  // The time of exactly `depth` completions.
  const std::uint64_t time = std::max<std::uint64_t>(1, round.time * depth / round.done);
  if (unit == 0) unit = time;
  const std::uint64_t value = std::min(time * kBlockUnit / unit, kBlockUnit << 10);
  std::uint32_t size = 1;
  for (Blocks& block : blocks) {
    block.add(value, size);
    size *= 8;
  }
  const bool much = all.done > kMemoryDone && all.time > kMemoryTime;
  if (much || all.rounds >= kMostRounds) forget_half();
}

DepthController::Part DepthController::Level::variance() const {
  Part most = 0;
  for (const Blocks& block : blocks) {
    if (block.count < kLeastBlocks) break;
    const auto mean =
        static_cast<std::int64_t>(std::max<std::uint64_t>(1, block.sum / block.count));
    const auto square = static_cast<std::int64_t>(block.squares / block.count);
    const std::int64_t spread = std::max<std::int64_t>(0, square - mean * mean);
    const Part one = spread * (kWhole / 4) / (mean * mean) * 4;  // spread < 2^44
    most = std::max(most, one / static_cast<std::int64_t>(block.count));
  }
  return std::min(most + edge_variance(all.rounds), kMostVariance);
}

bool DepthController::Level::differs_from(const Sample& sample) const {
  if (sample.rounds == 0 || all.rounds < kLeastRoundsToNoticeChange ||
      all.done < kLeastDoneToNoticeChange) {
    return false;
  }
  const std::int64_t expected = all.per_request();
  const std::int64_t found = sample.per_request();
  const Part difference = kWhole - std::min(expected, found) * kWhole / std::max(expected, found);
  const auto rounds = static_cast<std::int64_t>(std::min(sample.rounds, kMostRounds));
  const Part noise = variance() * (static_cast<std::int64_t>(all.rounds) + rounds) / rounds;
  return exceeds(difference - kChange, kToBeChange, noise + edge_variance(sample.rounds));
}

DepthController::DepthController(Settings settings) : settings_(settings) {
  settings_.most = std::clamp<std::uint32_t>(settings_.most, 1, 65536);
  settings_.least = std::clamp<std::uint32_t>(settings_.least, 1, settings_.most);
  level(Phase::base).depth = settings_.least;
  set_up_step(kDoubling);
  set_low_step(kFineStep);
}

void DepthController::begin_with(std::uint32_t found) {
  level(Phase::base) = {.depth = std::clamp(found, settings_.least, settings_.most)};
  set_up_step(kDoubling);
  set_low_step(kFineStep);
}

void DepthController::set_up_step(std::uint32_t percent) {
  up_step_ = percent;
  const std::uint32_t base = base_depth();
  const std::uint32_t depth = std::min(settings_.most, base + std::max(1U, base * percent / 100));
  if (level(Phase::up).depth != depth) level(Phase::up) = {.depth = depth};
}

void DepthController::set_low_step(std::uint32_t percent) {
  const std::uint32_t base = base_depth();
  const std::uint32_t depth = std::max(
      settings_.least,
      std::min(base - std::min(1U, base - 1), (base * 100 + 50 + percent / 2) / (100 + percent)));
  if (level(Phase::low).depth != depth) level(Phase::low) = {.depth = depth};
}

void DepthController::dispatched(std::uint32_t outstanding, TimePoint now) {
  if (!started_) {
    started_ = true;
    last_completion_ = next_up_ = next_low_ = now;
    settle_until_ = later(now, kSettle);
    begin(Phase::base, now);
  }
  if (full_ || outstanding < depth()) return;
  full_ = true;
  full_since_ = now;
}

void DepthController::completed(TimePoint sent, std::uint32_t /*outstanding*/, TimePoint now) {
  if (!started_) return;
  const Duration gap = now - last_completion_;
  last_completion_ = now;
  if (!full_ || (!counting_ && sent < full_since_)) return;
  const Level& base = level(Phase::base);
  const bool burst = gap <= Duration(base.known() ? base.all.per_request() / 8 : 0);
  const std::uint32_t depth_now = depth();
  if (counting_ && (burst || done_ < depth_now)) {
    ++done_;
    if (done_ > std::uint64_t{64} * depth_now) counting_ = false;  // all at once: says nothing
    return;
  }
  if (burst) return;
  if (counting_) {
    const auto time = static_cast<std::uint64_t>((now - round_begin_).count());
    const Sample round = {.rounds = 1, .done = done_, .time = std::min(time, kLongestRound)};
    level(phase_).add(round);
    measured_.add(round);
  }
  counting_ = true;
  round_begin_ = now;
  done_ = 1;
  if (measured_.rounds < kLeastRounds) return;
  const bool over = rounds_ > 0
                        ? measured_.rounds >= rounds_
                        : Duration(static_cast<std::int64_t>(measured_.time)) >= kShortPhase;
  if (over) end(now);
}

void DepthController::starved(TimePoint now) {
  full_ = counting_ = false;
  starved_ = true;
  // A probe must not last for as long as the demand is short.
  if (phase_ != Phase::base && now - phase_begin_ > 4 * kShortPhase) end(now);
}

void DepthController::begin(Phase phase, TimePoint now) {
  phase_ = phase;
  phase_begin_ = now;
  full_ = counting_ = starved_ = false;
  measured_ = {};
  before_ = level(phase);
  rounds_ = 0;
  const Level& timed = level(Phase::base).known() ? level(Phase::base) : level(phase);
  if (!timed.known()) return;
  // Probes are cheap and worth their time until it is clear whether the lower level suffices.
  const bool settled = !settling(now) && (low_costs_ || level(Phase::low).depth == base_depth());
  const Duration length = phase == Phase::base && settled ? kBasePhase : kShortPhase;
  const std::uint64_t round = std::max<std::uint64_t>(1, timed.all.time / timed.all.rounds);
  rounds_ = std::max(kLeastRounds, static_cast<std::uint64_t>(length.count()) / round);
  if (phase == Phase::low && settled) rounds_ = kLeastRounds;
}

void DepthController::end(TimePoint now) {
  if (server_changed()) return start_over(now);
  if (phase_ != Phase::base) delay_probe(now);
  if (phase_ == Phase::up && measured_.rounds == 0 && starved_) set_up_step(kFineStep);
  const Phase next = next_phase(now);
  const std::uint32_t base = base_depth();
  decide(now);
  begin(base == base_depth() ? next : Phase::base, now);
}

bool DepthController::server_changed() {
  Sample& recent = level(phase_).recent;
  recent.scale(3, 4);
  recent.add(measured_);
  return before_.differs_from(measured_) ||
         (recent.rounds < before_.all.rounds && before_.differs_from(recent));
}

// Later measurements leave this phase out: it saw both servers.
void DepthController::start_over(TimePoint now) {
  for (Level& one : levels_) one = {.depth = one.depth};
  settle_until_ = later(now, kSettle);
  next_up_ = next_low_ = now;
  set_up_step(kDoubling);
  set_low_step(kFineStep);
  begin(Phase::base, now);
}

// Spends at most the allowed part of the throughput on probes of this kind. Only the certain part
// of a loss counts, since more rounds may show that there is none.
void DepthController::delay_probe(TimePoint now) {
  const Level& base = level(Phase::base);
  const Level& probe = level(phase_);
  Part loss = phase_ == Phase::low ? kWhole - kWhole * probe.depth / base.depth : 0;
  if (base.known() && probe.known()) {
    loss = shortfall(base.all.per_request(), probe.all.per_request()) -
           square_root(std::min(base.variance() + probe.variance(), kMostVariance));
  }
  const std::int64_t spent = std::min<Duration>(now - phase_begin_, 1s).count();
  const std::int64_t inverse = settling(now) ? kLossInverseSettling : kLossInverse;
  const Duration wait(spent * inverse / 1024 * (std::max<Part>(0, loss) / 1024));
  if (phase_ == Phase::low) {
    next_low_ = later(now, wait);
  } else {
    next_up_ = later(now, settling(now) ? wait : std::max(wait, kBetweenUps));
  }
}

DepthController::Phase DepthController::next_phase(TimePoint now) {
  if (phase_ != Phase::base || !level(Phase::base).known()) return Phase::base;
  const std::uint32_t base = base_depth();
  const bool up = level(Phase::up).depth > base && now >= next_up_;
  const bool is_fine = up_step_ == kFineStep || base == settings_.most;
  const bool low = level(Phase::low).depth < base && now >= next_low_ && is_fine;
  if (!up && !low) return Phase::base;
  low_is_due_ = !(low && (!up || low_is_due_));
  return low_is_due_ ? Phase::up : Phase::low;
}

DepthController::Part DepthController::variance_of(const Level& probe) const {
  // A few rounds without a slow request look better than they are.
  const Level& base = level(Phase::base);
  const Part as_base = base.variance() * static_cast<std::int64_t>(base.all.done) /
                       static_cast<std::int64_t>(probe.all.done);
  return std::min(std::max(probe.variance(), as_base), kMostVariance);
}

void DepthController::decide(TimePoint now) {
  const Level& base = level(Phase::base);
  const Level& low = level(Phase::low);
  if (!base.known()) return;
  const bool low_known = low.depth < base.depth && low.known();
  Part loss = 0, variance = 0;
  if (low_known) {
    loss = shortfall(base.all.per_request(), low.all.per_request());
    const Part ratio = kWhole - loss;
    variance = (base.variance() + variance_of(low)) * ratio / kWhole * ratio / kWhole;
  }
  const bool steep = low_known && exceeds(loss - kSteepLoss, kToBeSteep, variance);
  low_costs_ = low_known && exceeds(loss - kSteepLoss, kToBeSure, variance);
  if (raise(steep, now)) return;
  if (low_known && low.all.rounds >= kLeastRoundsToLower && low.all.done >= kLeastDoneToLower) {
    lower(loss, variance, now);
  }
}

bool DepthController::raise(bool steep, TimePoint now) {
  Level& base = level(Phase::base);
  const Level& up = level(Phase::up);
  if (up.depth <= base.depth || !up.known()) return false;
  const Part gain = shortfall(up.all.per_request(), base.all.per_request());
  const Part possible = kWhole - kWhole * base.depth / up.depth;
  const Part ratio = kWhole - gain;
  const Part variance = base.variance() + variance_of(up) * ratio / kWhole * ratio / kWhole;
  if (up_step_ == kFineStep) {
    if (!exceeds(gain - kGain, steep ? kToRaiseWhenSteep : kToRaise, variance)) return false;
  } else if (gain <= possible / 2) {
    if (exceeds(possible - gain, kToStopDoubling, variance)) set_up_step(kFineStep);
    return false;
  } else if (std::min(base.all.done, up.all.done) < kLeastDoneToDouble ||
             !exceeds(gain, kToDouble, variance)) {
    return false;
  }
  const bool again = gain > possible * 2 / 3;
  if (again) settle_until_ = std::max(settle_until_, later(now, kSettleMore));
  level(Phase::low) = base;
  base = up;
  set_up_step(again ? kDoubling : kFineStep);
  set_low_step(kFineStep);
  next_up_ = now;
  return true;
}

void DepthController::lower(Part loss, Part variance, TimePoint now) {
  Level& base = level(Phase::base);
  const Level& low = level(Phase::low);
  // On a server that was just busy, the loss would be all of the gap.
  const Part gap = kWhole - kWhole * low.depth / base.depth;
  // Near a half, noise is the greater danger; below, a server that is not quite busy.
  const Part tolerated = std::max(gap / 6, gap * gap / kWhole / 2);
  if (!exceeds(tolerated - loss, kToLower, variance)) {
    if (exceeds(loss - kSteepLoss, kToBeSteep, variance)) {
      set_low_step(kFineStep);
    } else if (std::min(low.all.done, base.all.done) >= kDoneToWiden) {
      set_low_step(kWideStep);  // a larger difference needs fewer rounds
    }
    return;
  }
  settle_until_ = std::max(settle_until_, later(now, kSettleMore));
  level(Phase::up) = base;
  base = low;
  set_up_step(kFineStep);
  set_low_step(kWideStep);
  next_low_ = now;
}

}  // namespace vpfs
