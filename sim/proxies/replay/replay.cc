#include "sim/proxies/replay/replay.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/attributes.h"
#include "base/check.h"

namespace vpfs::sim {
namespace {

// As the flow buffers of an OrangeFS server.
constexpr Bytes kPiece = {256 * kKiB};

std::vector<std::string> not_recorded(const stage::Classifier& classifier) {
  constexpr std::pair<Attribute, const char*> kOthers[] = {{Attribute::file_system, "file_system"},
                                                           {Attribute::node, "node"},
                                                           {Attribute::target, "target"},
                                                           {Attribute::owner, "owner"},
                                                           {Attribute::directory, "directory"}};
  std::vector<std::string> names;
  for (const auto& [attribute, name] : kOthers) {
    if (classifier.rules()->looked_at().has(attribute)) names.emplace_back(name);
  }
  for (const std::string& hint : classifier.hint_names()) {
    if (hint != stage::kJobHint) names.push_back(hint);
  }
  return names;
}

// Its index in what is known of a source and a kind.
std::size_t belonging(std::uint32_t source, IoKind kind) {
  return source * kIoKinds + static_cast<std::size_t>(kind);
}

}  // namespace

std::size_t SharesByName::number_of(const std::string& name) {
  const auto [found, is_new] = numbers_.try_emplace(name, all_.size());
  if (is_new) all_.push_back({.virtual_pfs = name});
  return found->second;
}

std::vector<ReplayedShare> SharesByName::sorted() const {
  std::vector<ReplayedShare> shares = all_;
  std::ranges::sort(shares, [](const ReplayedShare& one, const ReplayedShare& other) {
    return std::tie(other.moved, one.virtual_pfs) < std::tie(one.moved, other.virtual_pfs);
  });
  return shares;
}

std::vector<ReplayedShare> recorded_shares(const RecordedLoad& load) {
  SharesByName shares;
  std::vector<std::size_t> numbers;
  numbers.reserve(load.sources.size());
  for (const RecordedSource& each : load.sources) {
    numbers.push_back(shares.number_of(each.virtual_pfs));
  }
  for (const RecordedIo& io : load.requests) {
    if (io.end > TimePoint() + load.length) continue;
    ReplayedShare& share = shares[numbers[io.source]];
    ++share.requests;
    share.moved += io.size;
    share.wait.record(io.sent - io.arrival);
    share.service.record(io.end - io.sent);
  }
  return shares.sorted();
}

// A loop at its next step, and its request.
struct Replay::Loop : ProxiedServer::Request {
  const ClosedLoop* recorded = nullptr;
  std::size_t step = 0;
  std::size_t share = 0;
};

Replay::Replay(const RecordedLoad& load, const DeviceSettings& device, const stage::Config& config)
    : load_(load),
      config_(config),
      cost_(config.cost),
      classifier_([&] {
        for (const stage::RegisteredJob& job : config.jobs) VPFS_ASSERT(jobs_.add(job).has_value());
        return stage::Classifier(
            config.rules, stage::default_class(config), &jobs_,
            config.only_registered_jobs ? stage::JobIds::registered : stage::JobIds::trusted,
            config.node_addresses);
      }()),
      not_recorded_(sim::not_recorded(classifier_)),
      places_(config),
      recorded_(closed_loops(load)),
      belongings_(load.sources.size() * kIoKinds) {
  server_ = std::make_unique<ProxiedServer>(
      engine_, config, ProxiedServer::Settings{.device = device, .piece = kPiece},
      ProxiedServer::Callbacks{.done = [this](ProxiedServer::Request& request) { done(request); }});
  count_moved();
  for (const ClosedLoop& each : recorded_) {
    Loop& loop = loops_.emplace_back();
    loop.recorded = &each;
    begin_later(loop, TimePoint() + each.steps.front().think);
  }
}

Replay::~Replay() = default;

void Replay::begin_later(Loop& loop, TimePoint time) {
  if (time > TimePoint() + length()) return;
  engine_.at(time, [this, &loop] { begin(loop); });
}

void Replay::begin(Loop& loop) {
  const ClosedLoop& recorded = *loop.recorded;
  const ClosedLoop::Step& step = recorded.steps[loop.step];
  const std::size_t at = loop.step;
  loop = Loop();
  loop.recorded = &recorded;
  loop.step = at;
  const Belonging& belongs = belonging_of(recorded.source, step.kind);
  loop.set_place(belongs.place);
  loop.traffic_class = belongs.traffic_class;
  loop.share = belongs.share;
  loop.kind = step.kind;
  loop.size = loop.asked = step.size;
  loop.cost = cost_.cost(step.kind, step.size);
  server_->arrive(loop);
}

void Replay::done(ProxiedServer::Request& request) {
  auto& loop = static_cast<Loop&>(request);
  ReplayedShare& share = shares_[loop.share];
  ++share.requests;
  share.moved += loop.size;
  share.wait.record(loop.held);
  share.service.record(engine_.now() - loop.arrival - loop.held);
  const ClosedLoop& recorded = *loop.recorded;
  if (++loop.step < recorded.steps.size()) {
    return begin_later(loop, engine_.now() + recorded.steps[loop.step].think);
  }
  if (!recorded.goes_on) return;
  loop.step = 0;
  // Virtual time goes on, whatever was recorded.
  constexpr Duration kLeast = std::chrono::microseconds(1);
  begin_later(loop, engine_.now() + std::max(recorded.mean_think, kLeast));
}

Replay::Matched Replay::match_of(const RecordedSource& who, IoKind kind) {
  std::vector<std::optional<std::string_view>> hints;
  for (const std::string& name : classifier_.hint_names()) {
    const bool is_job = name == stage::kJobHint && !who.jobid.empty();
    hints.push_back(is_job ? std::optional<std::string_view>(who.jobid) : std::nullopt);
  }
  const stage::Identity identity{.kind = kind, .uid = who.uid, .hints = hints};
  Matched matched = {.match = classifier_.classify(who.client, identity)};
  if (who.is_unknown || !not_recorded_.empty()) {
    matched.moved = !places_.keep(who, kind, matched.match);
  }
  return matched;
}

void Replay::count_moved() {
  std::vector<std::optional<bool>> moved(belongings_.size());
  for (const RecordedIo& io : load_.requests) {
    std::optional<bool>& known = moved[belonging(io.source, io.kind)];
    if (!known) known = match_of(load_.sources[io.source], io.kind).moved;
    if (*known) ++moved_;
  }
}

const Replay::Belonging& Replay::belonging_of(std::uint32_t source, IoKind kind) {
  std::optional<Belonging>& known = belongings_[belonging(source, kind)];
  if (known) return *known;
  const stage::Classifier::Match match = match_of(load_.sources[source], kind).match;
  stage::Stage& stage = server_->stage();
  const stage::Place place = stage.find(match, engine_.now(), config_.rules);
  known = Belonging{.place = place,
                    .traffic_class = match.traffic_class,
                    .share = shares_.number_of(stage.virtual_pfs()[place.id.app].info->name)};
  return *known;
}

void Replay::run_until(Duration time) {
  while (engine_.step(TimePoint() + time)) ++events_;
  engine_.skip_to(TimePoint() + time);
}

std::vector<ReplayedShare> Replay::shares() const {
  return shares_.sorted();
}

}  // namespace vpfs::sim
