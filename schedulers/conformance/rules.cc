#include "schedulers/conformance/rules.h"

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "schedulers/conformance/exercise.h"
#include "schedulers/policies/registry.h"

namespace vpfs::conformance {
namespace {

using Requests = std::vector<IoRequest>;
using Pointers = std::vector<IoRequest*>;

std::unique_ptr<Scheduler> scheduler_of(const Subject& subject, Depth depth) {
  SchedulerSettings settings = subject.settings;
  settings.depth = depth;
  return make_scheduler(*subject.kind, settings);
}

// None, apportioned and strict classes in turn.
TrafficClasses classes_of(std::uint64_t seed) {
  TrafficClasses classes = {.classes = {{.name = "a", .share = 1},
                                        {.name = "b", .share = 1000},
                                        {.name = "c", .share = 7}}};
  classes.mode = TrafficClasses::Mode{static_cast<std::uint8_t>(seed % 3)};
  if (seed % 2 == 0) classes.max_starvation = std::chrono::milliseconds(seed);
  return classes;
}

Pointers pointers_to(Requests& requests) {
  Pointers all;
  for (IoRequest& request : requests) all.push_back(&request);
  return all;
}

void take_step(Exercise& exercise, Pointers& free) {
  exercise.pass_time();
  const std::uint64_t choice = exercise.draw(16);
  if (choice < 7 && !free.empty()) {
    exercise.enqueue(*free.back());
    free.pop_back();
  } else if (choice < 12) {
    exercise.complete_one(free);
  } else if (choice < 13) {
    exercise.withdraw_one(free);
  } else if (choice < 14) {
    const auto app = static_cast<std::uint32_t>(exercise.draw(exercise.flows()));
    exercise.draw(4) == 0 ? exercise.remove(app) : exercise.change_share(app);
    for (std::uint64_t i = exercise.draw(8); i > 0; --i) exercise.count_elsewhere(app);
    for (std::uint64_t i = exercise.draw(3); i > 0; --i) exercise.allocate(app);
  } else {
    exercise.dispatch_all();
  }
}

std::string use_at_random(const Subject& subject, std::uint64_t seed) {
  std::mt19937_64 shape(seed * 7919);
  SchedulerSettings settings = subject.settings;
  settings.depth = {.requests = static_cast<std::uint32_t>(1 + shape() % 20),
                    .cost = shape() % 3 == 0 ? UINT64_MAX : std::uint64_t{1} << shape() % 44};
  settings.classes = classes_of(seed);
  const bool holds_back = subject.vary && subject.vary(settings, seed);
  Exercise exercise(*subject.kind, settings, holds_back,
                    static_cast<std::uint32_t>(1 + shape() % 12), seed);
  Requests requests(64);
  Pointers free = pointers_to(requests);
  for (int step = 0; step < 400; ++step) {
    take_step(exercise, free);
    if (step % 8 == 0) exercise.check_status();
    if (!exercise.problem().empty()) return exercise.problem();
  }
  if (seed % 2 == 0) exercise.remove_all();
  for (std::size_t i = 0; i <= 200 * requests.size() && !exercise.drained(); ++i) {
    exercise.dispatch_all();
    exercise.pass_wait();
    exercise.complete_one(free);
    if (!exercise.problem().empty()) return exercise.problem();
  }
  exercise.check_status();
  if (!exercise.problem().empty()) return exercise.problem();
  if (!exercise.drained()) return "requests stay in the queue for ever";
  const std::set<IoRequest*> left(free.begin(), free.end());
  return left.size() == requests.size() ? "" : "a request left twice";
}

// Shares and a coordinator's limits change while flows are backlogged, requests are withdrawn from
// anywhere, complete in any order and with any part of their cost done; weights span 1:1'000'000
// and costs 1 B to 1 TiB.
std::string every_request_leaves_once(const Subject& subject) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    const std::string problem = use_at_random(subject, seed);
    if (!problem.empty()) return fmt::format("seed {}: {}", seed, problem);
  }
  return "";
}

// One busy period of many flows, longer than any period of a policy. Returns how many requests were
// done.
std::size_t busy_period(Scheduler& scheduler, Requests& requests, Pointers& sent,
                        std::uint32_t flows, TimePoint& now) {
  constexpr Duration kLongestBusyPeriod = std::chrono::minutes(10);
  const TimePoint begin = now;
  sent.clear();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].app = AppId{static_cast<std::uint32_t>(i % flows)};
    requests[i].cost = 1 + i;
    requests[i].size = {1 + i};
    requests[i].arrival = now;
    scheduler.enqueue(requests[i], now);
  }
  for (std::size_t i = 0; i < requests.size(); i += 7) scheduler.withdraw(requests[i], now);
  std::size_t done = 0;
  while (scheduler.queued() + scheduler.outstanding() > 0) {
    while (IoRequest* const request = scheduler.next(now).request) {
      if (sent.size() == requests.size()) return 0;  // more than there are
      sent.push_back(request);
    }
    now += std::chrono::milliseconds(1);
    if (now > begin + kLongestBusyPeriod) return done;
    if (done == sent.size()) continue;
    scheduler.complete(*sent[done], sent[done]->cost / 2, now);
    ++done;
  }
  return done;
}

Share share_of_many(std::uint32_t app) {
  Share share = {.weight = app + 1, .burst = {1000}, .own = {{"nodes", app + 1}}};
  if (app % 3 == 0) share.rate = {1000 * kKiB};
  if (app % 5 == 0) share.min = {100 * kKiB};
  if (app % 10 == 0) share.latency = std::chrono::seconds(10);
  return share;
}

std::string nothing_allocates_once_warm(const Subject& subject) {
  constexpr std::uint32_t kFlows = 300;
  const auto scheduler = scheduler_of(subject, {.requests = 8});
  for (std::uint32_t app = 0; app < kFlows; ++app) {
    (void)scheduler->set_share(AppId{app}, share_of_many(app), {});
    if (app % 7 == 0) (void)scheduler->set_limits(AppId{app}, {.operations = 1000}, {});
  }
  Requests requests(3000);
  Pointers sent;
  sent.reserve(requests.size());
  TimePoint now = {};
  (void)busy_period(*scheduler, requests, sent, kFlows, now);
  const auto allocations = [&] { return subject.allocations ? subject.allocations() : 0; };
  const std::uint64_t before = allocations();
  const std::size_t done = busy_period(*scheduler, requests, sent, kFlows, now);
  (void)scheduler->set_share(AppId{3}, {.weight = 9}, now);
  (void)scheduler->set_limits(AppId{0}, {.bytes = BytesPerSecond{kMiB}}, now);
  (void)scheduler->flow(AppId{1});
  (void)scheduler->why_waiting(AppId{1}, now);
  const std::uint64_t made = allocations() - before;
  if (made != 0) return fmt::format("allocates {} times for 3000 requests of known flows", made);
  const std::size_t expected = requests.size() - (requests.size() + 6) / 7;
  return done == expected ? "" : fmt::format("sends {} of {} requests", done, expected);
}

// A policy that cannot enforce limits refuses them, and they hold nothing.
std::string what_it_says_about_limits_is_true(const Subject& subject) {
  const bool caps = subject.kind->caps;
  const auto scheduler = scheduler_of(subject, {.requests = 4});
  (void)scheduler->set_share(AppId{0}, {}, {});
  if (scheduler->set_limits(AppId{0}, {.operations = 0}, {}) != caps) {
    return "set_limits() answers otherwise than PolicyKind::caps";
  }
  IoRequest request = {.size = {1}, .cost = 1};
  scheduler->enqueue(request, {});
  if ((scheduler->next({}).request == nullptr) != caps) {
    return caps ? "a limit of zero holds nothing" : "a limit that was refused holds a request";
  }
  if (scheduler->set_limits(AppId{0}, {}, {}) != caps) return "a limit cannot be lifted";
  if (caps && scheduler->next({}).request != &request) return "a limit that was lifted still holds";
  return "";
}

std::string what_it_says_about_service_elsewhere_is_true(const Subject& subject) {
  const auto scheduler = scheduler_of(subject, {.requests = 1});
  Requests requests(2);
  for (std::uint32_t app = 0; app < 2; ++app) {
    (void)scheduler->set_share(AppId{app}, {}, {});
    requests[app] = {.app = AppId{app}, .size = {kKiB}, .cost = kKiB};
    scheduler->enqueue(requests[app], {});
  }
  scheduler->served_elsewhere(AppId{0}, kMiB, std::chrono::seconds(1), {});
  const IoRequest* const sent = scheduler->next({}).request;
  if (subject.kind->elsewhere) {
    return sent == &requests[1] ? "" : "service elsewhere does not count, as PolicyKind::elsewhere";
  }
  return sent != nullptr ? "" : "service elsewhere holds requests, although it does not count";
}

std::string an_idle_one_has_nothing_to_say(const Subject& subject) {
  const auto scheduler = scheduler_of(subject, {});
  if (scheduler->next({}).request != nullptr) return "it sends what it does not have";
  if (scheduler->next({}).until != kNever) return "it wants to be asked again";
  if (scheduler->queued() != 0) return "queued() is not zero";
  const FlowState state = scheduler->flow(AppId{17});
  if (state.queued != 0 || state.oldest != nullptr) return "an unknown flow has requests";
  return scheduler->why_waiting(AppId{17}, {}).reason.empty() ? "" : "an unknown flow waits";
}

std::string flows_may_appear_in_any_order(const Subject& subject) {
  const auto scheduler = scheduler_of(subject, {.requests = 1});
  Requests requests(20);
  for (std::uint32_t i = 0; i < requests.size(); ++i) {
    const AppId app{(i * 37) % 101};
    (void)scheduler->set_share(app, {}, {});
    requests[i].app = app;
    requests[i].cost = 4096;
    scheduler->enqueue(requests[i], {});
  }
  std::set<IoRequest*> left;
  while (IoRequest* const request = scheduler->next({}).request) {
    if (!left.insert(request).second) return "a request goes twice";
    scheduler->complete(*request, request->cost, {});
  }
  return left.size() == requests.size()
             ? ""
             : fmt::format("{} of {} requests go", left.size(), requests.size());
}

std::string a_request_larger_than_the_depth_passes(const Subject& subject) {
  const auto scheduler = scheduler_of(subject, {.requests = 4, .cost = 1});
  (void)scheduler->set_share(AppId{0}, {}, {});
  Requests requests(3);
  for (IoRequest& request : requests) {
    request.cost = kMaxCost;
    scheduler->enqueue(request, {});
  }
  for (IoRequest& request : requests) {
    if (scheduler->next({}).request != &request) return "a large request does not go in its turn";
    if (scheduler->next({}).request != nullptr) return "two go beyond the depth";
    scheduler->complete(request, 0, {});
  }
  return "";
}

// Queues requests of a few flows, and sends some of them.
void fill(Scheduler& scheduler, Requests& requests, TimePoint now) {
  for (std::uint32_t i = 0; i < requests.size(); ++i) {
    const AppId app{i % 7};
    (void)scheduler.set_share(app, {.weight = 1 + i % 3}, now);
    requests[i].app = app;
    requests[i].cost = 1 + i * 1000;
    requests[i].size = {1 + i * 1000};
    requests[i].arrival = now;
    scheduler.enqueue(requests[i], now);
  }
}

std::size_t drain(Scheduler& scheduler, TimePoint now) {
  std::size_t left = 0;
  for (int turns = 0; turns < 10'000 && scheduler.queued() > 0; ++turns) {
    const Scheduler::Decision decision = scheduler.next(now);
    if (decision.request != nullptr) {
      scheduler.complete(*decision.request, decision.request->cost, now);
      ++left;
    } else if (decision.until == kNever) {
      break;
    } else {
      now = std::max(now, decision.until);
    }
  }
  return left;
}

struct States {
  SavedState all;
  std::vector<SavedState> flows = std::vector<SavedState>(7);
};

void restore(Scheduler& scheduler, const States& states, TimePoint now) {
  scheduler.restore_all(states.all, now);
  for (std::uint32_t app = 0; app < states.flows.size(); ++app) {
    scheduler.restore(AppId{app}, states.flows[app], now);
  }
  scheduler.restored(now);
}

// A successor may have the state of one that ran, none at all, or one of another policy.
std::string a_successor_loses_nothing(const Subject& subject) {
  const TimePoint now = TimePoint() + std::chrono::seconds(1);
  Requests requests(70);
  States saved;
  States strange;
  const auto first = scheduler_of(subject, {.requests = 4});
  fill(*first, requests, now);
  Pointers sent;
  while (IoRequest* const request = first->next(now).request) sent.push_back(request);
  first->save_all(now, saved.all);
  for (std::uint32_t app = 0; app < saved.flows.size(); ++app) {
    first->save(AppId{app}, now, saved.flows[app]);
  }
  strange.all.set("classes", SavedState::Values(1));
  for (SavedState& flow : strange.flows) flow.set("tag", ~std::uint64_t{0});
  if (first->queued() != requests.size() - sent.size()) return "save() changes what is queued";
  for (const States& each : {saved, States(), strange}) {
    Requests again(70);
    const auto successor = scheduler_of(subject, {.requests = 4});
    fill(*successor, again, now);
    restore(*successor, each, now);
    if (successor->queued() != again.size()) return "restore() changes what is queued";
    const std::size_t left = drain(*successor, now);
    if (left != again.size()) return fmt::format("{} of {} requests go", left, again.size());
  }
  return "";
}

// For one class and for several.
std::string it_can_be_made(const Subject& subject) {
  for (const Scheduler::Part& part : {Scheduler::Part(), Scheduler::Part{.share = 1, .of = 3}}) {
    RateLimits limits;
    Scheduler::Part of_server = part;
    of_server.user = limits.join();
    const std::unique_ptr<Policy> made = subject.kind->make(subject.settings, limits, of_server);
    if (made == nullptr) return "make() makes nothing";
    if (made->queued() != 0) return "a new one has something queued";
  }
  return "";
}

constexpr Rule kRules[] = {
    {kFirstRule, "It can be made, for the server and for a traffic class.", it_can_be_made},
    {"idle", "It sends nothing and wants nothing without requests.",
     an_idle_one_has_nothing_to_say},
    {"once", "Each request leaves once, in order inside its flow; nothing waits without a cause.",
     every_request_leaves_once},
    {"allocation", "It allocates nothing once flows are known.", nothing_allocates_once_warm},
    {"limits", "What it says about a coordinator's limits is true.",
     what_it_says_about_limits_is_true},
    {"elsewhere", "What it says about service elsewhere is true.",
     what_it_says_about_service_elsewhere_is_true},
    {"flows", "Flows may appear in any order while others are backlogged.",
     flows_may_appear_in_any_order},
    {"large", "A request larger than the depth still passes.",
     a_request_larger_than_the_depth_passes},
    {"successor", "One that takes over with any state loses nothing.", a_successor_loses_nothing},
};

}  // namespace

std::span<const Rule> rules() {
  return kRules;
}

std::vector<Cost> divided_by_weight(const Subject& subject,
                                    std::span<const std::uint32_t> weights) {
  constexpr Cost kCost = 64 * kKiB;
  constexpr std::size_t kForEach = 1024;
  const auto scheduler = scheduler_of(subject, {.requests = 1});
  std::vector<Cost> sent(weights.size());
  Requests requests(4 * weights.size());
  TimePoint now = {};
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const AppId app{static_cast<std::uint32_t>(i % weights.size())};
    if (i < weights.size()) (void)scheduler->set_share(app, {.weight = weights[i]}, now);
    requests[i] = {.app = app, .size = {kCost}, .cost = kCost, .arrival = now};
    scheduler->enqueue(requests[i], now);
  }
  for (std::size_t i = 0; i < kForEach * weights.size(); ++i) {
    const Scheduler::Decision decision = scheduler->next(now);
    if (decision.request == nullptr && decision.until == kNever) break;
    now = std::max(now + std::chrono::microseconds(100), decision.request ? now : decision.until);
    if (decision.request == nullptr) continue;
    IoRequest& request = *decision.request;
    sent[std::to_underlying(request.app)] += kCost;
    scheduler->complete(request, kCost, now);
    request.arrival = now;
    scheduler->enqueue(request, now);
  }
  return sent;
}

}  // namespace vpfs::conformance
