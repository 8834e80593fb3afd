#include "control/admin/stage_snapshot.h"

#include <algorithm>
#include <utility>

namespace vpfs::control {
namespace {

// How many rows are copied per lock.
constexpr std::size_t kRows = 8;
constexpr std::size_t kHistograms = 2;
constexpr std::size_t kClients = 64;
constexpr std::size_t kRules = 32;

// Calls visit(stage, now, index) for each index below `count`, `at_once` of them per lock.
template <typename Visitor>
void in_parts(StageGate& gate, TimePoint now, std::size_t count, std::size_t at_once,
              Visitor&& visit) {
  for (std::size_t first = 0; first < count; first += at_once) {
    gate.inspect(now, [&](stage::Stage& stage, TimePoint at) {
      for (std::size_t i = first; i < std::min(count, first + at_once); ++i) visit(stage, at, i);
    });
    gate.give_way();
  }
}

StageSnapshot::Latencies latencies(const LatencyHistogram& histogram) {
  return {.p50 = histogram.quantile(0.50), .p99 = histogram.quantile(0.99), .max = histogram.max()};
}

// Why the oldest request of the virtual PFS waits, in its lane.
std::optional<StageSnapshot::Wait> wait_of(stage::Stage& stage, AppId app, TimePoint now) {
  stage::Lanes::Lane* found = nullptr;
  TimePoint arrival = kNever;
  for (stage::Lanes::Lane& lane : stage.lanes()) {
    const IoRequest* const oldest = lane.scheduler->flow(app).oldest;
    if (oldest == nullptr || oldest->arrival >= arrival) continue;
    arrival = oldest->arrival;
    found = &lane;
  }
  if (found == nullptr) {
    // The request is far back in a common queue.
    return StageSnapshot::Wait{.since = std::nullopt,
                               .reason = "requests that came earlier go first",
                               .kept_for = nullptr,
                               .may_go_in = {},
                               .target = {}};
  }
  const WaitReason why = found->scheduler->why_waiting(app, now);
  StageSnapshot::Wait wait = {.since = now - arrival,
                              .reason = why.reason,
                              .kept_for = nullptr,
                              .may_go_in = {},
                              .target = found->target};
  if (why.kept_for) wait.kept_for = stage.virtual_pfs()[*why.kept_for].info;
  if (why.eligible) wait.may_go_in = *why.eligible - now;
  return wait;
}

}  // namespace

std::string StageSnapshot::Wait::text() const {
  std::string text(reason);
  return kept_for == nullptr ? text : text + " " + kept_for->name;
}

StageSnapshot SnapshotReader::read(StageGate& gate, TimePoint now) {
  StageSnapshot snapshot;
  read_lanes(gate, now, snapshot);
  read_rows(gate, now, snapshot);
  if (snapshot.lanes.size() > 1) read_flows(gate, now, snapshot);
  read_latencies(gate, now, snapshot);
  read_rules(gate, now, snapshot);
  read_clients(gate, now, snapshot);
  return snapshot;
}

void SnapshotReader::read_lanes(StageGate& gate, TimePoint now, StageSnapshot& to) {
  to.lanes.reserve(stage::Lanes::kMost);
  stage::Histograms retired;
  gate.inspect(now, [&](stage::Stage& stage, TimePoint at) {
    for (stage::Lanes::Lane& lane : stage.lanes()) {
      to.lanes.push_back({.target = lane.target,
                          .depth = lane.scheduler->depth(),
                          .server = lane.scheduler->server(at),
                          .queued = lane.scheduler->queued(),
                          .outstanding = lane.scheduler->outstanding(),
                          .flows = {}});
    }
    to.at = at;
    to.bypass = stage.bypassed();
    to.unscheduled = stage.unscheduled();
    const stage::VirtualPfsTable& table = stage.virtual_pfs();
    to.virtual_pfs_refused = table.refused();
    const stage::Allocations& allocations = stage.allocations();
    to.coordinator = {
        .epoch = allocations.epoch(), .lease_left = {}, .counts = allocations.counts()};
    if (allocations.in_force()) {
      to.coordinator.lease_left = std::max(allocations.lease_end() - at, Duration::zero());
    }
    to.retired.count = table.retired().count;
    to.retired.counters = table.retired().counters;
    retired = table.retired().histograms;
  });
  to.retired.held = latencies(retired.wait);
  to.retired.service = latencies(retired.service);
  to.retired.unscheduled = retired.unscheduled;
  to.retired.statistics = retired.statistics;
}

void SnapshotReader::read_rows(StageGate& gate, TimePoint now, StageSnapshot& to) {
  std::vector<stage::CounterRow> counters;
  gate.copy_counters(now, counters);
  ids_.clear();
  for (const stage::CounterRow& each : counters) {
    if (!each.is_there) continue;
    ids_.push_back(each.id);
    StageSnapshot::Row& row = to.rows.emplace_back();
    row.id = each.id;
    row.counters = each.counters;
    row.share = each.share;
  }
  const bool one_lane = to.lanes.size() == 1;
  in_parts(gate, now, ids_.size(), kRows, [&](stage::Stage& stage, TimePoint at, std::size_t i) {
    const AppId app = ids_[i].app;
    StageSnapshot::Row& row = to.rows[i];
    if (!stage.virtual_pfs().is_there(ids_[i])) return;  // retired meanwhile
    const stage::VirtualPfs& pfs = stage.virtual_pfs()[app];
    row.info = pfs.info;
    row.traffic_class = pfs.last_class;
    row.jobid = stage.virtual_pfs().jobid(app);
    row.allocated = stage.allocations().limits(app);
    if (const auto* const rule = stage.rules().row(pfs.last_rule)) row.rule = rule->name;
    if (one_lane) row.report = stage.lanes()[0].scheduler->report(app, at);
    if (row.counters.queued.requests > 0) row.wait = wait_of(stage, app, at);
    const std::optional<stage::Stage::ClientWait> slow = stage.waits_for_client(app);
    if (!slow) return;
    // Parked requests are in no queue.
    const Duration since = at - slow->since;
    if (row.wait && row.wait->since.value_or(Duration::max()) >= since) return;
    row.wait = StageSnapshot::Wait{
        .since = since,
        .reason = slow->for_its_own ? "its client is slow" : "another client of its file is slow",
        .kept_for = nullptr,
        .may_go_in = {},
        .target = {}};
  });
}

void SnapshotReader::read_flows(StageGate& gate, TimePoint now, StageSnapshot& to) const {
  for (std::size_t lane = 0; lane < to.lanes.size(); ++lane) {
    std::vector<StageSnapshot::LaneFlow>& flows = to.lanes[lane].flows;
    flows.reserve(ids_.size());
    in_parts(gate, now, ids_.size(), kRows, [&](stage::Stage& stage, TimePoint at, std::size_t i) {
      const Scheduler& scheduler = *stage.lanes()[lane].scheduler;
      const FlowState flow = scheduler.flow(ids_[i].app);
      if (to.rows[i].info == nullptr || flow.queued + flow.outstanding == 0) return;
      flows.push_back({.info = to.rows[i].info,
                       .queued = flow.queued,
                       .report = scheduler.report(ids_[i].app, at)});
    });
  }
}

void SnapshotReader::read_latencies(StageGate& gate, TimePoint now, StageSnapshot& to) {
  if (!ids_.empty()) {
    known_.resize(std::max(known_.size(), std::size_t{std::to_underlying(ids_.back().app)} + 1));
  }
  std::vector<std::size_t> changed;  // rows
  const auto look = [&](stage::Stage& stage, std::size_t i) {
    const stage::VirtualPfsTable& table = stage.virtual_pfs();
    if (!table.is_there(ids_[i])) return;
    Known& known = known_[std::to_underlying(ids_[i].app)];
    const stage::VirtualPfs& pfs = table[ids_[i].app];
    if (known.id != ids_[i]) known = {.id = ids_[i]};
    if (pfs.histograms == nullptr) return;
    const std::uint64_t counts = pfs.histograms->wait.count() + pfs.histograms->service.count();
    if (std::exchange(known.counts, counts) != counts) changed.push_back(i);
  };
  changed.reserve(ids_.size());
  in_parts(gate, now, ids_.size(), kRows,
           [&](stage::Stage& stage, TimePoint, std::size_t i) { look(stage, i); });

  histograms_.resize(kHistograms);
  for (std::size_t first = 0; first < changed.size(); first += kHistograms) {
    const std::size_t count = std::min(kHistograms, changed.size() - first);
    gate.inspect(now, [&](stage::Stage& stage, TimePoint) {
      for (std::size_t i = 0; i < count; ++i) {
        const stage::VirtualPfsId id = ids_[changed[first + i]];
        const stage::VirtualPfsTable& table = stage.virtual_pfs();
        if (table.is_there(id)) histograms_[i] = *table[id.app].histograms;
      }
    });
    for (std::size_t i = 0; i < count; ++i) {
      Known& known = known_[std::to_underlying(ids_[changed[first + i]].app)];
      known.held = latencies(histograms_[i].wait);
      known.service = latencies(histograms_[i].service);
      known.unscheduled = histograms_[i].unscheduled;
      known.statistics = histograms_[i].statistics;
    }
  }
  for (std::size_t i = 0; i < ids_.size(); ++i) {
    const Known& known = known_[std::to_underlying(ids_[i].app)];
    to.rows[i].held = known.held;
    to.rows[i].service = known.service;
    to.rows[i].unscheduled = known.unscheduled;
    to.rows[i].statistics = known.statistics;
  }
  std::erase_if(to.rows, [](const StageSnapshot::Row& row) { return row.info == nullptr; });
}

void SnapshotReader::read_rules(StageGate& gate, TimePoint now, StageSnapshot& to) {
  std::size_t rows = 0;
  std::size_t shadow_rows = 0;
  gate.inspect(now, [&](stage::Stage& stage, TimePoint) {
    rows = stage.rules().size();
    shadow_rows = stage.shadows().size();
  });
  std::vector<StageSnapshot::Rule> rules(rows);  // by number
  in_parts(gate, now, rows, kRules, [&](stage::Stage& stage, TimePoint at, std::size_t i) {
    const stage::RuleRows::Row& row = stage.rules()[i];
    if (row.name == nullptr) return;
    rules[i] = {.name = row.name, .hits = row.hits, .made = row.made};
    if (row.hits > 0) rules[i].idle = at - row.last_hit;
    rules[i].would_hold = stage.shadows().retired(*row.name);
  });
  in_parts(gate, now, shadow_rows, kRules, [&](stage::Stage& stage, TimePoint at, std::size_t i) {
    const auto row = stage.shadows().row(i, at);
    if (!row || row->rule.row >= rows || !rules[row->rule.row].would_hold) return;
    *rules[row->rule.row].would_hold += row->counts;
  });
  std::erase_if(rules, [](const StageSnapshot::Rule& rule) { return rule.name == nullptr; });
  to.rules = std::move(rules);
}

void SnapshotReader::read_clients(StageGate& gate, TimePoint now, StageSnapshot& to) const {
  std::size_t count = 0;
  gate.inspect(now, [&](stage::Stage& stage, TimePoint) { count = stage.clients().size(); });
  to.clients.reserve(count);
  in_parts(gate, now, count, kClients, [&](stage::Stage& stage, TimePoint at, std::size_t i) {
    const auto client = stage.clients().report(stage::ClientId{static_cast<std::uint32_t>(i)}, at);
    if (client.connections == 0) return;
    to.clients.push_back({.name = client.name,
                          .connections = client.connections,
                          .allowance = client.allowance,
                          .refused = client.refused});
  });
}

}  // namespace vpfs::control
