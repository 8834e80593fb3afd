#include "schedulers/policies/adaptbf.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/units.h"
#include "base/wide.h"

namespace vpfs {
namespace {
// The allocator takes no more.
constexpr std::uint64_t kMostTokens = std::uint64_t{1} << 40;
// How many buckets ahead the heads of jobs are fetched.
constexpr std::size_t kAhead = 8;

std::uint64_t rounded_up(Cost cost, Cost token) {
  return std::min(cost / token + (cost % token > 0 ? 1 : 0), kMostTokens);
}

// A period needs tokens to divide.
void check_tokens(ConfigReader& reader, const AdapTbfSettings& settings) {
  const CapacityEstimate::Settings& capacity = settings.capacity;
  const std::uint64_t lowest = capacity.configured > 0 ? capacity.configured : capacity.least;
  const double tokens = static_cast<double>(lowest) / static_cast<double>(settings.token) *
                        std::chrono::duration<double>(settings.period).count();
  if (tokens >= 10) return;
  reader.report(capacity.configured > 0 ? "capacity" : "least",
                fmt::format("is {:.1f} tokens in a period, at least 10 are needed: a smaller "
                            "token, a longer period or more capacity",
                            tokens));
}

// The nodes of a job are its priority.
constexpr std::array kWords = {
    ShareWord{.name = "nodes", .least = 1, .most = 1'000'000, .replaces_weight = true}};

std::unique_ptr<Policy> make_adaptbf(const SchedulerSettings& settings, RateLimits&,
                                     Scheduler::Part part) {
  auto adaptbf = settings.own.of<AdapTbfSettings>();
  adaptbf.capacity.configured = part.of_whole(adaptbf.capacity.configured);
  return std::make_unique<AdapTbf>(adaptbf);
}

void read_adaptbf(ConfigReader& scheduler, SchedulerSettings& all, bool /*is_chosen*/) {
  auto& settings = all.own.of<AdapTbfSettings>();
  CapacityEstimate::Settings& capacity = settings.capacity;
  settings.work_conserving = true;
  capacity.least = 10 * kMiB;
  ConfigReader reader = scheduler.child("adaptbf");
  constexpr BytesPerSecond kLeast = {kKiB};
  constexpr BytesPerSecond kMost = {Share::kMaxRate};
  reader.get("work_conserving", &settings.work_conserving);
  reader.get("period", &settings.period, std::chrono::milliseconds(1), std::chrono::minutes(1));
  Bytes token = {settings.token};
  if (reader.get("token", &token, {1}, {kGiB})) settings.token = token.count;
  BytesPerSecond rate = {};
  if (!reader.is("capacity", "auto") && reader.get("capacity", &rate, kLeast, kMost)) {
    capacity.configured = rate.count;
  }
  if (reader.get("least", &rate, kLeast, kMost)) capacity.least = rate.count;
  if (reader.get("most", &rate, kLeast, kMost)) capacity.most = rate.count;
  if (capacity.least > capacity.most) reader.report("least", "is more than `most`");
  check_tokens(reader, settings);
  scheduler.suggest("capacity", "adaptbf.capacity");
  scheduler.suggest("period", "adaptbf.period");
}

std::string summary_of_adaptbf(const SchedulerSettings& all) {
  const auto rate = [](std::uint64_t per_second) { return to_string(BytesPerSecond{per_second}); };
  const auto settings = all.own.of<AdapTbfSettings>();
  const CapacityEstimate::Settings& capacity = settings.capacity;
  return fmt::format(
      "rates are set every {} from a capacity of {}", to_string(settings.period),
      capacity.configured > 0
          ? rate(capacity.configured)
          : fmt::format("{} to {}, measured", rate(capacity.least), rate(capacity.most)));
}

}  // namespace

constinit const PolicyKind AdapTbf::kKind = {.name = "adaptbf",
                                             .share_fields = {ShareField::rank},
                                             .share_words = kWords,
                                             .make = make_adaptbf,
                                             .read = read_adaptbf,
                                             .summary = summary_of_adaptbf};

AdapTbf::AdapTbf(const AdapTbfSettings& settings)
    : settings_(settings),
      tbf_(limits_, std::max<Duration>(settings.period / 128, Tbf::kShortestSlice)),
      capacity_(settings.capacity) {
  VPFS_ASSERT(settings.period >= std::chrono::milliseconds(1) && settings.token >= 1);
}

Result<void> AdapTbf::set_share(AppId app, const Share& share, TimePoint now) {
  const auto index = static_cast<std::size_t>(app);
  if (index >= jobs_.size()) {
    // The allocator borrows demands_ while a period ends, so that must not move.
    if (index >= jobs_.capacity()) finish_ending(now);
    jobs_.resize(index + 1);
    active_.reserve(jobs_.capacity());
    asked_.reserve(jobs_.capacity());
    with_bucket_.reserve(jobs_.capacity());
    had_bucket_.reserve(jobs_.capacity());
    demands_.reserve(jobs_.capacity());
  }
  if (jobs_[index].ended) {
    finish_ending(now);
    if (jobs_[index].ended) end_account(static_cast<std::uint32_t>(app));
  }
  jobs_[index].nodes = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(share.own_value(kWords[0].name).value_or(share.weight), UINT32_MAX));
  if (!jobs_[index].has_bucket) limits_.lift(app);
  const Result<void> set = tbf_.set_share(app, {.rank = share.rank}, now);
  set_level(static_cast<std::uint32_t>(app), share.rank ? 0 : jobs_[index].nodes, now);
  return set;
}

void AdapTbf::set_level(std::uint32_t index, std::uint32_t nodes, TimePoint now) {
  const std::uint64_t before = std::exchange(jobs_[index].level, nodes);
  if (before == nodes) return set_place(index, now);
  bool changed = false;
  if (nodes > 0) {
    const auto level = std::ranges::lower_bound(levels_, nodes, std::greater<>(), &Level::nodes);
    changed = level == levels_.end() || level->nodes != nodes;
    changed ? (void)levels_.insert(level, {.nodes = nodes, .jobs = 1}) : (void)++level->jobs;
  }
  if (before > 0) {
    const auto level = std::ranges::lower_bound(levels_, before, std::greater<>(), &Level::nodes);
    if (--level->jobs == 0) {
      levels_.erase(level);
      changed = true;
    }
  }
  if (!changed) return set_place(index, now);
  for (std::uint32_t job = 0; job < jobs_.size(); ++job) {
    if (jobs_[job].level > 0 || job == index) set_place(job, now);
  }
}

// If there are more levels than places, the smallest jobs share the last place.
void AdapTbf::set_place(std::uint32_t index, TimePoint now) {
  const std::uint64_t nodes = jobs_[index].level;
  std::ptrdiff_t place = 0;
  if (nodes > 0) {
    place =
        std::ranges::lower_bound(levels_, nodes, std::greater<>(), &Level::nodes) - levels_.begin();
  }
  tbf_.set_place(AppId{index},
                 static_cast<std::uint8_t>(std::min<std::ptrdiff_t>(place, Share::kMaxRank)), now);
}

void AdapTbf::remove(AppId app, TimePoint now) {
  const auto index = static_cast<std::uint32_t>(app);
  if (index >= jobs_.size()) return;
  finish_ending(now);
  Job& job = job_of(index);
  end_account(index);
  if (std::exchange(job.has_bucket, false)) {
    std::erase(with_bucket_, index);
    limits_.lift(app);
  }
  job.nodes = 1;
  job.asked = job.queued;
  if (job.queued == 0 && std::exchange(job.active, false)) std::erase(active_, index);
  job.ended = job.queued > 0;
  (void)tbf_.set_share(app, {}, now);
  set_level(index, job.nodes, now);
}

// Other jobs settle the ended job's debts and claims.
void AdapTbf::end_account(std::uint32_t index) {
  const bool others_settle = allocator_.record(index) != 0;
  allocator_.end(index);
  for (std::uint32_t job = 0; others_settle && job < jobs_.size(); ++job) {
    jobs_[job].record = allocator_.record(job);
  }
  jobs_[index].lent = jobs_[index].borrowed = 0;
  jobs_[index].ended = false;
}

void AdapTbf::ask(std::uint32_t index, Cost cost) {
  Job& job = job_of(index);
  job.asked += cost;
  if (!std::exchange(job.active, true)) active_.push_back(index);
}

void AdapTbf::enqueue(IoRequest& request, TimePoint now) {
  advance(now);
  Job& job = job_of(request);
  job.queued += request.cost;
  ask(static_cast<std::uint32_t>(request.app), request.cost);
  tbf_.enqueue(request, now);
}

Policy::Head AdapTbf::head(TimePoint now) {
  advance(now);
  Head head = tbf_.head(now);
  without_tokens_ = head.request == nullptr && settings_.work_conserving;
  if (without_tokens_) head.request = tbf_.earliest_waiting();
  if (tbf_.queued() == 0) {
    observed_.always_queued = false;
  } else if (head.request == nullptr) {
    observed_.waited_for_tokens = true;
    head.until = std::min(head.until, period_start_ + settings_.period);
  }
  return head;
}

void AdapTbf::dispatch(IoRequest& request, TimePoint now) {
  job_of(request).queued -= request.cost;
  without_tokens_ ? tbf_.dispatch_without_tokens(request, now) : tbf_.dispatch(request, now);
}

void AdapTbf::complete(const IoRequest& request, Cost cost, TimePoint now) {
  advance(now);
  observed_.done += cost;
  tbf_.complete(request, cost, now);
}

void AdapTbf::withdraw(IoRequest& request, TimePoint now) {
  job_of(request).queued -= request.cost;
  tbf_.withdraw(request, now);
}

void AdapTbf::let_pass(IoRequest& request, TimePoint now) {
  job_of(request).queued -= request.cost;
  tbf_.let_pass(request, now);
}

void AdapTbf::charge_more(const IoRequest& request, Cost cost, TimePoint now) {
  const auto index = static_cast<std::uint32_t>(request.app);
  observed_.done += cost;
  ask(index, cost);
  if (!jobs_[index].has_bucket) return;
  limits_.take_more(request, {cost}, now);
  tbf_.limits_changed(request.app, now);
}

// If periods passed without a call, only the first saw activity. In the others no job asked for
// anything, or none could be served. While the end of a period goes on, the next one does not end.
void AdapTbf::advance(TimePoint now) {
  if (!std::exchange(started_, true)) period_start_ = observed_since_ = now;
  if (ending_ != Ending::done) go_on_ending(kStepsOfACall, now);
  end_idle_period(now);
  const Duration passed = now - period_start_;
  if (passed < settings_.period || ending_ != Ending::done) return;
  const Duration whole = passed / settings_.period * settings_.period;
  was_idle_ = whole > settings_.period && tbf_.queued() == 0;
  end_period(now);
  end_idle_period(now);
  period_start_ += whole;
}

void AdapTbf::end_idle_period(TimePoint now) {
  if (ending_ == Ending::done && std::exchange(was_idle_, false)) end_period(now);
}

void AdapTbf::end_period(TimePoint now) {
  observed_.length = now - std::exchange(observed_since_, now);
  capacity_.observe(observed_);
  observed_ = {.length = {}, .done = 0, .always_queued = tbf_.queued() > 0};

  ++period_;
  budget_ = budget();
  asked_.swap(active_);
  active_.clear();
  had_bucket_.swap(with_bucket_);
  with_bucket_.clear();
  demands_.clear();
  enter(Ending::count_demands);
  go_on_ending(kStepsOfACall, now);
}

void AdapTbf::go_on_ending(std::size_t steps, TimePoint now) {
  const auto for_each = [&](const auto& jobs, std::size_t steps_of_one, auto each) {
    const std::size_t until = cursor_ + std::min(jobs.size() - cursor_, steps / steps_of_one);
    steps -= (until - cursor_) * steps_of_one;
    for (; cursor_ < until; ++cursor_) each(jobs[cursor_]);
    return cursor_ == jobs.size();
  };
  const auto count = [&](std::uint32_t index) { count_demand(index); };
  const auto set = [&](const AdapTbfAllocator::Allocation& to) {
    // Only the heads are in no order.
    const auto all = allocator_.allocations();
    if (cursor_ + kAhead < all.size()) tbf_.prefetch_head(AppId{all[cursor_ + kAhead].job});
    allot(to, now);
  };
  const auto lift = [&](std::uint32_t index) { lift_bucket(index, now); };
  const auto settle = [&](std::uint32_t index) {
    if (jobs_[index].ended && jobs_[index].queued == 0) end_account(index);
  };
  if (ending_ == Ending::count_demands && for_each(asked_, 1, count)) {
    if (budget_ > 0) allocator_.start(demands_, budget_);
    enter(budget_ > 0 ? Ending::allocate : Ending::lift_buckets);
  }
  if (ending_ == Ending::allocate) {
    if (allocator_.go_on(steps)) enter(Ending::set_buckets);
    steps = allocator_.steps_left();
  }
  if (ending_ == Ending::set_buckets && for_each(allocator_.allocations(), kStepsOfABucket, set)) {
    enter(Ending::lift_buckets);
  }
  if (ending_ == Ending::lift_buckets && for_each(had_bucket_, kStepsOfABucket, lift)) {
    enter(Ending::settle_ended);
  }
  if (ending_ == Ending::settle_ended && for_each(asked_, 1, settle)) enter(Ending::done);
}

// A job that waits already has asked in the new period.
void AdapTbf::begin_period_of(std::uint32_t index) {
  Job& job = jobs_[index];
  job.period = period_;
  job.asked_before = std::exchange(job.asked, job.queued);
  job.active = job.queued > 0;
  if (job.active) active_.push_back(index);
}

void AdapTbf::count_demand(std::uint32_t index) {
  const Job& job = job_of(index);
  demands_.push_back(
      {.job = index, .nodes = job.nodes, .tokens = rounded_up(job.asked_before, settings_.token)});
}

std::uint64_t AdapTbf::budget() const {
  const Wide cost =
      Wide{capacity_.value()} * static_cast<Wide>(settings_.period.count()) / kNanosecondsPerSecond;
  return static_cast<std::uint64_t>(std::min<Wide>(cost / settings_.token, kMostTokens));
}

void AdapTbf::allot(const AdapTbfAllocator::Allocation& to, TimePoint now) {
  Job& job = jobs_[to.job];
  const std::int64_t change = to.record - std::exchange(job.record, to.record);
  (change > 0 ? job.lent : job.borrowed) += static_cast<std::uint64_t>(std::abs(change));
  job.has_bucket = true;
  job.bucket_period = static_cast<std::uint8_t>(period_);
  with_bucket_.push_back(to.job);
  set_bucket(to.job, to.tokens, now);
}

void AdapTbf::lift_bucket(std::uint32_t index, TimePoint now) {
  Job& job = jobs_[index];
  if (job.bucket_period == static_cast<std::uint8_t>(period_)) return;
  job.has_bucket = false;
  limits_.lift(AppId{index});
  tbf_.limits_changed(AppId{index}, now);
}

// The tokens of a period come evenly, and a quarter of them may go at once. The burst is
// proportional to the rate, so a server that is slower than the sum of the rates changes no
// proportion.
void AdapTbf::set_bucket(std::uint32_t index, std::uint64_t tokens, TimePoint now) {
  const Wide cost = Wide{tokens} * settings_.token;
  const Wide rate = cost * kNanosecondsPerSecond / static_cast<Wide>(settings_.period.count());
  const auto burst = static_cast<std::uint64_t>(std::min<Wide>(cost / 4, kMaxCost));
  limits_.set_rate(AppId{index}, static_cast<std::uint64_t>(std::min<Wide>(rate, Share::kMaxRate)),
                   std::max(burst, settings_.token), true, now);
  tbf_.limits_changed(AppId{index}, now);
}

WaitReason AdapTbf::why_waiting(AppId app, TimePoint now) const {
  WaitReason why = tbf_.why_waiting(app, now);
  if (why.eligible) {
    why.reason = "tokens that AdapTBF gave it";
    why.eligible = std::min(*why.eligible, period_start_ + settings_.period);
    if (*why.eligible <= now) why.eligible.reset();  // the period is over, and no call has ended it
  }
  return why;
}

StatusFields AdapTbf::report(AppId app, TimePoint now) const {
  const auto index = static_cast<std::size_t>(app);
  if (index >= jobs_.size()) return {};
  StatusFields fields = limits_.report(app, now);
  const Job& job = jobs_[index];
  const auto add = [&](std::string_view name, auto value) {
    fields.add(
        {.name = name, .value = static_cast<std::int64_t>(value), .join = StatusField::Join::sum});
  };
  add("rate_now", job.has_bucket ? limits_.rate(app) : 0);
  add("record", job.record);
  add("lent", job.lent);
  add("borrowed", job.borrowed);
  return fields;
}

Loans AdapTbf::loans(AppId app) const {
  const auto index = static_cast<std::size_t>(app);
  if (index >= jobs_.size()) return {};
  const Job& job = jobs_[index];
  return {.lent = job.lent * settings_.token, .borrowed = job.borrowed * settings_.token};
}

StatusFields AdapTbf::server(TimePoint /*now*/) const {
  return server_capacity(capacity_.value(), capacity_.source());
}

}  // namespace vpfs
