// Sending: the part of CycleState that divides, and decides what goes out.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "control/allocation/cycle_state.h"

namespace vpfs::allocation {
namespace {

std::uint64_t& of(Amounts& amounts, std::size_t resource) {
  return amounts.*kResources[resource].amount;
}

std::optional<std::uint64_t>& of(Grant& grant, std::size_t resource) {
  return grant.*kResources[resource].grant;
}

}  // namespace

void CycleState::begin_sending(TimePoint now) {
  outgoing_.clear();
  ++sequence_;
  deadline_ = now + settings_.deadline;
}

std::span<const Outgoing> CycleState::ask(TimePoint now) {
  begin_sending(now);
  cycle_has_caps_ = false;
  for (std::uint32_t i = 0; i < members_.stages().size(); ++i) send(i, false, true);
  return outgoing_;
}

std::span<const Outgoing> CycleState::begin_cycle(TimePoint now, bool want_report) {
  begin_sending(now);
  for (Membership::Job& job : members_.jobs()) {
    job.totals.limited += std::exchange(job.limited, {});
  }
  std::vector<Stage>& stages = members_.stages();
  for (std::uint32_t i = 0; i < stages.size(); ++i) {
    ++stages[i].cycles;
    if (stages[i].open &&
        (++stages[i].missed >= settings_.silent_cycles || is_too_late(stages[i], now))) {
      disconnect(i);
    }
    expire(i, now);
  }
  if (rows_are_stale_) rebuild_rows();
  fill_rows();
  const Amounts less = caps_of_others();
  const Duration period = began_at_ ? now - *began_at_ : settings_.period;
  began_at_ = now;
  std::ranges::fill(grants_, Grant{});
  Result<void> divided;
  if (!rows_.empty()) {
    divided = policy_->allocate(rows_, std::max(period, Duration(1)), less, members_.job_names(),
                                grants_);
  }
  policy_problem_ = divided ? std::string() : std::move(divided.error().message);
  members_.release_numbers();
  std::array<bool, kResources.size()> has_caps = {};
  bool adds_up = false;
  for (std::size_t i = 0; i < kResources.size(); ++i) {
    has_caps[i] = divided && grants_caps(i);
    adds_up |= has_caps[i] && of(settings_.capacity, i) > 0;
  }
  const bool allocates = now >= settings_.clear_from || (divided && !adds_up);
  const std::optional<Duration> lease = lease_of_caps(now);
  const Caps source = !lease ? Caps::none : divided ? Caps::granted : Caps::before;
  lease_ = settings_.lease;
  cycle_has_caps_ = false;
  if (allocates) {
    for (std::size_t i = 0; i < kResources.size(); ++i) {
      const bool lacks_caps = source == Caps::before && of(settings_.capacity, i) > 0;
      if (has_caps[i] || ledgers_[i].is_used() || lacks_caps) {
        cap_rows(i, source);
      } else {
        std::ranges::fill(caps_[i], kNoCap);
      }
    }
    if (cycle_has_caps_) lease_ = *lease;
    write_grants();
  }
  for (std::uint32_t i = 0; i < stages.size(); ++i) {
    send(i, allocates && stages[i].is_introduced, want_report);
  }
  return outgoing_;
}

std::optional<Duration> CycleState::lease_of_caps(TimePoint now) const {
  if (!caps_end_) return settings_.lease;
  // All stages must be sent it in that time.
  const Duration shortest = std::max<Duration>(settings_.period / 2, std::chrono::milliseconds(1));
  const Duration half = (*caps_end_ - now - settings_.transit) / 2;
  if (half < shortest) return std::nullopt;
  return std::min(half, settings_.lease);
}

bool CycleState::is_in_time(TimePoint now) const {
  return !caps_end_ || !cycle_has_caps_ || now + lease_ <= *caps_end_ - settings_.transit;
}

bool CycleState::is_too_late(const Stage& stage, TimePoint now) const {
  if (!caps_end_ || !stage.open.has_caps) return false;
  // There is no other occasion before the next cycle.
  return now + settings_.period > *caps_end_ - settings_.transit - stage.open.lease;
}

void CycleState::send(std::uint32_t number, bool allocates, bool want_report) {
  Stage& stage = members_.stages()[number];
  if (!stage.status.connected || stage.open || stage.status.silent) return;
  if (!allocates && !want_report) return;
  stage.open = {
      .sequence = sequence_, .term = term_, .allocates = allocates, .wants_report = want_report};
  if (allocates) {
    stage.open.has_caps = cycle_has_caps_;
    stage.open.lease = lease_;
    stage.lease = std::max(stage.lease, lease_);
  }
  ++unanswered_;
  Outgoing& message = outgoing_.emplace_back();
  message.stage = StageId{number};
  message.sequence = sequence_;
  message.want_report = want_report;
  if (!allocates) return;
  message.lease = lease_;
  message.complete = true;
  message.grants = std::span(sent_).subspan(stage.first_grant, stage.grants);
}

// The caps that were sent stay open: the stage may apply them until its connection has ended.
void CycleState::disconnect(std::uint32_t number) {
  Stage& stage = members_.stages()[number];
  if (std::exchange(stage.status.silent, true)) return;
  --unanswered_;
  stage.status.problem = "it does not answer";
  rows_are_stale_ = true;
  Outgoing& message = outgoing_.emplace_back();
  message.stage = StageId{number};
  message.sequence = sequence_;
  message.complete = true;
  message.close = true;
}

void CycleState::expire(std::uint32_t number, TimePoint now) {
  Stage& stage = members_.stages()[number];
  const bool may_be_under_way = stage.is_pending || (stage.open && stage.open.allocates);
  const bool ends = stage.caps_until <= now && !may_be_under_way;
  const bool stale_end = stage.stale_until <= now;
  if (!stage.is_known || (!ends && !stale_end)) return;
  if (ends) stage.caps_until = kNever;
  if (stale_end) stage.stale_until = kNever;
  const bool is_gone = ends && !stage.status.connected;
  for (std::size_t i = stage.pairs.size(); i > 0; --i) {
    const std::uint32_t pair = stage.pairs[i - 1];
    for (CapLedger& ledger : ledgers_) {
      if (ends) ledger.release(pair);
      if (stale_end || is_gone) ledger.release_stale(pair);
    }
    if (is_gone || stage.status.connected) forget_pair_if_clear(pair);
  }
  if (is_gone) members_.forget_stage(number);
}

void CycleState::rebuild_rows() {
  struct Place {
    std::uint64_t key;
    std::uint32_t pair;
    std::uint32_t at;
  };
  members_.rank();
  for (Membership::Job& job : members_.jobs()) job.stages = 0;
  std::vector<Place> places;
  sent_.clear();
  for (Stage& stage : members_.stages()) stage.grants = 0;
  for (const std::uint32_t number : members_.ranked_stages()) {
    Stage& stage = members_.stages()[number];
    stage.first_grant = static_cast<std::uint32_t>(sent_.size());
    for (const std::uint32_t pair : stage.pairs) {
      const Membership::PairRecord& record = members_.pair(pair);
      if (record.flow == Membership::kNone) continue;
      members_.job(record.job).stages += record.stages;
      places.push_back({.key = std::uint64_t{members_.job(record.job).rank} << 32U | stage.rank,
                        .pair = pair,
                        .at = static_cast<std::uint32_t>(sent_.size())});
      sent_.push_back({.flow = record.flow, .grant = {}});
    }
    stage.grants = static_cast<std::uint32_t>(sent_.size()) - stage.first_grant;
  }
  std::ranges::sort(places, {}, &Place::key);
  all_take_caps_ = true;
  rows_.clear();
  ids_.clear();
  places_.clear();
  for (const Place& place : places) {
    const Membership::PairRecord& record = members_.pair(place.pair);
    const Membership::Job& job = members_.job(record.job);
    Pair& row = rows_.emplace_back();
    row.id = place.pair;
    row.job = job.rank;
    row.stage = members_.stages()[record.stage].rank;
    row.stages = record.stages;
    row.takes_caps = members_.stages()[record.stage].takes_caps;
    row.takes_metadata_caps = members_.stages()[record.stage].takes_metadata_caps;
    all_take_caps_ &= row.takes_caps && row.takes_metadata_caps;
    row.weight = job.weight.value_or(job.announced_weight);
    row.most = job.most;
    ids_.push_back(place.pair);
    places_.push_back(place.at);
  }
  grants_.resize(rows_.size());
  for (std::vector<std::uint64_t>& each : own_) each.resize(rows_.size());
  for (std::vector<std::uint64_t>& each : caps_) each.resize(rows_.size());
  wanted_.resize(rows_.size());
  given_.resize(rows_.size());
  can_send_.resize(rows_.size());
  rows_are_stale_ = false;
}

void CycleState::fill_rows() {
  for (const Stage& stage : members_.stages()) {
    std::fill_n(can_send_.begin() + stage.first_grant, stage.grants, stage.open ? 0 : 1);
  }
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const Membership::PairRecord& record = members_.pair(ids_[i]);
    rows_[i].arrived = record.arrived;
    rows_[i].limited = record.limited;
    rows_[i].done = record.done;
    rows_[i].times = record.times;
  }
}

// Caps of pairs that are not divided among, and of former processes.
Amounts CycleState::caps_of_others() {
  Amounts less;
  for (std::size_t i = 0; i < kResources.size(); ++i) {
    of(in_force_, i) = 0;
    if (!ledgers_[i].is_used()) {
      std::ranges::fill(own_[i], 0);
      continue;
    }
    std::uint64_t sum = 0;
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      own_[i][row] = ledgers_[i].own(ids_[row]);
      sum = add_saturating(sum, own_[i][row]);
    }
    const std::uint64_t capacity = of(settings_.capacity, i);
    if (capacity == 0) continue;
    of(in_force_, i) = ledgers_[i].sum();
    of(less, i) = std::min(of(in_force_, i) - sum, capacity);
  }
  return less;
}

bool CycleState::grants_caps(std::size_t resource) {
  return std::ranges::any_of(grants_,
                             [resource](Grant& grant) { return of(grant, resource).has_value(); });
}

void CycleState::cap_rows(std::size_t resource, Caps source) {
  CapLedger& ledger = ledgers_[resource];
  const std::size_t rows = rows_.size();
  // The compiler does not know that none of these overlap.
  const std::uint64_t* const own = own_[resource].data();
  const std::uint32_t* const ids = ids_.data();
  const std::uint32_t* const places = places_.data();
  const std::uint8_t* const can_send = can_send_.data();
  std::uint64_t* const caps = caps_[resource].data();
  std::uint64_t* const wanted = wanted_.data();
  const std::uint64_t capacity = of(settings_.capacity, resource);
  const std::uint64_t most = capacity > 0 ? std::min(capacity, kNoCap - 1) : kNoCap - 1;
  bool has_any = false;
  for (std::size_t i = 0; i < rows; ++i) {
    std::uint64_t cap = kNoCap;
    if (source == Caps::before) {
      cap = ledger.settled(ids[i]);
      // A new pair may have what is free.
      const bool is_new = cap == kNoCap && capacity > 0;
      if (is_new && (all_take_caps_ || takes_caps(i, resource))) cap = most;
    }
    if (source == Caps::granted) {
      const std::optional<std::uint64_t>& grant = of(grants_[i], resource);
      if (all_take_caps_ || takes_caps(i, resource)) {
        if (grant) cap = std::min(*grant, most);
      }
    }
    has_any |= cap != kNoCap;
    const bool is_raise = cap != kNoCap && cap > own[i] && can_send[places[i]] != 0;
    wanted[i] = is_raise ? cap - own[i] : 0;
    caps[i] = cap == kNoCap ? kNoCap : std::min(cap, own[i]);
  }
  cycle_has_caps_ |= has_any;
  if (capacity > 0) {
    ration(capacity - std::min(of(in_force_, resource), capacity), wanted_, given_);
  } else {
    std::ranges::copy(wanted_, given_.begin());
  }
  const std::uint64_t* const given = given_.data();
  for (std::size_t i = 0; i < rows; ++i) {
    caps[i] += given[i];  // none of what has no cap
    if (can_send[places[i]] != 0) ledger.send(ids[i], caps[i]);
  }
}

bool CycleState::takes_caps(std::size_t row, std::size_t resource) {
  if (!rows_[row].takes_caps) {
    if (of(grants_[row], resource)) {
      miss_caps(ids_[row], "it cannot enforce the limits that its jobs are granted");
    }
    return false;
  }
  if (has_part(rows_[row], kResources[resource])) return true;
  miss_caps(ids_[row], "it does not limit metadata operations");
  return false;
}

void CycleState::miss_caps(std::uint32_t pair, std::string_view what) {
  Stage& stage = members_.stages()[members_.pair(pair).stage];
  if (std::exchange(stage.lacks_caps, true)) return;
  stage.status.problem = what;
}

void CycleState::write_grants() {
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    Grant& to = sent_[places_[i]].grant;
    for (std::size_t resource = 0; resource < kResources.size(); ++resource) {
      const std::uint64_t cap = caps_[resource][i];
      of(to, resource) = cap == kNoCap ? std::nullopt : std::optional(cap);
    }
    to.elsewhere_total = grants_[i].elsewhere_total;
  }
}

}  // namespace vpfs::allocation
