#include "schedulers/policies/edf.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"
#include "base/units.h"
#include "schedulers/time_tag.h"

namespace vpfs {
namespace {
// The latency of requests that are a part of "these bytes by this time", unless the flow has one.
constexpr Duration kFinishLatency = std::chrono::seconds(1);
// The longest latency, 36 years, and the longest time until a bucket is full.
constexpr Duration kMostLatency = Duration(std::int64_t{1} << 60);
// `shift_` goes back to zero beyond this, 9 years. So no time overflows until `now` is 2^62 ns (146
// years): a deadline is at most 2^58 + 3 x 2^60 ns after it.
constexpr Duration kMostShift = Duration(std::int64_t{1} << 58);

// The part of a Share that this policy uses.
Share known_part(const Share& share) {
  return {.rate = share.rate,
          .burst = share.burst,
          .latency = share.latency,
          .finish_bytes = share.finish_bytes,
          .finish_by = share.finish_by};
}

// The next time that to_string() prints exactly: tenths of a unit, of which there are below 10^4.
Duration printable(Duration time) {
  using namespace std::chrono_literals;
  for (const Duration tenth : {Duration(100ns), Duration(100us), Duration(100ms), Duration(6s)}) {
    const Duration up = (time + tenth - 1ns) / tenth * tenth;
    if (up < 100'000 * tenth) return up;
  }
  return std::chrono::ceil<std::chrono::hours>(time);
}

// At most D of the largest requests are at the server, and their cost is within the depth's cost or
// that of two of them.
std::unique_ptr<Policy> make_edf(const SchedulerSettings& settings, RateLimits&,
                                 Scheduler::Part part) {
  auto edf = settings.own.of<EdfSettings>();
  const std::uint32_t depth =
      settings.auto_depth ? settings.auto_depth->most : settings.depth.requests;
  const Cost largest = std::min(edf.largest_request, kMaxCost);
  const Cost ahead = std::min(depth * largest, std::max(settings.depth.cost, 2 * largest));
  edf.capacity = part.of_whole(edf.capacity);
  return std::make_unique<Edf>(edf, ahead);
}

void read_edf(ConfigReader& scheduler, SchedulerSettings& settings, bool /*is_chosen*/) {
  auto& edf = settings.own.of<EdfSettings>();
  ConfigReader reader = scheduler.child("edf");
  BytesPerSecond capacity = {};
  if (reader.get("capacity", &capacity, {kKiB}, {Share::kMaxRate})) edf.capacity = capacity.count;
  Bytes largest = {edf.largest_request};
  if (reader.get("largest_request", &largest, {1}, {kMaxCost})) {
    edf.largest_request = largest.count;
  }
  reader.get("default_latency", &edf.default_latency, std::chrono::milliseconds(1),
             std::chrono::hours(24));
  if (edf.capacity > 0 && settings.auto_depth) {
    scheduler.report("depth", "promises need a fixed depth");
  }
}

std::string summary_of_edf(const SchedulerSettings& settings) {
  const auto edf = settings.own.of<EdfSettings>();
  if (edf.capacity == 0) return "nothing is promised: edf.capacity is not set";
  return fmt::format("promises count on {} and requests of {} at most",
                     to_string(BytesPerSecond{edf.capacity}),
                     to_string(Bytes{edf.largest_request}));
}

}  // namespace

// Promises are of bytes alone.
constinit const PolicyKind Edf::kKind = {
    .name = "edf",
    .share_fields = {ShareField::rate, ShareField::latency, ShareField::finish},
    .per_request = {},
    .make = make_edf,
    .read = read_edf,
    .summary = summary_of_edf};

Edf::Edf(const EdfSettings& settings, Cost ahead)
    : settings_(settings), admission_(std::max<std::uint64_t>(settings.capacity, 1), ahead) {
  settings_.default_latency = std::min(settings.default_latency, kMostLatency);
}

// The curve that a share wants promised, if any; an error if it cannot be kept.
Result<std::optional<ArrivalCurve>> Edf::curve_of(AppId app, const Share& share, TimePoint now) {
  const bool has_curve = share.rate.count > 0 && share.latency > Duration::zero();
  const bool has_finish = share.finish_bytes.count > 0;
  if (!has_curve && !has_finish) return std::nullopt;
  if (settings_.capacity == 0) {
    return fail("nothing can be promised without the capacity of the data server");
  }
  end_past_promises(now);
  const Cost burst = share.burst.count;
  if (has_curve) {
    const ArrivalCurve curve = {
        .burst = burst, .rate = share.rate.count, .latency = std::min(share.latency, kMostLatency)};
    if (admission_.fits(app, curve)) return curve;
    const std::optional<Duration> possible = admission_.least_latency(app, curve);
    return fail(possible ? fmt::format("cannot be promised: the earliest that can is {}",
                                       to_string(printable(*possible)))
                         : "cannot be promised with any latency up to a day");
  }
  const Duration latency =
      share.latency > Duration::zero() ? std::min(share.latency, kMostLatency) : kFinishLatency;
  const Duration span = std::max(share.finish_by, now) - now;
  const std::optional<ArrivalCurve> curve =
      Admission::curve_of(share.finish_bytes.count, burst, span, latency);
  if (curve && admission_.fits(app, *curve)) return curve;
  const std::optional<Duration> possible =
      admission_.least_span(app, share.finish_bytes.count, burst, latency);
  return fail(possible ? fmt::format("cannot be promised: the earliest that can is {} from now",
                                     to_string(printable(*possible)))
                       : "cannot be promised for any time up to a hundred days from now");
}

// Stores what the flow asks for now. Flows beyond the last one that ever asked take no memory.
bool Edf::asks_anew(std::uint32_t index, const Share& asked) {
  if (index >= asked_.size()) {
    if (asked == Share{}) return false;
    asked_.resize(std::size_t{index} + 1);
  }
  return std::exchange(asked_[index], asked) != asked;
}

Result<void> Edf::set_share(AppId app, const Share& share, TimePoint now) {
  const auto index = std::to_underlying(app);
  if (flows_.grow(app)) {
    for (FlowTournament* heap : {&started_, &later_, &others_}) heap->grow(flows_.size());
  }
  Flow& flow = flows_[index];
  const Share asked = known_part(share);
  const bool is_old = !asks_anew(index, asked);
  if (is_old && flow.promised && flow.promised_until > now) return {};
  const Result<std::optional<ArrivalCurve>> curve = curve_of(app, share, now);
  flow.target = std::clamp(share.latency, Duration::zero(), kMostLatency);
  const std::optional<ArrivalCurve> given = curve.value_or(std::nullopt);
  if (given) {
    begin_promise(index, *given, now);
    const bool is_curve = share.rate.count > 0 && share.latency > Duration::zero();
    flow.promised_until = is_curve ? kNever : share.finish_by;
    first_end_ = std::min(first_end_, flow.promised_until);
  } else {
    end_promise(index);
  }
  if (!flow.queue.empty()) place(index, now);
  VPFS_TRY(curve);
  return {};
}

void Edf::remove(AppId app, TimePoint now) {
  (void)set_share(app, {}, now);
  flows_[std::to_underlying(app)].misses = 0;
  flows_[std::to_underlying(app)].worst_tardiness = {};
}

void Edf::begin_promise(std::uint32_t index, const ArrivalCurve& curve, TimePoint now) {
  Flow& flow = flows_[index];
  admission_.admit(AppId{index}, curve);
  const Cost burst = std::max<Cost>(curve.burst, 1);
  const std::uint64_t rate = std::clamp<std::uint64_t>(curve.rate, 1, Share::kMaxRate);
  if (!std::exchange(flow.promised, true)) flow.bucket = TokenBucket(rate, burst);
  const TimePoint start = on_start_clock(now);
  flow.bucket.fit(rate, burst, start);
  flow.since = start;
  flow.latency = curve.latency;
}

void Edf::end_promise(std::uint32_t index) {
  Flow& flow = flows_[index];
  flow.latency = flow.target > Duration::zero() ? flow.target : settings_.default_latency;
  if (std::exchange(flow.promised, false)) admission_.leave(AppId{index});
}

void Edf::end_past_promises(TimePoint now) {
  if (now < first_end_) return;
  first_end_ = kNever;
  for (std::uint32_t index = 0; index < flows_.size(); ++index) {
    if (!flows_[index].promised) continue;
    if (flows_[index].promised_until > now) {
      first_end_ = std::min(first_end_, flows_[index].promised_until);
      continue;
    }
    end_promise(index);
    if (!flows_[index].queue.empty()) place(index, now);
  }
}

// `tag` of a queued request is its arrival on the clock of starts.
TimePoint Edf::start_of(const Flow& flow) {
  const IoRequest& request = *flow.queue.front();
  return std::max({time_of(request.tag), flow.since, flow.bucket.ready_at(request.cost)});
}

TimePoint Edf::deadline_of(const Flow& flow, TimePoint start) {
  const Cost cost = flow.queue.front()->cost;
  const TimePoint deadline = start + flow.latency;
  if (cost <= flow.bucket.depth()) return deadline;
  return deadline + time_for(cost - flow.bucket.depth(), Divider(flow.bucket.rate()));
}

// Puts a flow into the heap where its head belongs now. REQUIRES: it has one.
void Edf::place(std::uint32_t index, TimePoint now) {
  Flow& flow = flows_[index];
  const IoRequest& request = *flow.queue.front();
  if (flow.promised && flow.promised_until <= now) end_promise(index);
  FlowTournament* heap = &others_;
  TimePoint key = request.arrival + flow.latency;
  if (flow.promised) {
    const TimePoint start = start_of(flow);
    const bool started = start <= on_start_clock(now);
    heap = started ? &started_ : &later_;
    key = started ? deadline_of(flow, start) : start;
  }
  if (heap == &later_) {
    flows_.holds().wait_for_limit(index, key, now);
  } else {
    flows_.holds().wait_for_turn(index, now);
  }
  if (flow.heap != heap) take_out(flow, index);
  flow.heap = heap;
  heap->put(index, {.tag = time_tag(key), .order = request.order});
}

void Edf::take_out(Flow& flow, std::uint32_t index) {
  if (flow.heap != nullptr) std::exchange(flow.heap, nullptr)->take_out(index);
}

void Edf::set_shift(Duration shift) {
  shift_ = shift;
  flows_.holds().set_limit_clock(shift);
}

void Edf::start_due(TimePoint now) {
  while (!later_.empty() && time_of(later_.top_tag()) <= on_start_clock(now)) {
    place(later_.top(), now);
  }
}

void Edf::enqueue(IoRequest& request, TimePoint now) {
  Flow& flow = flows_.of(request);
  request.tag = time_tag(on_start_clock(now));
  if (flows_.push_back(flow, request) == Joined::as_head)
    place(std::to_underlying(request.app), now);
}

std::uint32_t Edf::choose() const {
  if (!started_.empty()) return started_.top();
  if (later_.empty()) return others_.top();
  if (others_.empty()) return later_.top();
  const TimePoint deadline = deadline_of(flows_[later_.top()], time_of(later_.top_tag())) - shift_;
  return time_of(others_.top_tag()) < deadline ? others_.top() : later_.top();
}

Policy::Head Edf::head(TimePoint now) {
  if (flows_.queued() == 0) return {};
  start_due(now);
  return {.request = flows_[choose()].queue.front()};
}

void Edf::dispatch(IoRequest& request, TimePoint now) {
  const auto index = std::to_underlying(request.app);
  Flow& flow = flows_[index];
  TimePoint deadline = request.arrival + flow.latency;
  if (flow.promised) {
    // Nothing has started, so the next start may be now, and all starts move with it.
    const TimePoint start = start_of(flow);
    set_shift(std::max(shift_, start - now));
    deadline = deadline_of(flow, start) - shift_;
    flow.bucket.take(request.cost, std::max(time_of(request.tag), flow.since));
  }
  request.tag = time_tag(deadline);
  flows_.dispatch(flow, request, now);
  if (flow.queue.empty()) {
    take_out(flow, index);
  } else {
    place(index, now);
  }
  if (shift_ > kMostShift) rebase(now);
  for (const FlowTournament* each : {&started_, &others_}) {
    if (each->empty()) continue;
    flows_.prefetch(each->top());
    each->prefetch(each->top());
  }
}

// Sets the clock of starts back to `now`, together with all times on it. O(all queued).
void Edf::rebase(TimePoint now) {
  const TimePoint before = on_start_clock(now);
  const Duration shift = shift_;
  set_shift(Duration::zero());
  for (std::uint32_t index = 0; index < flows_.size(); ++index) {
    Flow& flow = flows_[index];
    flow.since = time_of(time_tag(flow.since - shift));
    for (IoRequest* each = flow.queue.front(); each != nullptr; each = each->next_queued) {
      each->tag = time_tag(time_of(each->tag) - shift);
    }
    if (flow.promised) {
      const std::uint64_t missing =
          flow.bucket.depth() - static_cast<std::uint64_t>(flow.bucket.level(before));
      flow.bucket = TokenBucket(flow.bucket.rate(), flow.bucket.depth());
      flow.bucket.take(missing, now);
    }
    if (!flow.queue.empty()) place(index, now);
  }
}

void Edf::complete(const IoRequest& request, Cost /*cost*/, TimePoint now) {
  Flow& flow = flows_.of(request);
  flow.account.completed();
  if (!started_.empty()) __builtin_prefetch(flows_[started_.top()].queue.front());
  if (!others_.empty()) __builtin_prefetch(flows_[others_.top()].queue.front());
  const Duration tardiness = now - time_of(request.tag);
  if (!flow.has_deadlines() || tardiness <= Duration::zero()) return;
  ++flow.misses;
  flow.worst_tardiness = std::max(flow.worst_tardiness, tardiness);
}

void Edf::withdraw(IoRequest& request, TimePoint now) {
  const auto index = std::to_underlying(request.app);
  Flow& flow = flows_.of(request);
  const bool was_head = flows_.withdraw(flow, request, now);
  if (flow.queue.empty()) {
    take_out(flow, index);
  } else if (was_head) {
    place(index, now);
  }
}

void Edf::let_pass(IoRequest& request, TimePoint now) {
  Flow& flow = flows_.of(request);
  if (flow.promised) flow.bucket.take(request.cost, std::max(time_of(request.tag), flow.since));
  withdraw(request, now);
  if (!flow.queue.empty()) place(std::to_underlying(request.app), now);
}

void Edf::charge_more(const IoRequest& request, Cost cost, TimePoint now) {
  const auto index = std::to_underlying(request.app);
  Flow& flow = flows_[index];
  if (!flow.promised) return;
  flow.bucket.take(cost, std::max(on_start_clock(now), flow.since));
  if (!flow.queue.empty()) place(index, now);
}

WaitReason Edf::why_waiting(AppId app, TimePoint now) const {
  const auto index = std::to_underlying(app);
  const Flow& flow = flows_[index];
  if (flow.promised) {
    const TimePoint start = start_of(flow) - shift_;
    if (start > now && !started_.empty()) {
      return {.reason = "it asked for more than its arrival curve", .eligible = start};
    }
  }
  if (choose() == index) return {.reason = kIsNext};
  return {.reason = "requests with an earlier deadline go first"};
}

StatusFields Edf::report(AppId app, TimePoint now) const {
  using Join = StatusField::Join;
  StatusFields fields;
  const auto index = std::to_underlying(app);
  if (index >= flows_.size()) return fields;
  const Flow& flow = flows_[index];
  if (flow.promised) {
    fields.add({.name = "tokens", .value = flow.bucket.level(on_start_clock(now))});
  }
  if (!flow.has_deadlines()) return fields;
  fields.add({.name = "promised", .value = flow.promised, .join = Join::every});
  fields.add({.name = "deadline_misses",
              .value = static_cast<std::int64_t>(flow.misses),
              .join = Join::sum});
  fields.add({.name = "worst_tardiness", .value = flow.worst_tardiness, .join = Join::largest});
  return fields;
}

StatusFields Edf::server(TimePoint /*now*/) const {
  if (settings_.capacity == 0) return {};
  return server_capacity(settings_.capacity, "configured");
}

}  // namespace vpfs
