#include "test/support/round_robin.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include <fmt/format.h>

namespace vpfs {
namespace {

constexpr std::array kWords = {ShareWord{.name = "visit", .least = 1, .most = 100}};

std::unique_ptr<Policy> make(const SchedulerSettings& settings, RateLimits&, Scheduler::Part) {
  return std::make_unique<RoundRobin>(settings.own.of<RoundRobinSettings>());
}

void read(ConfigReader& scheduler, SchedulerSettings& settings, bool /*is_chosen*/) {
  auto& own = settings.own.of<RoundRobinSettings>();
  ConfigReader reader = scheduler.child("round_robin");
  reader.get("visit", &own.visit, 1, 100);
  reader.get("rest", &own.rest, Duration::zero(), std::chrono::seconds(1));
  if (own.visit > settings.depth.requests) reader.report("visit", "is more than the depth");
  scheduler.suggest("quantum", "round_robin.visit");
}

std::string summary(const SchedulerSettings& settings) {
  return fmt::format("a turn is {} requests", settings.own.of<RoundRobinSettings>().visit);
}

}  // namespace

constinit const PolicyKind RoundRobin::kKind = {.name = "round_robin",
                                                .share_words = kWords,
                                                .per_request = {kKiB},
                                                .make = make,
                                                .read = read,
                                                .summary = summary};

std::vector<const PolicyKind*> policies_with_round_robin() {
  const PolicyKinds known = known_policies();
  std::vector<const PolicyKind*> all(known.begin(), known.end());
  all.push_back(&RoundRobin::kKind);
  return all;
}

Result<void> RoundRobin::set_share(AppId app, const Share& share, TimePoint /*now*/) {
  flows_.grow(app);
  turns_.grow(flows_.size());
  flows_[std::to_underlying(app)].visit = share.own_value(kWords[0].name).value_or(settings_.visit);
  return {};
}

void RoundRobin::begin_turn(std::uint32_t index) {
  Flow& flow = flows_[index];
  flow.left = flow.visit;
  const FlowTournament::Key key = {.tag = asked_++, .order = flow.queue.front()->order};
  turns_.put(index, key);
}

void RoundRobin::enqueue(IoRequest& request, TimePoint now) {
  const auto index = std::to_underlying(request.app);
  if (flows_.push_back(flows_.of(request), request) != Joined::as_head) return;
  flows_.holds().wait_for_turn(index, now);
  begin_turn(index);
}

Policy::Head RoundRobin::head(TimePoint /*now*/) {
  return {.request = turns_.empty() ? nullptr : flows_[turns_.top()].queue.front()};
}

void RoundRobin::dispatch(IoRequest& request, TimePoint now) {
  const auto index = std::to_underlying(request.app);
  Flow& flow = flows_.of(request);
  flows_.dispatch(flow, request, now);
  flow.longest_wait = std::max(flow.longest_wait, now - request.arrival);
  --flow.left;
  const bool ends = flow.left == 0 || flow.queue.empty();
  if (ends) ++flow.turns;
  if (flow.queue.empty()) {
    turns_.erase(index);
    return;
  }
  flows_.holds().wait_for_turn(index, now);
  if (ends) begin_turn(index);
}

void RoundRobin::complete(const IoRequest& request, Cost /*cost*/, TimePoint /*now*/) {
  flows_.of(request).account.completed();
}

void RoundRobin::withdraw(IoRequest& request, TimePoint now) {
  const auto index = std::to_underlying(request.app);
  Flow& flow = flows_.of(request);
  const bool was_head = flows_.withdraw(flow, request, now);
  if (flow.queue.empty()) {
    turns_.erase(index);
  } else if (was_head) {
    flows_.holds().wait_for_turn(index, now);
  }
}

WaitReason RoundRobin::why_waiting(AppId app, TimePoint /*now*/) const {
  const bool is_next = !turns_.empty() && turns_.top() == std::to_underlying(app);
  return {.reason = is_next ? kIsNext : "it is the turn of others"};
}

StatusFields RoundRobin::report(AppId app, TimePoint /*now*/) const {
  using Join = StatusField::Join;
  StatusFields fields;
  const auto index = std::to_underlying(app);
  if (index >= flows_.size()) return fields;
  const Flow& flow = flows_[index];
  fields.add({.name = "turns", .value = flow.turns, .join = Join::sum});
  fields.add({.name = "longest_wait", .value = flow.longest_wait, .join = Join::largest});
  fields.add({.name = "waits_for_turn", .value = !flow.queue.empty(), .join = Join::every});
  return fields;
}

StatusFields RoundRobin::server(TimePoint /*now*/) const {
  StatusFields fields;
  fields.add({.name = "rest", .value = settings_.rest});
  fields.add({.name = "order", .value = std::string_view("in turn")});
  return fields;
}

}  // namespace vpfs
