#include "sim/proxies/whatif/what_if.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/wide.h"
#include "sim/proxies/whatif/striping.h"

namespace vpfs::sim {
namespace {

// Independent sequences of random numbers for each process.
constexpr std::uint64_t kProcessesOfAnApplication = std::uint64_t{1} << 32;

allocation::Abilities abilities_of(const stage::Config& config) {
  const bool caps = stage::policy_of(config).caps;
  return {.caps = caps, .metadata_caps = caps && config.schedule_metadata};
}

// `part` of `all` equal parts of a time.
Duration part_of(Duration time, std::uint64_t part, std::uint64_t all) {
  return Duration(
      static_cast<std::int64_t>(Wide(static_cast<std::uint64_t>(time.count())) * part / all));
}

}  // namespace

struct WhatIf::Process {
  std::size_t application = 0;
  std::uint64_t number = 0;  // in it
  std::size_t turn = 0;      // of its file's first datafile, among the servers of the application
  std::uint64_t places = 1;  // of requests in its file
  std::uint64_t cursor = 0;
  Random random;
};

// Where an application is in what was recorded of it.
struct WhatIf::Replay {
  std::size_t application = 0;
  std::size_t first_process = 0;
  std::size_t interval = 0;
  std::uint64_t begun = 0;  // requests of it
  std::uint64_t turn = 0;   // of a process
};

struct WhatIf::Io {
  Process* process = nullptr;
  TimePoint begun;
  std::uint64_t parts_left = 0;
};

struct WhatIf::Part : ProxiedServer::Request {
  Io* io = nullptr;
};

std::string problem_of(const Scenario& scenario, const stage::Config& config) {
  if (!scenario.coordinator) return "";
  const PolicyKind& policy = stage::policy_of(config);
  const allocation::AllocationPolicyKind& coordinator = *scenario.coordinator->policy;
  const bool is_able = (policy.caps || !coordinator.needs_caps) &&
                       (policy.elsewhere || !coordinator.needs_elsewhere);
  if (is_able) return "";
  return fmt::format("{} has nothing that the scheduler's policy {} can do", coordinator.name,
                     policy.name);
}

WhatIf::WhatIf(const Scenario& scenario, const stage::Config& config)
    : scenario_(scenario), config_(config), cost_(config.cost), classifier_([&] {
        for (const stage::RegisteredJob& job : config.jobs) VPFS_ASSERT(jobs_.add(job).has_value());
        return stage::Classifier(
            config.rules, stage::default_class(config), &jobs_,
            config.only_registered_jobs ? stage::JobIds::registered : stage::JobIds::trusted,
            config.node_addresses);
      }()) {
  places_.resize(scenario.applications.size() * scenario.servers * kIoKinds);
  const ProxiedServer::Settings settings{.device = scenario.device,
                                         .piece = scenario.flow_buffer_size};
  for (std::uint64_t i = 0; i < scenario.servers; ++i) {
    ProxiedServer::Callbacks callbacks{
        .done = [this](ProxiedServer::Request& request) { part_done(request); }};
    servers_.push_back(
        std::make_unique<ProxiedServer>(engine_, config, settings, std::move(callbacks)));
  }
  if (scenario.coordinator) {
    std::vector<ProxiedServer*> servers;
    for (const auto& each : servers_) servers.push_back(each.get());
    coordinator_.emplace(engine_, *scenario.coordinator, std::move(servers), abilities_of(config));
  }
  for (std::size_t i = 0; i < scenario.applications.size(); ++i) start(i);
}

WhatIf::~WhatIf() = default;

void WhatIf::start(std::size_t application) {
  const SimulatedApplication& settings = scenario_.applications[application];
  ApplicationResult& result = results_.emplace_back();
  result.name = settings.name;
  under_way_.push_back(0);
  const Duration& interval = scenario_.interval;
  result.course.resize(
      static_cast<std::size_t>((scenario_.duration + interval - Duration(1)) / interval));
  const TimePoint begin = TimePoint() + settings.start;
  const bool is_recorded = settings.arrivals == SimulatedApplication::Arrivals::recorded;
  const std::size_t first_process = processes_.size();
  for (std::uint64_t number = 0; number < settings.processes; ++number) {
    Process& process = processes_.emplace_back(Process{
        .application = application,
        .number = number,
        .turn = processes_.size() % servers_of(settings),
        .places = settings.file_size.count / settings.size.count,
        .random = Random(scenario_.seed, (application + 1) * kProcessesOfAnApplication + number)});
    if (settings.arrivals == SimulatedApplication::Arrivals::closed) {
      for (std::uint64_t i = 0; i < settings.outstanding; ++i) begin_later(process, begin);
    } else if (!is_recorded) {
      // Processes with even arrivals do not begin at once.
      const auto part = static_cast<std::int64_t>(number);
      const auto of = static_cast<std::int64_t>(settings.processes);
      arrive_next(process, begin + settings.between * part / of);
    }
  }
  if (is_recorded) {
    arrive_recorded(
        replays_.emplace_back(Replay{.application = application, .first_process = first_process}));
  }
}

void WhatIf::arrive_recorded(Replay& replay) {
  const SimulatedApplication& settings = scenario_.applications[replay.application];
  const std::vector<RecordedInterval>& recorded = settings.recorded;
  while (replay.interval < recorded.size() && replay.begun == recorded[replay.interval].requests) {
    ++replay.interval;
    replay.begun = 0;
  }
  if (replay.interval == recorded.size()) return;
  const RecordedInterval& now = recorded[replay.interval];
  const Duration from = replay.interval == 0 ? Duration() : recorded[replay.interval - 1].until;
  const Duration into = part_of(now.until - from, replay.begun, now.requests);
  const TimePoint when = TimePoint() + settings.start + from + into;
  if (next_start(settings, when) != when) return;  // it has stopped
  engine_.at(when, [this, &settings, &replay] {
    ++replay.begun;
    begin(processes_[replay.first_process + replay.turn++ % settings.processes]);
    arrive_recorded(replay);
  });
}

std::uint64_t WhatIf::servers_of(const SimulatedApplication& settings) const {
  return settings.servers > 0 ? settings.servers : servers_.size() - settings.first_server;
}

TimePoint WhatIf::next_start(const SimulatedApplication& settings, TimePoint time) const {
  const TimePoint start = TimePoint() + settings.start;
  TimePoint when = std::max(time, start);
  if (settings.burst) {
    const Duration into = (when - start) % settings.burst->interval;
    if (into >= settings.burst->length) when += settings.burst->interval - into;
  }
  const Duration stop = std::min(settings.stop.value_or(Duration::max()), length());
  return when < TimePoint() + stop ? when : kNever;
}

void WhatIf::begin_later(Process& process, TimePoint time) {
  const TimePoint when = next_start(scenario_.applications[process.application], time);
  if (when != kNever) engine_.at(when, [this, &process] { begin(process); });
}

void WhatIf::arrive_next(Process& process, TimePoint time) {
  const SimulatedApplication& settings = scenario_.applications[process.application];
  const TimePoint when = next_start(settings, time);
  if (when == kNever) return;
  engine_.at(when, [this, &process, &settings, when] {
    begin(process);
    const bool even = settings.arrivals == SimulatedApplication::Arrivals::even;
    arrive_next(process,
                when + (even ? settings.between : process.random.exponential(settings.between)));
  });
}

void WhatIf::begin(Process& process) {
  const SimulatedApplication& settings = scenario_.applications[process.application];
  const bool reads = process.random.chance(settings.read_percent);
  const IoKind kind = reads ? IoKind::read : IoKind::write;
  const std::uint64_t place = settings.random_places ? process.random.below(process.places)
                                                     : process.cursor++ % process.places;
  const std::uint64_t offset = place * settings.size.count;
  if (free_ios_.empty()) free_ios_.push_back(&ios_.emplace_back());
  Io& io = *free_ios_.back();
  free_ios_.pop_back();
  io = {.process = &process, .begun = engine_.now(), .parts_left = 0};
  ++under_way_[process.application];
  const std::uint64_t strip = scenario_.strip_size.count;
  const std::uint64_t its = servers_of(settings);
  const std::uint64_t datafiles = settings.datafiles > 0 ? settings.datafiles : its;
  for (std::uint64_t i = 0; i < datafiles; ++i) {
    const Bytes size{bytes_on_datafile(offset + settings.size.count, strip, datafiles, i) -
                     bytes_on_datafile(offset, strip, datafiles, i)};
    if (size.count == 0) continue;
    const std::size_t server = settings.first_server + (process.turn + i) % its;
    if (free_parts_.empty()) free_parts_.push_back(&parts_.emplace_back());
    Part& part = *free_parts_.back();
    free_parts_.pop_back();
    part = Part();
    part.set_place(place_of(process.application, server, kind, part.traffic_class));
    part.kind = kind;
    part.size = part.asked = size;
    part.cost = cost_.cost(kind, size);
    part.io = &io;
    ++io.parts_left;
    engine_.after(scenario_.round_trip / 2,
                  [&proxied = *servers_[server], &part] { proxied.arrive(part); });
  }
  end_if_too_many();
}

// The application with the most requests asks for more than it gets.
void WhatIf::end_if_too_many() {
  if (parts_.size() - free_parts_.size() <= scenario_.most_under_way || !problem_.empty()) return;
  const auto most = std::ranges::max_element(under_way_);
  problem_ = fmt::format(
      "application '{}' has {} requests under way after {:.3f} s: its requests come faster than "
      "they can be served, and no more fit into memory",
      results_[static_cast<std::size_t>(most - under_way_.begin())].name, *most, in_seconds(now()));
}

stage::Place WhatIf::place_of(std::size_t application, std::size_t server, IoKind kind,
                              std::uint8_t& traffic_class) {
  std::optional<Belonging>& known =
      places_[(application * servers_.size() + server) * kIoKinds + static_cast<std::size_t>(kind)];
  if (!known) {
    const SimulatedApplication& settings = scenario_.applications[application];
    std::vector<std::optional<std::string_view>> hints;
    for (const std::string& name : classifier_.hint_names()) {
      const bool is_job = name == stage::kJobHint && !settings.jobid.empty();
      hints.push_back(is_job ? std::optional<std::string_view>(settings.jobid) : std::nullopt);
    }
    const stage::Identity identity{.kind = kind, .uid = settings.uid, .hints = hints};
    const stage::Classifier::Match match = classifier_.classify(settings.client, identity);
    stage::Stage& its = servers_[server]->stage();
    known = Belonging{.place = its.find(match, engine_.now(), config_.rules),
                      .traffic_class = match.traffic_class};
    ApplicationResult& result = results_[application];
    if (result.virtual_pfs.empty() || kind == IoKind::read) {
      const stage::VirtualPfsInfo& info = *its.virtual_pfs()[known->place.id.app].info;
      result.virtual_pfs = info.name;
      result.promise = promise_of(stage::policy_of(config_), info.share(), servers_of(settings));
    }
  }
  traffic_class = known->traffic_class;
  return known->place;
}

void WhatIf::part_done(ProxiedServer::Request& request) {
  auto& part = static_cast<Part&>(request);
  Io& io = *part.io;
  if (is_measured()) results_[io.process->application].held.record(part.held);
  free_parts_.push_back(&part);
  if (--io.parts_left > 0) return;
  engine_.after(scenario_.round_trip - scenario_.round_trip / 2, [this, &io] { end(io); });
}

bool WhatIf::is_measured() const {
  return now() > scenario_.warm_up && now() <= length();
}

void WhatIf::end(Io& io) {
  Process& process = *io.process;
  const SimulatedApplication& settings = scenario_.applications[process.application];
  ApplicationResult& result = results_[process.application];
  if (is_measured()) {
    ++result.requests;
    result.moved += settings.size;
    result.latency.record(engine_.now() - io.begun);
    const Duration into = now() - scenario_.warm_up - Duration(1);
    result.course[static_cast<std::size_t>(into / scenario_.interval)] += settings.size;
  }
  free_ios_.push_back(&io);
  --under_way_[process.application];
  if (settings.arrivals == SimulatedApplication::Arrivals::closed) {
    begin_later(process, engine_.now() + settings.think);
  }
}

void WhatIf::run_until(Duration time) {
  while (problem_.empty() && engine_.step(TimePoint() + time)) ++events_;
  if (problem_.empty()) engine_.skip_to(TimePoint() + time);
}

WhatIfResult WhatIf::result() const {
  return {.applications = results_, .end = engine_.now(), .events = events_};
}

}  // namespace vpfs::sim
