#include "test/control/election/contested_site.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"

namespace vpfs::election {
namespace {

using namespace std::chrono_literals;
using allocation::Outgoing;
using allocation::SentCycle;
using allocation::SentReport;
using allocation::StageId;
using control::SiteStore;

constexpr Duration kLook = 200ms;

SiteStore::Traits traits_of(const ContestSettings& settings) {
  return {.has_standbys = true,
          .lease = 1s,
          .shows_beats = settings.shows_beats,
          .vacancy_is_certain = !settings.shows_beats};
}

}  // namespace

// A run of a coordinator's program.
struct ContestedSite::Coordinator : std::enable_shared_from_this<Coordinator> {
  Coordinator(std::uint32_t own_number, std::uint64_t own_incarnation,
              const SiteStore::Traits& traits)
      : number(own_number), incarnation(own_incarnation), candidacy(traits) {}

  const std::uint32_t number;
  const std::uint64_t incarnation;
  bool is_dead = false;
  TimePoint stopped_until = {};
  TimePoint store_away_until = {};
  std::vector<TimePoint> stage_away_until;
  Candidacy candidacy;
  bool is_claiming = false;
  // What a leader has.
  std::uint64_t term = 0;
  std::optional<Tenure> tenure;
  TimePoint clear_from = {};
  std::unique_ptr<allocation::CycleState> state;
  std::vector<std::shared_ptr<Stream>> streams;  // by stage; null: not connected
  std::vector<std::uint32_t> stage_by_id;

  [[nodiscard]] bool leads() const { return state != nullptr; }
};

// As a StageConnection of CoordinatedSite.
struct ContestedSite::Stream {
  std::shared_ptr<Coordinator> from;
  std::shared_ptr<allocation::ModelStage> stage;
  StageId id;
  bool is_broken = false;
  allocation::ModelStage::Told told;
  std::deque<std::pair<TimePoint, SentCycle>> to_stage;
  TimePoint answers_at = {};  // answers keep their order
};

ContestedSite::ContestedSite(const ContestSettings& settings)
    : settings_(settings),
      traits_(traits_of(settings)),
      cycle_settings_{.capacity = {.bytes = 1'000'003, .operations = 7919},
                      .period = 50ms,
                      .lease = 300ms,
                      .transit = 150ms,
                      .silent_cycles = 5},
      time_(settings.seed),
      caps_(cycle_settings_.capacity),
      store_(traits_, settings.rules.compares),
      coordinators_(settings.coordinators),
      term_of_stage_(settings.stages) {}

ContestedSite::~ContestedSite() = default;

void ContestedSite::run() {
  for (std::uint32_t i = 0; i < settings_.stages; ++i) {
    stages_.push_back(std::make_shared<allocation::ModelStage>(i, ++incarnations_, time_.random()));
  }
  for (std::uint32_t i = 0; i < settings_.coordinators; ++i) start(i);
  time_.run(TimePoint{} + settings_.end, caps_.is_safe());
}

bool ContestedSite::is_led_at_the_end() const {
  return std::ranges::all_of(term_of_stage_,
                             [&](std::uint64_t term) { return term == highest_term_ && term > 0; });
}

// Most calls are quick. Some take as long as it takes to try several nodes of a store.
Duration ContestedSite::call_time() {
  return has_faults() && time_.happens(500) ? time_.random_time(0ms, 1500ms)
                                            : time_.random_time(0ms, 20ms);
}

void ContestedSite::start(std::uint32_t number) {
  auto process = std::make_shared<Coordinator>(number, ++incarnations_, traits_);
  process->stage_away_until.resize(settings_.stages);
  coordinators_[number] = process;
  later(*process, time_.random_time(0ms, 300ms), [this](Coordinator& self) { look(self); });
  later(*process, time_.random_time(0ms, 300ms), [this](Coordinator& self) { watch(self); });
  time_.at(now() + time_.random_time(0ms, 400ms), [this, process] { fault(process); });
}

void ContestedSite::later(Coordinator& process, Duration after,
                          std::function<void(Coordinator&)> what) {
  const std::shared_ptr<Coordinator> self = process.shared_from_this();
  time_.at(now() + after, [this, self, what = std::move(what)] {
    if (self->is_dead) return;
    if (self->stopped_until > now()) return later(*self, self->stopped_until - now(), what);
    what(*self);
  });
}

template <typename Call, typename Done>
void ContestedSite::ask_store(Coordinator& process, Call call, Done done) {
  const Duration there = call_time();
  const Duration back = call_time();
  const std::shared_ptr<Coordinator> self = process.shared_from_this();
  const bool arrives = process.store_away_until <= now() || time_.happens(3000);
  time_.at(now() + there, [this, self, arrives, back, call, done] {
    // A call that was sent is carried out, also if its sender has died meanwhile.
    using Answer = std::optional<std::invoke_result_t<Call>>;
    Answer answer = arrives ? Answer(call()) : std::nullopt;
    if (self->store_away_until > now()) answer.reset();
    if (!self->is_dead)
      later(*self, back, [done, answer](Coordinator& each) { done(each, answer); });
  });
}

void ContestedSite::fault(const std::shared_ptr<Coordinator>& self) {
  Coordinator& process = *self;
  if (!has_faults() || process.is_dead) return;
  if (time_.happens(100)) return end(process, time_.happens(3000));
  if (time_.happens(200)) process.stopped_until = now() + time_.random_time(10ms, 3s);
  if (time_.happens(400)) process.store_away_until = now() + time_.random_time(10ms, 4s);
  for (std::uint32_t stage = 0; stage < settings_.stages; ++stage) {
    if (!time_.happens(200)) continue;
    process.stage_away_until[stage] = now() + time_.random_time(10ms, 3s);
    if (process.leads() && process.streams[stage]) break_stream(process.streams[stage]);
  }
  time_.at(now() + time_.random_time(10ms, 100ms), [this, self] { fault(self); });
}

// The process ends, and another run of the program begins. One that ends well resigns.
void ContestedSite::end(Coordinator& process, bool well) {
  const bool may_resign = !settings_.rules.resigns_late || now() >= process.clear_from;
  if (well && process.leads() && process.stopped_until <= now() && may_resign) {
    store_.resign(process.incarnation);
  }
  process.is_dead = true;
  break_streams(process);
  time_.at(now() + time_.random_time(10ms, 1s), [this, number = process.number] { start(number); });
}

void ContestedSite::look(Coordinator& process) {
  if (process.leads()) return;
  later(process, kLook, [this](Coordinator& self) { look(self); });
  if (process.is_claiming) return;
  ask_store(
      process, [this] { return store_.look(now()); },
      [this, asked = now()](Coordinator& self, const std::optional<SiteStore::Seen>& seen) {
        if (self.leads() || !seen) return;
        self.candidacy.saw(*seen, asked, now());
        consider(self);
      });
}

// Looks at the leader's process. A cut network may look as if it were gone.
void ContestedSite::watch(Coordinator& process) {
  if (process.leads()) return;
  later(process, 50ms, [this](Coordinator& self) { watch(self); });
  const control::Leadership* const leader = process.candidacy.leader();
  if (leader == nullptr) return;
  const auto is_it = [&](const auto& each) {
    return !each->is_dead && each->incarnation == leader->incarnation && each->leads();
  };
  const bool lives = std::ranges::any_of(coordinators_, is_it);
  if (lives && (!has_faults() || !time_.happens(300))) {
    process.candidacy.found_alive(leader->term);
  } else {
    process.candidacy.found_gone(leader->term, now());
  }
}

void ContestedSite::consider(Coordinator& process) {
  if (process.is_claiming || process.leads() || !process.candidacy.claims(now())) return;
  process.is_claiming = true;
  const SiteStore::Seen seen = *process.candidacy.seen();
  const control::Leadership own = {.term = seen.least_term,
                                   .lease = cycle_settings_.lease,
                                   .transit = cycle_settings_.transit,
                                   .incarnation = process.incarnation};
  ask_store(
      process, [this, seen, own] { return store_.claim(seen, own, now()); },
      [this, seen, asked = now()](Coordinator& self, std::optional<bool> claimed) {
        self.is_claiming = false;
        if (!claimed) return;  // the outcome is not known; it looks again
        if (*claimed) return begin(self, seen, asked);
        self.candidacy.lost(now());
      });
}

void ContestedSite::begin(Coordinator& process, const SiteStore::Seen& seen, TimePoint asked) {
  ++outcome_.terms;
  if (!seen.is_vacant) ++outcome_.early_claims;
  process.term = seen.least_term;
  highest_term_ = std::max(highest_term_, process.term);
  process.tenure.emplace(traits_.lease, asked);
  allocation::CycleSettings settings = cycle_settings_;
  process.clear_from = process.candidacy.clear_from(seen, now());
  settings.clear_from = settings_.rules.waits_for_leases ? process.clear_from : TimePoint::min();
  process.state = std::make_unique<allocation::CycleState>(
      settings,
      std::make_unique<allocation::RandomPolicy>(cycle_settings_.capacity, time_.random()()),
      process.term);
  process.streams.assign(settings_.stages, nullptr);
  for (std::uint32_t stage = 0; stage < settings_.stages; ++stage) {
    later(process, time_.random_time(0ms, 50ms),
          [this, stage](Coordinator& self) { connect(self, stage); });
  }
  confirm(process);
  cycle(process);
  // An upgrade of all of them ends one after the other.
  if (!seen.is_vacant && has_faults() && time_.happens(5000)) {
    later(process, 10ms, [this](Coordinator& self) { end(self, true); });
  }
}

void ContestedSite::confirm(Coordinator& process) {
  if (!process.leads()) return;
  process.tenure->asks(now());
  ask_store(
      process, [this, own = process.incarnation] { return store_.confirm(own, now()); },
      [this, term = process.term](Coordinator& self, std::optional<bool> confirmed) {
        if (!self.leads() || self.term != term) return;
        if (confirmed && !*confirmed && settings_.rules.leader_stops) return lose(self);
        if (confirmed && *confirmed) self.tenure->is_confirmed();
        const TimePoint next = std::max(now(), self.tenure->next_confirmation());
        later(self, next - now(), [this](Coordinator& each) { confirm(each); });
      });
}

void ContestedSite::lose(Coordinator& process) {
  ++outcome_.lost;
  break_streams(process);
  process.state = nullptr;
  process.candidacy.lost(now());
  later(process, 0ms, [this](Coordinator& self) { look(self); });
  later(process, 0ms, [this](Coordinator& self) { watch(self); });
}

void ContestedSite::cycle(Coordinator& process) {
  if (!process.leads()) return;
  if (settings_.rules.leader_stops && now() >= process.tenure->end()) return lose(process);
  if (std::ranges::count_if(coordinators_,
                            [](const auto& each) { return !each->is_dead && each->leads(); }) > 1) {
    ++outcome_.together;
  }
  std::vector<std::shared_ptr<Stream>> to_close;
  for (const Outgoing& each : process.state->begin_cycle(now())) {
    const std::uint32_t stage = process.stage_by_id[each.stage.index];
    const std::shared_ptr<Stream> stream = process.streams[stage];
    VPFS_ASSERT(stream && stream->id == each.stage);
    TimePoint at = now() + time_.random_time(1ms, has_faults() ? 120ms : 20ms);
    if (!stream->to_stage.empty()) at = std::max(at, stream->to_stage.back().first);
    stream->to_stage.emplace_back(at, SentCycle(each, process.term));
    time_.at(at, [this, stream] { deliver(stream); });
    if (each.close) to_close.push_back(stream);
  }
  for (const std::shared_ptr<Stream>& each : to_close) break_stream(each);
  process.state->on_deadline(now());
  const TimePoint next = now() + cycle_settings_.period;
  later(process, next - now(), [this](Coordinator& self) { cycle(self); });
}

void ContestedSite::connect(Coordinator& process, std::uint32_t stage) {
  if (!process.leads() || process.streams[stage]) return;
  if (process.stage_away_until[stage] > now()) {
    return later(process, 50ms, [this, stage](Coordinator& self) { connect(self, stage); });
  }
  auto stream = std::make_shared<Stream>();
  const auto id =
      process.state->join("stage" + std::to_string(stage), stages_[stage]->incarnation, now());
  VPFS_ASSERT(id);
  stream->from = process.shared_from_this();
  stream->stage = stages_[stage];
  stream->id = *id;
  process.stage_by_id.resize(std::max<std::size_t>(process.stage_by_id.size(), id->index + 1));
  process.stage_by_id[id->index] = stage;
  process.streams[stage] = std::move(stream);
}

void ContestedSite::break_streams(Coordinator& process) {
  const std::vector<std::shared_ptr<Stream>> streams = process.streams;
  for (const std::shared_ptr<Stream>& each : streams) {
    if (each) break_stream(each);
  }
}

// The stage still reads a part of what was sent, within the transit.
void ContestedSite::break_stream(std::shared_ptr<Stream> stream) {
  Coordinator& process = *stream->from;
  const std::uint32_t stage = stream->stage->stage;
  stream->is_broken = true;
  process.streams[stage] = nullptr;
  const std::size_t kept = time_.random()() % (stream->to_stage.size() + 1);
  while (stream->to_stage.size() > kept) stream->to_stage.pop_back();
  TimePoint last = now();
  for (auto& [at, unused] : stream->to_stage) {
    last += time_.random_time(0ms, now() + cycle_settings_.transit - last);
    at = last;
    time_.at(at, [this, stream] { deliver(stream); });
  }
  if (process.is_dead || !process.leads()) return;
  process.state->leave(stream->id, now());
  later(process, 50ms, [this, stage](Coordinator& self) { connect(self, stage); });
}

void ContestedSite::deliver(const std::shared_ptr<Stream>& stream) {
  while (!stream->to_stage.empty() && stream->to_stage.front().first <= now()) {
    const SentCycle cycle = std::move(stream->to_stage.front().second);
    stream->to_stage.pop_front();
    apply(stream, cycle);
  }
}

void ContestedSite::apply(const std::shared_ptr<Stream>& stream, const SentCycle& cycle) {
  const std::shared_ptr<allocation::ModelStage> stage = stream->stage;
  if (cycle.head.complete) end_lease(*stage);
  if (stage->apply(cycle, stream->told, now()) == allocation::ModelStage::Applied::applied) {
    ++outcome_.applied;
    term_of_stage_[stage->stage] = cycle.term;
    time_.at(stage->lease_end(), [this, stage] { end_lease(*stage); });
    caps_.count(*stage);
  }
  if (stream->is_broken || cycle.head.close) return;
  auto report =
      std::make_shared<SentReport>(stage->answer(cycle, stream->told, true, time_.random()));
  stream->answers_at = std::max(stream->answers_at, now() + time_.random_time(1ms, 20ms));
  later(*stream->from, stream->answers_at - now(), [this, stream, report](Coordinator& self) {
    if (stream->is_broken || !self.leads()) return;
    report->deliver(*self.state, stream->id, now());
  });
}

void ContestedSite::end_lease(allocation::ModelStage& stage) {
  if (stage.end_lease(now())) caps_.count(stage);
}

}  // namespace vpfs::election
