#include "test/control/allocation/coordinated_site.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <string>
#include <utility>

#include "base/check.h"

namespace vpfs::allocation {
namespace {

using namespace std::chrono_literals;

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

void CapSum::count(ModelStage& stage) {
  const Amounts now = stage.caps();
  in_force_.bytes += now.bytes - stage.counted.bytes;
  in_force_.operations += now.operations - stage.counted.operations;
  stage.counted = now;
  most_.bytes = std::max(most_.bytes, in_force_.bytes);
  most_.operations = std::max(most_.operations, in_force_.operations);
  if (in_force_.bytes > capacity_.bytes || in_force_.operations > capacity_.operations) {
    is_safe_ = false;
  }
}

// A stream in both directions. What was sent comes in order; when it breaks, the rest is lost.
// A process that was followed by another one goes on with what it still gets.
struct CoordinatedSite::StageConnection {
  template <typename Message>
  struct UnderWay {
    TimePoint at;
    Message message;
  };

  std::shared_ptr<ModelStage> process;
  StageId id;
  bool is_broken = false;  // for the coordinator
  ModelStage::Told told;
  std::deque<UnderWay<SentCycle>> to_stage;
  std::deque<UnderWay<SentReport>> to_coordinator;
};

CoordinatedSite::CoordinatedSite(const SiteSettings& settings)
    : settings_(settings),
      cycle_settings_{.capacity = {.bytes = 1'000'003, .operations = 7919},
                      .period = 50ms,
                      .lease = 300ms,
                      .transit = 150ms,
                      .silent_cycles = 5},
      time_(settings.seed),
      caps_(cycle_settings_.capacity),
      processes_(settings.stages),
      connections_(settings.stages) {}

CoordinatedSite::~CoordinatedSite() = default;

void CoordinatedSite::run() {
  for (std::uint32_t i = 0; i < settings_.stages; ++i) {
    start_process(i);
    time_.at(now() + time_.random_time(0ms, 100ms), [this, i] { connect(i); });
  }
  start_coordinator(1, now());
  time_.run(TimePoint{} + settings_.end, caps_.is_safe());
}

void CoordinatedSite::start_coordinator(std::uint64_t term, TimePoint clear_from) {
  cycle_settings_.clear_from = clear_from;
  auto policy = std::make_unique<RandomPolicy>(cycle_settings_.capacity, time_.random()());
  policy_ = policy.get();
  coordinator_ = std::make_unique<CycleState>(cycle_settings_, std::move(policy), term);
  time_.at(now(), [this, number = ++coordinator_number_] {
    if (number == coordinator_number_) cycle();
  });
}

void CoordinatedSite::restart_coordinator() {
  ++outcome_.coordinator_restarts;
  for (std::uint32_t i = 0; i < settings_.stages; ++i) {
    if (!connections_[i]) continue;
    break_connection(i, false);
    time_.at(now() + time_.random_time(0ms, 200ms), [this, i] { connect(i); });
  }
  start_coordinator(coordinator_->term() + 1,
                    now() + cycle_settings_.lease + cycle_settings_.transit);
}

void CoordinatedSite::cycle() {
  if (has_faults()) {
    if (time_.happens(settings_.coordinator_restarts)) return restart_coordinator();
    for (std::uint32_t i = 0; i < settings_.stages; ++i) fault(i);
  } else {
    policy_->hold_still();
  }
  std::vector<std::uint32_t> to_close;
  for (const Outgoing& each : coordinator_->begin_cycle(now())) {
    const std::shared_ptr<StageConnection> connection =
        connections_[stage_by_id_[each.stage.index]];
    VPFS_ASSERT(connection && connection->id == each.stage);
    // Mostly within a cycle; some take many.
    const bool is_slow = has_faults() && time_.happens(100);
    TimePoint at = now() + (is_slow ? time_.random_time(0ms, 600ms) : time_.random_time(1ms, 30ms));
    if (!connection->to_stage.empty()) at = std::max(at, connection->to_stage.back().at);
    time_.at(at, [this, connection] { deliver(connection); });
    connection->to_stage.push_back({.at = at, .message = SentCycle(each, coordinator_->term())});
    if (each.close) to_close.push_back(connection->process->stage);
  }
  for (const std::uint32_t stage : to_close) {
    ++outcome_.disconnected;
    break_connection(stage, true);
    time_.at(now() + time_.random_time(10ms, 200ms), [this, stage] { connect(stage); });
  }
  time_.at(now() + cycle_settings_.deadline, [this] { coordinator_->on_deadline(now()); });
  time_.at(now() + cycle_settings_.period, [this, number = coordinator_number_] {
    if (number == coordinator_number_) cycle();
  });
}

void CoordinatedSite::fault(std::uint32_t stage) {
  ModelStage& process = *processes_[stage];
  if (time_.happens(settings_.flow_changes)) {
    process.change_flows(time_.random());
    caps_.count(process);
  }
  if (time_.happens(settings_.hangs)) {
    process.hangs_until = now() + time_.random_time(10ms, 1s);
  }
  if (time_.happens(settings_.refusals)) {
    process.refuses_until = now() + time_.random_time(10ms, 1s);
  }
  const bool restarts = time_.happens(settings_.restarts);
  if (!restarts && !time_.happens(settings_.breaks)) return;
  if (connections_[stage]) {
    ++outcome_.breaks;
    break_connection(stage, true);
    time_.at(now() + time_.random_time(0ms, 600ms), [this, stage] { connect(stage); });
  }
  if (!restarts) return;
  ++outcome_.stage_restarts;
  start_process(stage);
}

void CoordinatedSite::start_process(std::uint32_t stage) {
  processes_[stage] = std::make_shared<ModelStage>(stage, ++incarnations_, time_.random());
}

void CoordinatedSite::connect(std::uint32_t stage) {
  if (connections_[stage]) return;
  const std::shared_ptr<ModelStage>& process = processes_[stage];
  const Result<StageId> id =
      coordinator_->join("stage" + std::to_string(stage), process->incarnation, now());
  VPFS_ASSERT(id);
  connections_[stage] = std::make_shared<StageConnection>();
  connections_[stage]->process = process;
  connections_[stage]->id = *id;
  stage_by_id_.resize(std::max<std::size_t>(stage_by_id_.size(), id->index + 1));
  stage_by_id_[id->index] = stage;
}

// The stage still reads a part of what was sent, within the transit.
void CoordinatedSite::break_connection(std::uint32_t stage, bool coordinator_lives) {
  const std::shared_ptr<StageConnection> connection = std::move(connections_[stage]);
  connections_[stage] = nullptr;
  connection->is_broken = true;
  if (coordinator_lives) coordinator_->leave(connection->id, now());
  const std::size_t kept = time_.random()() % (connection->to_stage.size() + 1);
  while (connection->to_stage.size() > kept) connection->to_stage.pop_back();
  TimePoint last = now();
  for (auto& each : connection->to_stage) {
    last += time_.random_time(0ms, now() + cycle_settings_.transit - last);
    each.at = last;
    time_.at(each.at, [this, connection] { deliver(connection); });
  }
}

void CoordinatedSite::deliver(const std::shared_ptr<StageConnection>& connection) {
  if (connection->to_stage.empty() || connection->to_stage.front().at > now()) return;
  const ModelStage& process = *connection->process;
  if (!connection->is_broken && process.hangs_until > now()) {
    for (auto& each : connection->to_stage) each.at = std::max(each.at, process.hangs_until);
    return time_.at(process.hangs_until, [this, connection] { deliver(connection); });
  }
  const SentCycle cycle = std::move(connection->to_stage.front().message);
  connection->to_stage.pop_front();
  apply(*connection, cycle);
  if (!connection->is_broken && !cycle.head.close) answer(connection, cycle);
  deliver(connection);
}

void CoordinatedSite::apply(StageConnection& connection, const SentCycle& cycle) {
  const std::shared_ptr<ModelStage> process = connection.process;
  if (cycle.head.complete) end_lease(*process);
  switch (process->apply(cycle, connection.told, now())) {
    case ModelStage::Applied::nothing:
      return;
    case ModelStage::Applied::outdated:
      ++outcome_.outdated;
      return;
    case ModelStage::Applied::refused:
      ++outcome_.refused;
      return;
    case ModelStage::Applied::applied:
      ++outcome_.applied;
  }
  time_.at(process->lease_end(), [this, process] { end_lease(*process); });
  caps_.count(*process);
}

void CoordinatedSite::end_lease(ModelStage& stage) {
  if (!stage.end_lease(now())) return;
  ++outcome_.lease_ends;
  caps_.count(stage);
}

void CoordinatedSite::answer(const std::shared_ptr<StageConnection>& connection,
                             const SentCycle& cycle) {
  TimePoint at = now() + time_.random_time(1ms, 30ms);
  if (!connection->to_coordinator.empty()) {
    at = std::max(at, connection->to_coordinator.back().at);
  }
  connection->to_coordinator.push_back(
      {.at = at,
       .message = connection->process->answer(cycle, connection->told, true, time_.random())});
  time_.at(at, [this, connection] { take_answer(connection); });
}

void CoordinatedSite::take_answer(const std::shared_ptr<StageConnection>& connection) {
  if (connection->is_broken) return;
  const SentReport report = std::move(connection->to_coordinator.front().message);
  connection->to_coordinator.pop_front();
  report.deliver(*coordinator_, connection->id, now());
}

}  // namespace vpfs::allocation
