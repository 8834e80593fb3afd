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
    jobs_.resize(index + 1);
    active_.reserve(jobs_.capacity());
    with_bucket_.reserve(jobs_.capacity());
    had_bucket_.reserve(jobs_.capacity());
    demands_.reserve(jobs_.capacity());
  }
  if (jobs_[index].ended) end_account(static_cast<std::uint32_t>(app));
  jobs_[index].nodes = share.own_value(kWords[0].name).value_or(share.weight);
  if (!jobs_[index].has_bucket) limits_.lift(app);
  const Result<void> set = tbf_.set_share(app, {.rank = share.rank}, now);
  set_level(static_cast<std::uint32_t>(app), share.rank ? 0 : jobs_[index].nodes, now);
  return set;
}

void AdapTbf::set_level(std::uint32_t index, std::uint64_t nodes, TimePoint now) {
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
  Job& job = jobs_[index];
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
  Job& job = jobs_[index];
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

// If periods passed without a call, only the first saw activity. In the others no job asked for
// anything, or none could be served.
void AdapTbf::advance(TimePoint now) {
  if (!std::exchange(started_, true)) period_start_ = observed_since_ = now;
  const Duration passed = now - period_start_;
  if (passed < settings_.period) return;
  const Duration whole = passed / settings_.period * settings_.period;
  const bool idle_periods = whole > settings_.period && tbf_.queued() == 0;
  end_period(now);
  if (idle_periods) end_period(now);
  period_start_ += whole;
}

void AdapTbf::end_period(TimePoint now) {
  observed_.length = now - std::exchange(observed_since_, now);
  capacity_.observe(observed_);
  observed_ = {.length = {}, .done = 0, .always_queued = tbf_.queued() > 0};

  had_bucket_.swap(with_bucket_);
  with_bucket_.clear();
  for (const std::uint32_t index : had_bucket_) jobs_[index].has_bucket = false;
  allot(budget(), now);
  for (const std::uint32_t index : had_bucket_) {
    if (jobs_[index].has_bucket) continue;
    limits_.lift(AppId{index});
    tbf_.limits_changed(AppId{index}, now);
  }
  // A job that waits already has asked in the new period.
  std::erase_if(active_, [this](std::uint32_t index) {
    jobs_[index].asked = jobs_[index].queued;
    jobs_[index].active = jobs_[index].queued > 0;
    if (jobs_[index].ended && !jobs_[index].active) end_account(index);
    return !jobs_[index].active;
  });
}

std::uint64_t AdapTbf::budget() const {
  const Wide cost =
      Wide{capacity_.value()} * static_cast<Wide>(settings_.period.count()) / kNanosecondsPerSecond;
  return static_cast<std::uint64_t>(std::min<Wide>(cost / settings_.token, kMostTokens));
}

void AdapTbf::allot(std::uint64_t budget, TimePoint now) {
  if (budget == 0) return;
  demands_.clear();
  for (const std::uint32_t index : active_) {
    demands_.push_back({.job = index,
                        .nodes = jobs_[index].nodes,
                        .tokens = rounded_up(jobs_[index].asked, settings_.token)});
  }
  for (const AdapTbfAllocator::Allocation& each : allocator_.allocate(demands_, budget)) {
    Job& job = jobs_[each.job];
    const std::int64_t change = each.record - std::exchange(job.record, each.record);
    (change > 0 ? job.lent : job.borrowed) += static_cast<std::uint64_t>(std::abs(change));
    job.has_bucket = true;
    with_bucket_.push_back(each.job);
    set_bucket(each.job, each.tokens, now);
  }
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

StatusFields AdapTbf::server(TimePoint /*now*/) const {
  return server_capacity(capacity_.value(), capacity_.source());
}

}  // namespace vpfs
