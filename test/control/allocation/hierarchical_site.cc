#include "test/control/allocation/hierarchical_site.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"

namespace vpfs::allocation {

using namespace std::chrono_literals;

// A run of its program.
struct HierarchicalSite::Aggregator {
  std::uint32_t number = 0;
  std::uint64_t incarnation = 0;
  bool is_dead = false;
  TimePoint hangs_until = {};
  std::unique_ptr<CycleState> state;
  std::unique_ptr<Uplink> uplink;
  LinkPtr parent;
  std::vector<LinkPtr> stages;  // by StageId
  std::uint64_t turns = 0;
  std::optional<StageAnswer> to_answer;  // to the parent
};

struct HierarchicalSite::TreeLink {
  template <typename Message>
  struct UnderWay {
    TimePoint at;
    Message message;
  };

  std::shared_ptr<ModelStage> stage;       // else it leads to
  std::shared_ptr<Aggregator> aggregator;  // the one that it leads to, or comes from
  StageId id;
  bool is_broken = false;
  TimePoint read_until = {};  // once it is broken
  ModelStage::Told told;
  std::deque<UnderWay<SentCycle>> cycles;
  std::deque<UnderWay<SentReport>> reports;
};

HierarchicalSite::HierarchicalSite(const HierarchySettings& settings)
    : settings_(settings),
      root_settings_{.capacity = {.bytes = 1'000'003, .operations = 79'193},
                     .period = 50ms,
                     .lease = 800ms,
                     .transit = 150ms,
                     .silent_cycles = 8},
      aggregator_settings_{.period = 100ms,
                           .lease = 500ms,
                           .transit = 150ms,
                           .silent_cycles = settings.silent_cycles},
      time_(settings.seed),
      caps_(root_settings_.capacity),
      root_links_(settings.aggregators),
      aggregators_(settings.aggregators),
      aggregator_terms_(settings.aggregators),
      stages_(std::size_t{settings.aggregators} * settings.stages) {}

// Aggregators and their links hold each other.
HierarchicalSite::~HierarchicalSite() {
  for (const std::weak_ptr<Aggregator>& each : all_aggregators_) {
    const std::shared_ptr<Aggregator> aggregator = each.lock();
    if (aggregator == nullptr) continue;
    aggregator->parent = nullptr;
    aggregator->stages.clear();
  }
}

void HierarchicalSite::run() {
  for (std::uint32_t i = 0; i < stages_.size(); ++i) {
    start_stage(i);
    time_.at(now() + time_.random_time(0ms, 100ms), [this, i] { connect_stage(i); });
  }
  for (std::uint32_t i = 0; i < aggregators_.size(); ++i) start_aggregator(i);
  start_root(1, now());
  time_.run(TimePoint{} + settings_.end, caps_.is_safe());
}

void HierarchicalSite::start_root(std::uint64_t term, TimePoint clear_from) {
  root_settings_.clear_from = clear_from;
  auto policy = std::make_unique<RandomPolicy>(root_settings_.capacity, time_.random()());
  root_policy_ = policy.get();
  root_ = std::make_unique<CycleState>(root_settings_, std::move(policy), term);
  time_.at(now(), [this, number = ++root_number_] {
    if (number == root_number_) root_cycle();
  });
}

void HierarchicalSite::restart_root() {
  ++outcome_.root_restarts;
  const std::uint64_t term = root_->term() + 1;
  root_.reset();
  for (std::uint32_t i = 0; i < aggregators_.size(); ++i) break_parent_link(i);
  start_root(term, now() + root_settings_.lease + root_settings_.transit);
}

void HierarchicalSite::root_cycle() {
  if (has_faults()) {
    for (std::uint32_t i = 0; i < stages_.size(); ++i) fault_stage(i);
    for (std::uint32_t i = 0; i < aggregators_.size(); ++i) fault_aggregator(i);
    if (time_.happens(settings_.root_restarts)) return restart_root();
  } else {
    root_policy_->hold_still();
  }
  for (const LinkPtr& link : send(*root_, root_->begin_cycle(now()), root_links_, 300ms)) {
    ++outcome_.aggregators_disconnected;
    break_parent_link(link->aggregator->number);
  }
  time_.at(now() + root_settings_.period, [this, number = root_number_] {
    if (number == root_number_) root_cycle();
  });
}

void HierarchicalSite::start_aggregator(std::uint32_t number) {
  auto aggregator = std::make_shared<Aggregator>();
  all_aggregators_.push_back(aggregator);
  auto policy = std::make_unique<GivenPolicy>(Amounts{});
  GivenPolicy& given = *policy;
  aggregator->number = number;
  aggregator->incarnation = ++incarnations_;
  aggregator->state = std::make_unique<CycleState>(aggregator_settings_, std::move(policy),
                                                   ++aggregator_terms_[number]);
  aggregator->uplink = std::make_unique<Uplink>(*aggregator->state, given);
  aggregators_[number] = aggregator;
  time_.at(now() + time_.random_time(0ms, 50ms), [this, number] { connect_aggregator(number); });
  time_.at(now(), [this, aggregator] { aggregator_cycle(aggregator); });
}

void HierarchicalSite::restart_aggregator(std::uint32_t number) {
  ++outcome_.aggregator_restarts;
  const std::shared_ptr<Aggregator> dead = aggregators_[number];
  break_parent_link(number);
  dead->is_dead = true;
  for (std::uint32_t i = 0; i < stages_.size(); ++i) {
    if (&aggregator_of_stage(i) == dead.get()) break_stage_link(i);
  }
  time_.at(now() + time_.random_time(0ms, 1s), [this, number] { start_aggregator(number); });
}

void HierarchicalSite::connect_aggregator(std::uint32_t number) {
  const std::shared_ptr<Aggregator>& aggregator = aggregators_[number];
  if (aggregator->parent || aggregator->is_dead) return;
  const Result<StageId> id =
      root_->join("aggregator" + std::to_string(number), aggregator->incarnation, now());
  VPFS_ASSERT(id);
  aggregator->uplink->connect();
  aggregator->parent = std::make_shared<TreeLink>();
  aggregator->parent->aggregator = aggregator;
  aggregator->parent->id = *id;
  root_links_.resize(std::max<std::size_t>(root_links_.size(), id->index + 1));
  root_links_[id->index] = aggregator->parent;
}

void HierarchicalSite::aggregator_cycle(const std::shared_ptr<Aggregator>& aggregator) {
  if (aggregator->is_dead) return;
  const std::uint64_t turn = ++aggregator->turns;
  const bool had_lease = aggregator->uplink->in_force();
  aggregator->uplink->on_turn(now());
  if (had_lease && !aggregator->uplink->in_force()) ++outcome_.parent_lease_ends;
  CycleState& state = *aggregator->state;
  for (const LinkPtr& link :
       send(state, state.begin_cycle(now()), aggregator->stages, settings_.longest_delay)) {
    ++outcome_.stages_disconnected;
    break_stage_link(link->stage->stage);
  }
  time_.at(now() + aggregator_settings_.deadline, [this, aggregator, turn] {
    if (turn == aggregator->turns) answer_parent(aggregator);
  });
  time_.at(now() + aggregator_settings_.period, [this, aggregator, turn] {
    if (turn != aggregator->turns) return;
    time_.at(aggregator->hangs_until, [this, aggregator, turn] {
      if (turn == aggregator->turns) aggregator_cycle(aggregator);
    });
  });
}

void HierarchicalSite::answer_parent(const std::shared_ptr<Aggregator>& aggregator) {
  if (aggregator->is_dead || !aggregator->parent || !aggregator->to_answer) return;
  if (aggregator->hangs_until > now()) {
    return time_.at(aggregator->hangs_until, [this, aggregator] { answer_parent(aggregator); });
  }
  const Uplink::Report said = aggregator->uplink->report();
  SentReport report = {.head = *std::exchange(aggregator->to_answer, std::nullopt),
                       .announced = {},
                       .counters = {said.flows.begin(), said.flows.end()}};
  report.head.pending = said.pending;
  for (const FlowName& flow : said.announced) report.announced.emplace_back(flow, flow.job);
  ++outcome_.answers;
  outcome_.pending += said.pending ? 1 : 0;
  reply(aggregator->parent, std::move(report));
}

void HierarchicalSite::start_stage(std::uint32_t number) {
  stages_[number] = std::make_shared<ModelStage>(number, ++incarnations_, time_.random());
}

HierarchicalSite::Aggregator& HierarchicalSite::aggregator_of_stage(std::uint32_t number) {
  return *aggregators_[number / settings_.stages];
}

HierarchicalSite::LinkPtr& HierarchicalSite::link_of_stage(std::uint32_t number) {
  static LinkPtr none;
  none.reset();
  for (LinkPtr& link : aggregator_of_stage(number).stages) {
    if (link && link->stage->stage == number) return link;
  }
  return none;
}

void HierarchicalSite::connect_stage(std::uint32_t number) {
  Aggregator& aggregator = aggregator_of_stage(number);
  if (link_of_stage(number)) return;
  if (aggregator.is_dead || aggregator.hangs_until > now()) {
    return time_.at(now() + time_.random_time(20ms, 100ms),
                    [this, number] { connect_stage(number); });
  }
  const Result<StageId> id =
      aggregator.state->join("stage" + std::to_string(number), stages_[number]->incarnation, now());
  VPFS_ASSERT(id);
  auto link = std::make_shared<TreeLink>();
  link->stage = stages_[number];
  link->aggregator = aggregators_[aggregator.number];
  link->id = *id;
  if (aggregator.stages.size() <= id->index) aggregator.stages.resize(id->index + 1);
  aggregator.stages[id->index] = std::move(link);
}

void HierarchicalSite::fault_stage(std::uint32_t number) {
  ModelStage& stage = *stages_[number];
  if (time_.happens(settings_.flow_changes)) {
    stage.change_flows(time_.random());
    caps_.count(stage);
  }
  if (time_.happens(settings_.hangs) && stage.hangs_until + 50ms < now()) {
    stage.hangs_until = now() + time_.random_time(10ms, settings_.longest_hang);
  }
  if (time_.happens(settings_.refusals)) {
    stage.refuses_until = now() + time_.random_time(10ms, 1s);
  }
  const bool restarts = time_.happens(settings_.restarts);
  if (!restarts && !time_.happens(settings_.breaks)) return;
  break_stage_link(number);
  if (restarts) start_stage(number);
}

void HierarchicalSite::fault_aggregator(std::uint32_t number) {
  Aggregator& aggregator = *aggregators_[number];
  if (aggregator.is_dead) return;
  if (time_.happens(settings_.aggregator_hangs) && aggregator.hangs_until + 50ms < now()) {
    aggregator.hangs_until = now() + time_.random_time(10ms, settings_.longest_aggregator_hang);
  }
  if (time_.happens(settings_.aggregator_breaks)) break_parent_link(number);
  if (time_.happens(settings_.aggregator_restarts)) restart_aggregator(number);
}

std::vector<HierarchicalSite::LinkPtr> HierarchicalSite::send(const CycleState& state,
                                                              std::span<const Outgoing> outgoing,
                                                              const std::vector<LinkPtr>& by_id,
                                                              Duration longest) {
  std::vector<LinkPtr> to_close;
  for (const Outgoing& each : outgoing) {
    const LinkPtr link = by_id[each.stage.index];
    VPFS_ASSERT(link && link->id == each.stage);
    const bool is_slow = has_faults() && time_.happens(200);
    TimePoint at = now() + time_.random_time(1ms, is_slow ? longest : 10ms);
    if (!link->cycles.empty()) at = std::max(at, link->cycles.back().at);
    link->cycles.push_back({.at = at, .message = SentCycle(each, state.term())});
    time_.at(at, [this, link] { deliver(link); });
    if (each.close) to_close.push_back(link);
  }
  return to_close;
}

// Whoever it leads to still reads a part of what was sent, within the transit.
void HierarchicalSite::lose(const LinkPtr& link) {
  link->is_broken = true;
  link->read_until = now() + root_settings_.transit;
  const std::size_t kept = time_.random()() % (link->cycles.size() + 1);
  while (link->cycles.size() > kept) link->cycles.pop_back();
  TimePoint last = now();
  for (auto& each : link->cycles) {
    last += time_.random_time(0ms, link->read_until - last);
    each.at = last;
    time_.at(each.at, [this, link] { deliver(link); });
  }
}

void HierarchicalSite::break_stage_link(std::uint32_t number) {
  LinkPtr& at = link_of_stage(number);
  if (const LinkPtr link = std::exchange(at, nullptr)) {
    lose(link);
    if (!link->aggregator->is_dead) link->aggregator->state->leave(link->id, now());
  }
  time_.at(now() + time_.random_time(10ms, 400ms), [this, number] { connect_stage(number); });
}

void HierarchicalSite::break_parent_link(std::uint32_t number) {
  Aggregator& aggregator = *aggregators_[number];
  const LinkPtr link = std::exchange(aggregator.parent, nullptr);
  if (!link) return;
  lose(link);
  aggregator.to_answer.reset();
  if (root_) root_->leave(link->id, now());
  // Mostly soon; sometimes after its lease.
  const Duration away = time_.happens(3000) ? 2s : 300ms;
  time_.at(link->read_until + time_.random_time(0ms, away),
           [this, number] { connect_aggregator(number); });
}

void HierarchicalSite::deliver(const LinkPtr& link) {
  while (!link->cycles.empty() && link->cycles.front().at <= now()) {
    link->stage ? deliver_to_stage(link) : deliver_to_aggregator(link);
  }
}

void HierarchicalSite::deliver_to_stage(const LinkPtr& link) {
  ModelStage& stage = *link->stage;
  if (!link->is_broken && stage.hangs_until > now()) {
    for (auto& each : link->cycles) each.at = std::max(each.at, stage.hangs_until);
    return time_.at(stage.hangs_until, [this, link] { deliver(link); });
  }
  const SentCycle cycle = std::move(link->cycles.front().message);
  link->cycles.pop_front();
  if (cycle.head.complete) end_lease(stage);
  if (stage.apply(cycle, link->told, now()) == ModelStage::Applied::applied) {
    ++outcome_.applied;
    caps_.count(stage);
    time_.at(stage.lease_end(), [this, held = link->stage] { end_lease(*held); });
  }
  if (link->is_broken || cycle.head.close) return;
  reply(link, stage.answer(cycle, link->told, has_faults(), time_.random()));
}

void HierarchicalSite::deliver_to_aggregator(const LinkPtr& link) {
  const std::shared_ptr<Aggregator> aggregator = link->aggregator;
  if (aggregator->is_dead || (link->is_broken && aggregator->hangs_until > link->read_until)) {
    return link->cycles.clear();
  }
  if (aggregator->hangs_until > now()) {
    for (auto& each : link->cycles) each.at = std::max(each.at, aggregator->hangs_until);
    return time_.at(aggregator->hangs_until, [this, link] { deliver(link); });
  }
  const SentCycle cycle = std::move(link->cycles.front().message);
  link->cycles.pop_front();
  const Uplink::Taken taken = aggregator->uplink->on_cycle({.term = cycle.term,
                                                            .sequence = cycle.head.sequence,
                                                            .lease = cycle.head.lease,
                                                            .complete = cycle.head.complete,
                                                            .grants = cycle.grants},
                                                           now());
  if (!link->is_broken && !cycle.head.close) {
    aggregator->to_answer = StageAnswer{.term = cycle.term,
                                        .sequence = cycle.head.sequence,
                                        .applied = taken == Uplink::Taken::applied};
  }
  aggregator_cycle(aggregator);
}

void HierarchicalSite::reply(const LinkPtr& link, SentReport report) {
  TimePoint at = now() + time_.random_time(1ms, 10ms);
  if (!link->reports.empty()) at = std::max(at, link->reports.back().at);
  link->reports.push_back({.at = at, .message = std::move(report)});
  time_.at(at, [this, link] { take_reply(link); });
}

void HierarchicalSite::take_reply(const LinkPtr& link) {
  if (link->is_broken || link->reports.empty()) return;
  const std::shared_ptr<Aggregator>& aggregator = link->aggregator;
  if (link->stage && aggregator->hangs_until > now()) {
    return time_.at(aggregator->hangs_until, [this, link] { take_reply(link); });
  }
  const SentReport report = std::move(link->reports.front().message);
  link->reports.pop_front();
  report.deliver(link->stage ? *aggregator->state : *root_, link->id, now());
  if (link->stage && aggregator->state->unanswered() == 0) answer_parent(aggregator);
}

void HierarchicalSite::end_lease(ModelStage& stage) {
  if (!stage.end_lease(now())) return;
  ++outcome_.lease_ends;
  caps_.count(stage);
}

}  // namespace vpfs::allocation
