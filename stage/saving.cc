// The part of Stage for a successor in another process.
#include <algorithm>
#include <utility>

#include "stage/stage.h"

namespace vpfs::stage {
namespace {

// The numbers of a set of counters, in the order of Counters::archive().
class Flattener {
 public:
  template <typename T>
  void operator()(std::string_view /*name*/, T& value) {
    if constexpr (saved_state::Plain<T>) {
      numbers.push_back(saved_state::number_of(value));
    } else {
      value.archive(*this);
    }
  }

  std::vector<std::uint64_t> numbers;
};

class Unflattener {
 public:
  explicit Unflattener(const std::vector<std::uint64_t>& numbers) : numbers_(numbers) {}

  template <typename T>
  void operator()(std::string_view /*name*/, T& value) {
    if constexpr (saved_state::Plain<T>) {
      saved_state::assign(value, numbers_[next_++]);
    } else {
      value.archive(*this);
    }
  }

 private:
  const std::vector<std::uint64_t>& numbers_;
  std::size_t next_ = 0;
};

// What was counted from `before` to `now`, modulo 2^64 number by number; nothing: nothing was.
std::optional<Counters> difference(Counters now, Counters before) {
  Flattener to;
  now.archive(to);
  Flattener from;
  before.archive(from);
  bool differs = false;
  for (std::size_t i = 0; i < to.numbers.size(); ++i) {
    to.numbers[i] -= from.numbers[i];
    differs = differs || to.numbers[i] != 0;
  }
  if (!differs) return std::nullopt;
  Counters made;
  Unflattener back(to.numbers);
  made.archive(back);
  return made;
}

}  // namespace

Counters Stage::counters_now(AppId app, TimePoint now) const {
  Counters counters = table_.counters(app);
  for (const Lanes::Lane& lane : lanes_) counters.held += lane.scheduler->held(app, now);
  if (const auto wait = waits_for_client(app)) counters.slow_client += now - wait->since;
  return counters;
}

SavedState Stage::save(TimePoint now) {
  SavedState state;
  state.set("policy", std::string(lanes_.policy().name));
  saved_counters_.assign(table_.size(), {});
  SavedState::Values lanes;
  saved_loads_.assign(lanes_.size(), {});
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    save_lane(lane, now, lanes.emplace_back());
  }
  SavedState::Values all;
  for (const AppId app : table_.everybody()) {
    saved_counters_[std::to_underlying(app)] = counters_now(app, now);
    SavedState& one = all.emplace_back();
    table_.save(app, one);
    StateWriter out(one);
    out("counters", saved_counters_[std::to_underlying(app)]);
    ShareWatch::Verdict verdict = shares_.verdict(table_.id_of(app));
    out("share", verdict);
    if (const RuleRows::Row* const rule = rules_.row(table_[app].last_rule)) {
      one.set("last_rule", *rule->name);
    }
    Limits limits = allocations_.limits(app);
    out("limits", limits);
    allocations_.archive_row(app, out);
    if (RateLimits* const shared = lanes_.shared_limits()) {
      shared->save(app, one.add_list("buckets").emplace_back());
    }
    SavedState::Values of_lanes;
    for (Lanes::Lane& lane : lanes_) lane.scheduler->save(app, now, of_lanes.emplace_back());
    one.set("lanes", std::move(of_lanes));
  }
  state.set("virtual_pfs", std::move(all));
  state.set("lanes", std::move(lanes));
  table_.save_retired(state);
  SavedState::Values rules;
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    RuleRows::Row row = rules_[i];
    if (row.name == nullptr) continue;
    SavedState& one = rules.emplace_back();
    one.set("name", *row.name);
    StateWriter out(one);
    out("hits", row.hits);
    out("made", row.made);
    out("last_hit", row.last_hit);
  }
  state.set("rules", std::move(rules));
  StateWriter{state}("allocations", allocations_);
  shadows_.save(now, state);
  clients_.save(state);
  return state;
}

void Stage::save_lane(std::size_t lane, TimePoint now, SavedState& to) {
  Lanes::Lane& of = lanes_[lane];
  StateWriter out(to);
  out("target", of.target);
  out("speed", of.speed);
  const DepthGate::Load load = of.scheduler->load();
  saved_loads_[lane] = load;
  to.set("requests", std::uint64_t{load.requests});
  to.set("cost", load.cost);
  of.scheduler->save_all(now, to.add_list("scheduler").emplace_back());
}

// The lane for a target, which is made if it is not there.
std::optional<std::size_t> Stage::lane_of_saved(const SavedState& from, TimePoint now) {
  const auto* const target = from.find<std::uint64_t>("target");
  if (target == nullptr) return 0;
  const Lanes::Found found = lanes_.find(static_cast<std::uint32_t>(*target));
  if (found.made) introduce_everybody(lanes_[found.lane], now);
  return found.lane;
}

void Stage::restore(const SavedState& from, TimePoint now) {
  StateReader{from}("allocations", allocations_);
  table_.restore_retired(from);
  for (const SavedState& each : from.list("rules")) {
    TimePoint last_hit = {};
    saved_state::assign(last_hit, each.number("last_hit"));
    rules_.add(each.text("name"), each.number("hits"), each.number("made"), last_hit);
  }
  for (const SavedState& one : from.list("virtual_pfs")) {
    const auto found = table_.restore(one, now);
    if (!found) continue;
    if (found->made || found->other_nodes) set_shares({found->app}, now);
    StateReader in(one);
    VirtualPfs& pfs = table_[found->app];
    if (const RuleRef rule = rules_.find(one.text("last_rule")); rules_.is_there(rule)) {
      pfs.last_rule = rule;
    }
    ShareWatch::Verdict verdict;
    in("share", verdict);
    shares_.begin_with(table_.id_of(found->app), verdict);
    Limits limits;
    in("limits", limits);
    allocations_.archive_row(found->app, in);
    const bool enforces = lanes_.policy().caps || !limits.any();
    if (enforces && allocations_.set_limits(found->app, limits)) limit(found->app, limits, now);
  }
  const SavedState::Values& lanes = from.list("lanes");
  predecessor_loads_.clear();
  for (const SavedState& each : lanes) {
    const auto lane = lane_of_saved(each, now);
    if (!lane) continue;
    if (predecessor_loads_.size() <= *lane) predecessor_loads_.resize(*lane + 1);
    DepthGate::Load& load = predecessor_loads_[*lane];
    load.requests += static_cast<std::uint32_t>(each.number("requests"));
    load.cost += each.number("cost");
    lanes_[*lane].scheduler->occupy(load);
    StateReader{each}("speed", lanes_[*lane].speed);
  }
  shadows_.restore(from, now);
  clients_.restore(from);
}

void Stage::restore_schedulers(const SavedState& from, TimePoint now) {
  // The states of lanes are in their order; a lane of the predecessor may be another one here.
  std::vector<std::size_t> place;
  const SavedState::Values& lanes = from.list("lanes");
  for (const SavedState& each : lanes) {
    place.push_back(lane_of_saved(each, now).value_or(0));
    lanes_[place.back()].scheduler->restore_all(each.child("scheduler"), now);
  }
  for (const SavedState& one : from.list("virtual_pfs")) {
    const auto app = table_.named(one.text("name"));
    if (!app) continue;
    if (RateLimits* const shared = lanes_.shared_limits()) {
      shared->restore(*app, one.child("buckets"), now);
    }
    const SavedState::Values& of_lanes = one.list("lanes");
    for (std::size_t i = 0; i < std::min(of_lanes.size(), place.size()); ++i) {
      lanes_[place[i]].scheduler->restore(*app, of_lanes[i], now);
    }
  }
  for (Lanes::Lane& lane : lanes_) lane.scheduler->restored(now);
}

std::optional<SavedState> Stage::save_changes(TimePoint now) {
  SavedState state;
  bool changed = false;
  SavedState::Values all;
  saved_counters_.resize(table_.size());
  for (const AppId app : table_.everybody()) {
    Counters& before = saved_counters_[std::to_underlying(app)];
    const Counters counters = counters_now(app, now);
    auto more = difference(counters, before);
    if (!more) continue;
    before = counters;
    SavedState& one = all.emplace_back();
    one.set("name", table_[app].info->name);
    StateWriter{one}("counters", *more);
    changed = true;
  }
  state.set("virtual_pfs", std::move(all));
  SavedState::Values lanes;
  saved_loads_.resize(lanes_.size());
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    const DepthGate::Load load = lanes_[lane].scheduler->load();
    DepthGate::Load& before = saved_loads_[lane];
    if (load.requests >= before.requests) continue;
    SavedState& one = lanes.emplace_back();
    StateWriter{one}("target", lanes_[lane].target);
    one.set("requests", std::uint64_t{before.requests - load.requests});
    one.set("cost", before.cost - std::min(before.cost, load.cost));
    before = load;
    changed = true;
  }
  state.set("lanes", std::move(lanes));
  return changed ? std::optional(std::move(state)) : std::nullopt;
}

void Stage::take_changes(const SavedState& from, TimePoint now) {
  for (const SavedState& one : from.list("virtual_pfs")) {
    Counters more;
    StateReader{one}("counters", more);
    const auto app = table_.named(one.text("name"));
    (app ? table_.counters(*app) : table_.retired_counters()) += more;
  }
  for (const SavedState& each : from.list("lanes")) {
    const auto lane = lane_of_saved(each, now);
    if (!lane || *lane >= predecessor_loads_.size()) continue;
    DepthGate::Load& left = predecessor_loads_[*lane];
    const DepthGate::Load back = {
        .requests = std::min(left.requests, static_cast<std::uint32_t>(each.number("requests"))),
        .cost = std::min(left.cost, each.number("cost"))};
    left.requests -= back.requests;
    left.cost -= back.cost;
    lanes_[*lane].scheduler->vacate(back);
  }
}

void Stage::vacate_predecessor() {
  for (std::size_t lane = 0; lane < predecessor_loads_.size(); ++lane) {
    lanes_[lane].scheduler->vacate(std::exchange(predecessor_loads_[lane], {}));
  }
}

}  // namespace vpfs::stage
