#include "stage/stage.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"

namespace vpfs::stage {

Stage::Stage(const Config& config, TimePoint now)
    : cost_model_(config.cost),
      idle_for_(config.idle),
      table_(enforced_virtual_pfs(config), config.most_virtual_pfs, now),
      lanes_(policy_of(config), config.scheduler, config.scheduler_per_target),
      uses_nodes_(policy_of(config).knows(kNodesWord)),
      fallback_(config.fallback),
      longest_delay_(config.longest_delay) {
  lanes_.set_longest_delay(longest_delay_);
  clients_.configure(config.client_limits);
  rules_.reconfigure(config.rules);
  shadows_.reconfigure(config, rules_, now);
  set_shares(table_.everybody(), now);
}

Place Stage::find(const Classifier::Match& match, TimePoint now,
                  std::span<const RuleConfig> rules) {
  const VirtualPfsTable::Found found = table_.find_or_make(match, now);
  if (found.made || (found.other_nodes && uses_nodes_)) set_shares({found.app}, now);
  VirtualPfs& pfs = table_[found.app];
  pfs.last_used = now;
  pfs.retiring = false;
  Place place = {.id = table_.id_of(found.app), .rule = {}, .shadow = {}, .exempt = match.exempt};
  if (match.rule == Classifier::kNoRule) {
    place.rule = RuleRows::kDefault;
  } else if (match.rule < rules.size()) {
    place.rule = rules_.find(rules[match.rule].name);
  }
  if (found.made) rules_.made(place.rule);
  if (match.shadow_rule < rules.size()) {
    place.shadow = shadows_.find(rules[match.shadow_rule].name, match.shadow_name, now);
  }
  return place;
}

std::size_t Stage::lane_of(const Held& io, TimePoint now) {
  const Lanes::Found found = lanes_.find(io.device);
  if (found.made) introduce_everybody(lanes_[found.lane], now);
  return found.lane;
}

void Stage::set_shares(const std::vector<AppId>& apps, TimePoint now) {
  for (const AppId app : apps) table_.set_refused_promise(app, "");
  for (Lanes::Lane& lane : lanes_) set_shares(lane, apps, now);
}

// Promises that fit together may not fit beside those that they replace. So refused ones are
// requested again when all others are in force.
void Stage::set_shares(Lanes::Lane& lane, const std::vector<AppId>& apps, TimePoint now) {
  std::vector<AppId> refused;
  for (const AppId app : apps) {
    if (table_[app].info->removed) {
      keep_hold_times(lane, app, now);
      lane.scheduler->remove(app, now);
    } else if (!lane.scheduler->set_share(app, table_.share_to_come(app, now), now)) {
      refused.push_back(app);
    }
  }
  for (const AppId app : refused) {
    const Result<void> promised =
        lane.scheduler->set_share(app, table_.share_to_come(app, now), now);
    if (promised) continue;
    table_.set_refused_promise(app, promised.error().message);
    notices_.push_back(
        fmt::format("virtual PFS {}: {}", table_[app].info->name, promised.error().message));
  }
}

void Stage::introduce_everybody(Lanes::Lane& lane, TimePoint now) {
  const std::vector<AppId> everybody = table_.everybody();
  for (const AppId app : everybody) {
    // A removed virtual PFS may still have requests, so the scheduler must know it.
    if (table_[app].info->removed) (void)lane.scheduler->set_share(app, {}, now);
  }
  set_shares(lane, everybody, now);
  lane.scheduler->set_hold(hold_, now);
  for (const AppId app : allocations_.limited()) {
    (void)lane.scheduler->set_limits(app, allocations_.limits(app), now);
  }
}

void Stage::reconfigure(const Config& config, TimePoint now) {
  cost_model_ = CostModel(config.cost);
  idle_for_ = config.idle;
  clients_.configure(config.client_limits);
  rules_.reconfigure(config.rules);
  shadows_.reconfigure(config, rules_, now);
  uses_nodes_ = policy_of(config).knows(kNodesWord);
  const std::vector<AppId> changed =
      table_.reconfigure(enforced_virtual_pfs(config), config.most_virtual_pfs, now);
  use_fallback(config.fallback, now);
  longest_delay_ = config.longest_delay;
  lanes_.set_longest_delay(longest_delay_);
  for (const AppId app : changed) {
    if (table_[app].info->removed) allocations_.forget(app);
  }
  if (lanes_.use(policy_of(config), config.scheduler)) {
    lift_unsupported(now);
    ++schedulers_;
    for (const AppId app : table_.everybody()) table_.set_refused_promise(app, "");
    for (Lanes::Lane& lane : lanes_) replace(lane, now);
  } else {
    set_shares(changed, now);
  }
}

void Stage::replace(Lanes::Lane& lane, TimePoint now) {
  std::vector<IoRequest*> waiting;
  while (IoRequest* const request = lane.scheduler->any_queued()) {
    lane.scheduler->withdraw(*request, now);
    waiting.push_back(request);
  }
  std::ranges::sort(waiting, {}, [](const IoRequest* request) {
    return std::pair(request->arrival, request->order);
  });

  for (const AppId app : table_.everybody()) keep_hold_times(lane, app, now);
  std::unique_ptr<Scheduler> scheduler = lanes_.make();
  scheduler->occupy(lane.scheduler->load());
  lane.scheduler = std::move(scheduler);
  introduce_everybody(lane, now);
  for (IoRequest* request : waiting) lane.scheduler->enqueue(*request, now);
}

void Stage::keep_hold_times(Lanes::Lane& lane, AppId app, TimePoint now) {
  table_.counters(app).held += lane.scheduler->held(app, now);
}

// Counts the request among its virtual PFS's from now on.
VirtualPfs& Stage::enter(Held& io, TimePoint now) {
  VPFS_DEBUG_ASSERT(table_.is_there(io.virtual_pfs()));
  VirtualPfs& pfs = table_[io.app];
  if (std::exchange(io.is_counted, true)) return pfs;
  io.noted_in = 0;
  io.more_cost = 0;
  io.more_size = {};
  if (io.size_is_estimated) {
    io.size = pfs.read_yield.expected(io.asked);
    io.cost = cost_model_.cost(io.kind, io.size);
  }
  ++pfs.requests;
  pfs.last_used = now;
  pfs.retiring = false;
  pfs.last_rule = io.rule;
  pfs.last_class = io.traffic_class;
  rules_.hit(io.rule, now);
  if (io.shadow.row != ShadowRef::kNone) {
    rules_.hit(shadows_.arrive(io.shadow, io.size, now), now);
  }
  table_.counters(io.app).arrived.of(io.kind).add(io.size);
  return pfs;
}

void Stage::readmit(Held& io, TimePoint now) {
  if (std::exchange(io.is_counted, true)) return;
  io.noted_in = 0;
  io.more_cost = 0;
  io.more_size = {};
  VirtualPfs& pfs = table_[io.app];
  if (io.size_is_estimated) {
    io.size = pfs.read_yield.expected(io.asked);
    io.cost = cost_model_.cost(io.kind, io.size);
  }
  ++pfs.requests;
  pfs.last_used = now;
  pfs.retiring = false;
}

// The request has ended, and its virtual PFS may be retired.
void Stage::leave(Held& io, TimePoint now) {
  if (!std::exchange(io.is_counted, false)) return;
  stop_waiting_for_client(io, now);
  VPFS_DEBUG_ASSERT(table_.is_there(io.virtual_pfs()));
  VirtualPfs& pfs = table_[io.app];
  --pfs.requests;
  pfs.last_used = now;
}

void Stage::park(Held& io, SlowClient whose, TimePoint now) {
  (void)enter(io, now);
  if (io.waits_for_client == whose) return;
  stop_waiting_for_client(io, now);
  if (whose == SlowClient::none) return;
  io.waits_for_client = whose;
  WaitForClients& slow = slow_clients_[io.app];
  if (slow.requests++ == 0) slow.since = now;
  if (whose == SlowClient::its_own) ++slow.for_their_own;
}

void Stage::stop_waiting_for_client(Held& io, TimePoint now) {
  const SlowClient whose = std::exchange(io.waits_for_client, SlowClient::none);
  if (whose == SlowClient::none) return;
  const auto slow = slow_clients_.find(io.app);
  if (whose == SlowClient::its_own) --slow->second.for_their_own;
  if (--slow->second.requests > 0) return;
  table_.counters(io.app).slow_client += now - slow->second.since;
  slow_clients_.erase(slow);
}

std::optional<Stage::ClientWait> Stage::waits_for_client(AppId app) const {
  const auto slow = slow_clients_.find(app);
  if (slow == slow_clients_.end()) return std::nullopt;
  return ClientWait{.since = slow->second.since, .for_its_own = slow->second.for_their_own > 0};
}

void Stage::arrive(Held& io, TimePoint now) {
  VPFS_DEBUG_ASSERT(io.state == Held::State::parked);
  (void)enter(io, now);
  stop_waiting_for_client(io, now);
  io.state = Held::State::queued;
  table_.counters(io.app).queued.add(io.size);
  io.unscheduled = io.exempt || bypass_;
  io.let_pass = false;
  if (io.unscheduled) return queue_unscheduled(io);
  io.lane = lane_of(io, now);
  clients_.queued(io, now);
  if (recorder_ != nullptr) note_wait(io, now);
  scheduler_of(io).enqueue(io, now);
}

// Takes a request out of the scheduler that was not released.
void Stage::leave_queue(Held& io, TimePoint now) {
  table_.counters(io.app).queued.take(io.size);
  if (io.unscheduled) {
    unscheduled_.remove(io);
    --unscheduled_queued_;
  } else {
    scheduler_of(io).withdraw(io, now);
  }
}

TimePoint Stage::release(TimePoint now, std::vector<Held*>& let_go) {
  release_unscheduled(now, let_go);
  end_lease_if_due(now);
  for (;;) {
    TimePoint until = allocations_.lease_end();
    for (Lanes::Lane& lane : lanes_) until = std::min(until, release(lane, now, let_go));
    // What was behind a request that is refused may go earlier.
    if (!refuse_excess(now, let_go)) return until;
  }
}

TimePoint Stage::release(Lanes::Lane& lane, TimePoint now, std::vector<Held*>& let_go) {
  for (;;) {
    const Scheduler::Decision decision = lane.scheduler->next(now);
    if (decision.request == nullptr) return decision.until;
    auto& io = static_cast<Held&>(*decision.request);
    if (recorder_ != nullptr) io.noted.reason = reason_so_far(io, now);
    dispatch(io, now, let_go);
    Counters& counters = table_.counters(io.app);
    counters.cost_sent += io.cost;
    counters.passed_limit += io.passed_limit ? 1 : 0;
    io.scheduler = schedulers_;
    clients_.dispatched(io, now);
  }
}

void Stage::dispatch(Held& io, TimePoint now, std::vector<Held*>& let_go) {
  VirtualPfs& pfs = table_[io.app];
  Counters& counters = table_.counters(io.app);
  counters.queued.take(io.size);
  counters.outstanding.add(io.size);
  counters.sent.of(io.kind).add(io.size);
  const auto kib = static_cast<std::uint16_t>(std::min<Cost>(io.cost / kKiB, UINT16_MAX));
  const auto faded =
      static_cast<std::uint16_t>(pfs.recent_kib - pfs.recent_kib / VirtualPfs::kRecent);
  pfs.recent_kib = std::max(kib, faded);
  if (!pfs.histograms) {
    pfs.histograms = std::make_unique<Histograms>();
    pfs.histograms->statistics.since = pfs.histograms->statistics.last = now;
  }
  const Duration waited = now - io.arrival;
  pfs.histograms->wait.record(waited);
  pfs.histograms->longest_wait = std::max(pfs.histograms->longest_wait, waited);
  pfs.histograms->largest = std::max(pfs.histograms->largest, io.cost);
  io.state = Held::State::released;
  let_go.push_back(&io);
}

bool Stage::refuse_excess(TimePoint now, std::vector<Held*>& let_go) {
  bool has_refused = false;
  while (Held* const io = clients_.take_excess(now)) {
    has_refused = true;
    Counters& counters = table_.counters(io->app);
    if (counters.excess++ == 0) {
      const ClientLimits::Report client = clients_.report(io->client, now);
      notices_.push_back(
          fmt::format("virtual PFS {}: it and others keep {} or more of the {} connections of "
                      "client {} waiting: further requests are sent back for a while "
                      "(limits.max_held_per_client)",
                      table_[io->app].info->name, client.allowance.value_or(0), client.connections,
                      client.name));
    }
    leave_queue(*io, now);
    if (recorder_ != nullptr) note_end(*io, RecordedEnd::refused, {}, now);
    leave(*io, now);
    io->state = Held::State::excess;
    let_go.push_back(io);
  }
  return has_refused;
}

bool Stage::take_back(Held& io, TimePoint now) {
  if (io.state == Held::State::parked) return true;
  if (io.state != Held::State::queued) return false;
  if (!io.unscheduled) clients_.withdrawn(io);
  leave_queue(io, now);
  io.state = Held::State::parked;
  return true;
}

bool Stage::refuse(Held& io, TimePoint now) {
  if (!take_back(io, now)) return false;
  table_.counters(io.app).refused.of(io.kind).add(io.size);
  if (recorder_ != nullptr) note_end(io, RecordedEnd::refused, {}, now);
  leave(io, now);
  return true;
}

void Stage::count_refused(const Place& place, IoKind kind, Bytes size, TimePoint now) {
  VPFS_DEBUG_ASSERT(table_.is_there(place.id));
  rules_.hit(place.rule, now);
  Counters& counters = table_.counters(place.id.app);
  counters.arrived.of(kind).add(size);
  counters.refused.of(kind).add(size);
}

Stage::Contenders Stage::contenders(const Held& io) const {
  const Scheduler& scheduler = *lanes_[io.lane].scheduler;
  if (io.unscheduled || !scheduler.depth_reached()) return {};
  const FlowState own = scheduler.flow(io.app);
  return {.others = scheduler.queued() > own.queued,
          .own = own.queued,
          .oldest_own = static_cast<const Held*>(own.oldest)};
}

void Stage::served_elsewhere(VirtualPfsId id, Cost cost, Duration delay, TimePoint now) {
  if (!table_.is_there(id)) return;  // the caller does not know yet that it was retired
  lanes_.served_elsewhere(id.app, {.cost = cost, .delay = delay}, now);
}

namespace {

// Whether one of a coordinator's limits is lower than the flow's own.
bool are_lower(const Limits& caps, const Share& own) {
  const auto is_lower = [](std::optional<std::uint64_t> cap, std::uint64_t limit) {
    return cap && (limit == 0 || *cap < limit);
  };
  return is_lower(caps.bytes.transform([](BytesPerSecond rate) { return rate.count; }),
                  own.rate.count) ||
         is_lower(caps.operations, own.operations) || caps.metadata_operations;
}

}  // namespace

std::size_t Stage::copy_counters(std::size_t first, std::span<CounterRow> copies, TimePoint now) {
  const std::size_t count = std::min(copies.size(), rows() - std::min(first, rows()));
  for (std::size_t i = 0; i < count; ++i) {
    const AppId app{static_cast<std::uint32_t>(first + i)};
    CounterRow& copy = copies[i];
    copy.id = table_.id_of(app);
    copy.is_there = table_.is_there(app);
    copy.counters = table_.counters(app);
    if (!copy.is_there) continue;
    for (const Lanes::Lane& lane : lanes_) copy.counters.held += lane.scheduler->held(app, now);
    if (const auto wait = waits_for_client(app)) copy.counters.slow_client += now - wait->since;
    copy.share = judge_share(app, now);
    copy.weights = table_[app].weights;
    const Limits caps = allocations_.limits(app);
    copy.is_capped = caps.any() && are_lower(caps, table_[app].info->declared->share);
  }
  return count;
}

ShareWatch::Verdict Stage::judge_share(AppId app, TimePoint now) {
  const VirtualPfsId id = table_.id_of(app);
  if (const ShareWatch::Verdict* const recent = shares_.unless_due(id, now)) return *recent;
  ShareWatch::Reading reading = {.id = id,
                                 .schedulers = schedulers_,
                                 .traffic_class = table_[app].last_class,
                                 .crowding = {},
                                 .sent = table_.counters(app).cost_sent};
  for (const Lanes::Lane& lane : lanes_) {
    const auto crowding = lane.scheduler->crowding(app, reading.traffic_class, now);
    if (!crowding) return shares_.stop(id);
    reading.crowding += *crowding;
  }
  return shares_.look(reading, now);
}

bool Stage::divides_by_weight(TimePoint now) const {
  return lanes_.settings().classes.classes.size() <= 1 &&
         lanes_[0].scheduler->crowding(AppId{}, 0, now).has_value();
}

std::size_t Stage::queues_of_each() const {
  const TrafficClasses& classes = lanes_.settings().classes;
  const bool has_classes = classes.mode != TrafficClasses::Mode::none;
  return lanes_.size() * (has_classes ? std::max<std::size_t>(classes.classes.size(), 1) : 1);
}

std::size_t Stage::outstanding() const {
  std::size_t sum = unscheduled_outstanding_;
  for (const Lanes::Lane& lane : lanes_) sum += lane.scheduler->outstanding();
  return sum;
}

std::size_t Stage::queued() const {
  std::size_t sum = unscheduled_queued_;
  for (const Lanes::Lane& lane : lanes_) sum += lane.scheduler->queued();
  return sum;
}

}  // namespace vpfs::stage
