#include "test/control/allocation/coordinated_site.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace vpfs::allocation {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kFlows = 3;  // of a stage, at most
constexpr std::uint32_t kJobs = 20;

void split(std::uint64_t amount, std::span<const std::uint64_t> weights, std::size_t from,
           const std::function<void(std::size_t, std::uint64_t)>& give) {
  std::uint64_t all = 0;
  for (const std::uint64_t each : weights) all += each;
  std::uint64_t left = amount;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::uint64_t part = all == 0 ? 0 : amount / all * weights[i];
    give(i, part);
    left -= part;
  }
  give(from, left + (all == 0 ? 0 : amount / all * weights[from]));
}

}  // namespace

Result<void> RandomPolicy::allocate(std::span<const Pair> pairs, Duration /*period*/,
                                    const Amounts& less, std::span<const std::string_view> /*jobs*/,
                                    std::span<Grant> grants) {
  VPFS_ASSERT(less.bytes <= capacity_.bytes && less.operations <= capacity_.operations);
  if (is_still_) random_.seed(1);
  std::vector<std::uint64_t> weights(pairs.size());
  // Sometimes one gets nearly all.
  for (std::uint64_t& each : weights) each = random_() % 8 == 0 ? random_() % 1000 : random_() % 10;
  split(capacity_.bytes - less.bytes, weights, random_() % pairs.size(),
        [&](std::size_t i, std::uint64_t part) { grants[i].bytes = part; });
  std::ranges::reverse(weights);
  split(capacity_.operations - less.operations, weights, random_() % pairs.size(),
        [&](std::size_t i, std::uint64_t part) { grants[i].operations = part; });
  return {};
}

// A run of a stage's program. One that was followed by another goes on with what it still gets.
struct CoordinatedSite::Process {
  struct Flow {
    bool exists = false;
    std::uint32_t generation = 0;
    std::string job;
    std::uint64_t done = 0;
  };

  std::uint32_t stage = 0;
  std::uint64_t incarnation = 0;
  std::array<Flow, kFlows> flows;
  stage::Allocations allocations;
  Amounts counted;  // in the sum
  TimePoint hangs_until = {};
  TimePoint refuses_until = {};
};

struct CoordinatedSite::Message {
  TimePoint at;
  Outgoing head;
  std::uint64_t term = 0;
  std::vector<FlowGrant> grants;
};

// A stream in both directions. What was sent comes in order; when it breaks, the rest is lost.
struct CoordinatedSite::Connection {
  struct Reply {
    TimePoint at;
    Answer head;
    std::vector<std::pair<FlowName, std::string>> announced;
    std::vector<FlowCounters> counters;
  };

  std::shared_ptr<Process> process;
  StageId id;
  bool is_broken = false;                                 // for the coordinator
  std::array<std::optional<std::uint32_t>, kFlows> told;  // generations
  std::deque<Message> to_stage;
  std::deque<Reply> to_coordinator;
};

CoordinatedSite::CoordinatedSite(const SiteSettings& settings)
    : settings_(settings),
      random_(settings.seed),
      processes_(settings.stages),
      connections_(settings.stages) {
  cycle_settings_.capacity = {.bytes = 1'000'003, .operations = 7919};
  cycle_settings_.period = 50ms;
  cycle_settings_.lease = 300ms;
  cycle_settings_.transit = 150ms;
  cycle_settings_.silent_cycles = 5;
}

CoordinatedSite::~CoordinatedSite() = default;

void CoordinatedSite::at(TimePoint time, Action action) {
  events_.push({.at = std::max(time, now_), .number = ++events_made_, .action = std::move(action)});
}

Duration CoordinatedSite::random_time(Duration least, Duration most) {
  return least + Duration(random_() % static_cast<std::uint64_t>((most - least).count() + 1));
}

void CoordinatedSite::run() {
  for (std::uint32_t i = 0; i < settings_.stages; ++i) {
    start_process(i);
    at(now_ + random_time(0ms, 100ms), [this, i] { connect(i); });
  }
  start_coordinator(1, now_);
  while (outcome_.is_safe && !events_.empty()) {
    const Event next = events_.top();
    if (next.at > TimePoint{} + settings_.end) break;
    events_.pop();
    now_ = next.at;
    next.action();
  }
}

void CoordinatedSite::start_coordinator(std::uint64_t term, TimePoint clear_from) {
  cycle_settings_.clear_from = clear_from;
  auto policy = std::make_unique<RandomPolicy>(cycle_settings_.capacity, random_());
  policy_ = policy.get();
  coordinator_ = std::make_unique<CycleState>(cycle_settings_, std::move(policy), term);
  at(now_, [this, number = ++coordinator_number_] {
    if (number == coordinator_number_) cycle();
  });
}

void CoordinatedSite::restart_coordinator() {
  ++outcome_.coordinator_restarts;
  for (std::uint32_t i = 0; i < settings_.stages; ++i) {
    if (!connections_[i]) continue;
    break_connection(i, false);
    at(now_ + random_time(0ms, 200ms), [this, i] { connect(i); });
  }
  start_coordinator(coordinator_->term() + 1,
                    now_ + cycle_settings_.lease + cycle_settings_.transit);
}

void CoordinatedSite::cycle() {
  if (has_faults()) {
    if (happens(settings_.coordinator_restarts)) return restart_coordinator();
    for (std::uint32_t i = 0; i < settings_.stages; ++i) fault(i);
  } else {
    policy_->hold_still();
  }
  std::vector<std::uint32_t> to_close;
  for (const Outgoing& each : coordinator_->begin_cycle(now_)) {
    const std::shared_ptr<Connection> connection = connections_[stage_by_id_[each.stage.index]];
    VPFS_ASSERT(connection && connection->id == each.stage);
    // Mostly within a cycle; some take many.
    const bool is_slow = has_faults() && happens(100);
    const Duration delay = is_slow ? random_time(0ms, 600ms) : random_time(1ms, 30ms);
    Message message = {.at = now_ + delay,
                       .head = each,
                       .term = coordinator_->term(),
                       .grants = {each.grants.begin(), each.grants.end()}};
    if (!connection->to_stage.empty()) {
      message.at = std::max(message.at, connection->to_stage.back().at);
    }
    at(message.at, [this, connection] { deliver(connection); });
    connection->to_stage.push_back(std::move(message));
    if (each.close) to_close.push_back(connection->process->stage);
  }
  for (const std::uint32_t stage : to_close) {
    ++outcome_.disconnected;
    break_connection(stage, true);
    at(now_ + random_time(10ms, 200ms), [this, stage] { connect(stage); });
  }
  at(now_ + cycle_settings_.deadline, [this] { coordinator_->on_deadline(now_); });
  at(now_ + cycle_settings_.period, [this, number = coordinator_number_] {
    if (number == coordinator_number_) cycle();
  });
}

void CoordinatedSite::fault(std::uint32_t stage) {
  Process& process = *processes_[stage];
  if (happens(settings_.flow_changes)) change_flows(process);
  if (happens(settings_.hangs)) process.hangs_until = now_ + random_time(10ms, 1s);
  if (happens(settings_.refusals)) process.refuses_until = now_ + random_time(10ms, 1s);
  const bool restarts = happens(settings_.restarts);
  if (!restarts && !happens(settings_.breaks)) return;
  if (connections_[stage]) {
    ++outcome_.breaks;
    break_connection(stage, true);
    at(now_ + random_time(0ms, 600ms), [this, stage] { connect(stage); });
  }
  if (!restarts) return;
  ++outcome_.stage_restarts;
  start_process(stage);
}

void CoordinatedSite::start_process(std::uint32_t stage) {
  auto process = std::make_shared<Process>();
  process->stage = stage;
  process->incarnation = ++incarnations_;
  processes_[stage] = std::move(process);
  change_flows(*processes_[stage]);
}

void CoordinatedSite::change_flows(Process& process) {
  const std::uint32_t number = static_cast<std::uint32_t>(random_() % kFlows);
  Process::Flow& flow = process.flows[number];
  if (flow.exists) {
    process.allocations.forget(AppId{number});
    count(process);
  }
  flow.exists = !flow.exists || happens(5000);
  if (!flow.exists) return;
  ++flow.generation;
  flow.done = 0;
  const auto has_job = [&process](const std::string& job) {
    return std::ranges::any_of(process.flows, [&](const Process::Flow& other) {
      return other.exists && other.job == job;
    });
  };
  flow.job.clear();
  std::string job;
  do {
    job = "job" + std::to_string(random_() % kJobs);
  } while (has_job(job));
  flow.job = job;
}

void CoordinatedSite::connect(std::uint32_t stage) {
  if (connections_[stage]) return;
  const std::shared_ptr<Process>& process = processes_[stage];
  const Result<StageId> id =
      coordinator_->join("stage" + std::to_string(stage), process->incarnation, now_);
  VPFS_ASSERT(id);
  connections_[stage] = std::make_shared<Connection>();
  connections_[stage]->process = process;
  connections_[stage]->id = *id;
  stage_by_id_.resize(std::max<std::size_t>(stage_by_id_.size(), id->index + 1));
  stage_by_id_[id->index] = stage;
}

// The stage still reads a part of what was sent, within the transit.
void CoordinatedSite::break_connection(std::uint32_t stage, bool coordinator_lives) {
  const std::shared_ptr<Connection> connection = std::move(connections_[stage]);
  connections_[stage] = nullptr;
  connection->is_broken = true;
  if (coordinator_lives) coordinator_->leave(connection->id, now_);
  const std::size_t kept = random_() % (connection->to_stage.size() + 1);
  connection->to_stage.resize(kept);
  TimePoint last = now_;
  for (Message& each : connection->to_stage) {
    last = random_time(0ms, now_ + cycle_settings_.transit - last) + last;
    each.at = last;
    at(each.at, [this, connection] { deliver(connection); });
  }
}

void CoordinatedSite::deliver(const std::shared_ptr<Connection>& connection) {
  if (connection->to_stage.empty() || connection->to_stage.front().at > now_) return;
  const Process& process = *connection->process;
  if (!connection->is_broken && process.hangs_until > now_) {
    for (Message& each : connection->to_stage) each.at = std::max(each.at, process.hangs_until);
    return at(process.hangs_until, [this, connection] { deliver(connection); });
  }
  const Message message = std::move(connection->to_stage.front());
  connection->to_stage.pop_front();
  apply(*connection, message);
  if (!connection->is_broken && !message.head.close) answer(connection, message);
  deliver(connection);
}

void CoordinatedSite::apply(Connection& connection, const Message& message) {
  if (!message.head.complete) return;
  Process& process = *connection.process;
  stage::Allocations& allocations = process.allocations;
  if (allocations.in_force() && allocations.lease_end() <= now_) end_lease(connection.process);
  const stage::Epoch epoch = {.term = message.term, .sequence = message.head.sequence};
  if (allocations.refuses(epoch)) {
    ++outcome_.outdated;
    return;
  }
  if (process.refuses_until > now_) {
    ++outcome_.refused;
    return;
  }
  ++outcome_.applied;
  allocations.begin({.epoch = epoch, .lease = message.head.lease, .complete = true}, now_);
  for (const FlowGrant& each : message.grants) {
    if (each.flow >= kFlows || !connection.told[each.flow]) continue;
    const Process::Flow& flow = process.flows[each.flow];
    if (!flow.exists || flow.generation != *connection.told[each.flow]) continue;
    Limits limits;
    if (each.grant.bytes) limits.bytes = BytesPerSecond{*each.grant.bytes};
    limits.operations = each.grant.operations;
    (void)allocations.set_limits(AppId{each.flow}, limits);
  }
  for (std::uint32_t i = 0; i < kFlows; ++i) {
    if (!allocations.limits(AppId{i}).any() || allocations.was_mentioned(AppId{i})) continue;
    (void)allocations.set_limits(AppId{i}, {});
  }
  at(allocations.lease_end(), [this, process = connection.process] {
    if (process->allocations.in_force() && process->allocations.lease_end() <= now_) {
      end_lease(process);
    }
  });
  count(process);
}

void CoordinatedSite::end_lease(const std::shared_ptr<Process>& process) {
  ++outcome_.lease_ends;
  for (std::uint32_t i = 0; i < kFlows; ++i) {
    (void)process->allocations.set_limits(AppId{i}, {});
  }
  process->allocations.end();
  count(*process);
}

void CoordinatedSite::answer(const std::shared_ptr<Connection>& connection,
                             const Message& message) {
  Process& process = *connection->process;
  const bool is_applied = !message.head.complete ||
                          process.allocations.epoch() ==
                              stage::Epoch{.term = message.term, .sequence = message.head.sequence};
  Connection::Reply reply = {
      .at = now_ + random_time(1ms, 30ms),
      .head = {.term = message.term, .sequence = message.head.sequence, .applied = is_applied},
      .announced = {},
      .counters = {}};
  for (std::uint32_t i = 0; i < kFlows; ++i) {
    Process::Flow& flow = process.flows[i];
    std::optional<std::uint32_t>& told = connection->told[i];
    if (told && (!flow.exists || *told != flow.generation)) {
      reply.counters.push_back({.flow = i, .ended = true});
      told.reset();
    }
    if (!flow.exists) continue;
    if (!told) {
      reply.announced.push_back({{.flow = i, .generation = flow.generation}, flow.job});
      told = flow.generation;
    }
    flow.done += random_() % 100;
    reply.counters.push_back({.flow = i, .arrived_bytes = flow.done, .done_cost = flow.done});
  }
  if (!connection->to_coordinator.empty()) {
    reply.at = std::max(reply.at, connection->to_coordinator.back().at);
  }
  at(reply.at, [this, connection] { take_answer(connection); });
  connection->to_coordinator.push_back(std::move(reply));
}

void CoordinatedSite::take_answer(const std::shared_ptr<Connection>& connection) {
  if (connection->is_broken) return;
  const Connection::Reply reply = std::move(connection->to_coordinator.front());
  connection->to_coordinator.pop_front();
  for (auto [name, job] : reply.announced) {
    name.job = job;
    coordinator_->on_flow(connection->id, name);
  }
  const AnswerResult result =
      coordinator_->on_report(connection->id, reply.head, reply.counters, now_);
  VPFS_ASSERT(result == AnswerResult::taken);
}

void CoordinatedSite::count(Process& process) {
  Amounts now;
  for (std::uint32_t i = 0; i < kFlows; ++i) {
    const Limits limits = process.allocations.limits(AppId{i});
    if (limits.bytes) now.bytes += limits.bytes->count;
    if (limits.operations) now.operations += *limits.operations;
  }
  Amounts& sum = outcome_.in_force;
  sum.bytes += now.bytes - process.counted.bytes;
  sum.operations += now.operations - process.counted.operations;
  process.counted = now;
  outcome_.most_in_force.bytes = std::max(outcome_.most_in_force.bytes, sum.bytes);
  outcome_.most_in_force.operations = std::max(outcome_.most_in_force.operations, sum.operations);
  if (sum.bytes > capacity().bytes || sum.operations > capacity().operations) {
    outcome_.is_safe = false;
  }
}

}  // namespace vpfs::allocation
