#include "control/coordinator/coordinator.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include <asio/post.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/log/log.h"
#include "base/result.h"
#include "base/version.h"
#include "control/allocation/allocation_policy.h"
#include "control/wire/protocol.h"

namespace vpfs::coordinator {
namespace {

using allocation::AllocationPolicyKind;
using allocation::AllocationPolicySettings;
using allocation::CycleSettings;
using control::make_error;

CycleSettings cycle_settings(const Config& config, const AllocationPolicyKind& policy,
                             TimePoint clear_from) {
  CycleSettings settings;
  // Other policies give only caps of single jobs, whose sum has no meaning.
  if (policy.needs_caps) settings.capacity = config.capacity;
  if (config.period > Duration::zero()) settings.period = config.period;
  settings.deadline = config.deadline;
  settings.lease = config.lease;
  settings.transit = config.transit;
  settings.silent_cycles = config.silent_cycles;
  settings.clear_from = clear_from;
  return settings;
}

constexpr Duration kIdle = std::chrono::milliseconds(10);
constexpr std::size_t kJoinsTold = 20;
constexpr Duration kBusy = std::chrono::milliseconds(1);

}  // namespace

Result<std::unique_ptr<Coordinator>> Coordinator::make(const Config& config, const Clock& clock,
                                                       const Options& options,
                                                       const Elected& elected,
                                                       control::StoreThread& store,
                                                       const net::SignalQueue& signals) {
  std::unique_ptr<Coordinator> coordinator(new Coordinator(config, clock, elected, store, signals));
  if (!options.cycle_log.empty()) {
    auto log = CycleLog::open(options.cycle_log);
    if (!log) return fail("--cycle-log: " + log.error().message, log.error().code);
    coordinator->cycle_log_ = std::move(*log);
  }
  auto links = StageLinks::open(coordinator->context_, clock, coordinator->config_, *coordinator,
                                options.links);
  VPFS_TRY(links);
  coordinator->links_ = std::move(*links);
  coordinator->runner_.use(*coordinator->links_);
  coordinator->runner_.ask_before([&office = coordinator->office_] { return office.holds(); });
  if (config.parent) {
    coordinator->uplink_.emplace(coordinator->state_, *coordinator->given_);
    auto parent = ParentLink::make(coordinator->context_, clock, coordinator->config_,
                                   coordinator->links_->room(), *coordinator->uplink_,
                                   coordinator->runner_, *coordinator);
    VPFS_TRY(parent);
    coordinator->parent_ = std::move(*parent);
  }
  auto site = SiteAdministration::open(
      {.context = coordinator->context_,
       .clock = clock,
       .config = coordinator->config_,
       .state = coordinator->state_,
       .links = *coordinator->links_,
       .parent = coordinator->parent_.get(),
       .incarnation = coordinator->own_.incarnation,
       .store = coordinator->office_.store(),
       .lost = [&office = coordinator->office_] { office.lost(); },
       .store_problem = [&office = coordinator->office_] { return office.trouble(); }},
      elected.records);
  VPFS_TRY(site);
  coordinator->site_ = std::move(*site);
  return coordinator;
}

std::unique_ptr<allocation::AllocationPolicy> Coordinator::make_policy() {
  AllocationPolicySettings settings;
  settings.capacity = config_.capacity;
  settings.floor = config_.floor;
  for (const JobConfig& job : config_.jobs) settings.limits[job.name] = job.limit;
  if (!config_.parent) return policy_.make(settings);
  auto given = std::make_unique<allocation::GivenPolicy>(config_.floor);
  given_ = given.get();
  return given;
}

Coordinator::Coordinator(const Config& config, const Clock& clock, const Elected& elected,
                         control::StoreThread& store, const net::SignalQueue& signals)
    : config_(config),
      clock_(clock),
      own_(elected.own),
      policy_(*allocation::find_policy(config.policy)),
      signals_(context_, signals),
      cycle_timer_(context_),
      office_(context_, clock, store, elected.tenure,
              [this](const std::string& why) { lose(why); }),
      state_(cycle_settings(config, policy_, elected.clear_from), make_policy(), own_.term),
      runner_(context_, clock, state_) {}

Coordinator::~Coordinator() {
  if (site_ != nullptr) site_->stop();
  if (parent_ != nullptr) parent_->stop();
  if (links_ != nullptr) links_->stop();
}

Coordinator::Ending Coordinator::run() {
  signals_.start([this](int signal) { take_signal(signal); });
  office_.start();
  links_->start();
  site_->start();
  if (parent_ != nullptr) parent_->start();
  begin_cycle();
  context_.run();
  office_.stop();
  runner_.stop();
  if (parent_ != nullptr) parent_->stop();
  site_->stop();
  links_->stop();
  return ending_;
}

void Coordinator::lose(const std::string& why) {
  spdlog::warn("term {} is over: {}", own_.term, why);
  ending_ = Ending::lost;
  context_.stop();
}

void Coordinator::take_signal(int signal) {
  if (signal == SIGUSR2) return reopen_log();
  spdlog::info("{}: ending; stages go on alone when their leases end",
               signal == SIGTERM ? "SIGTERM" : "SIGINT");
  context_.stop();
}

std::expected<allocation::StageId, control::Error> Coordinator::admit(const StageHello& hello) {
  const auto refuse = [](control::Error::Code code, const char* place, std::string text) {
    return std::unexpected(make_error(code, place, std::move(text)));
  };
  if (hello.term > own_.term) {
    return refuse(control::Error::OUTDATED, "term",
                  fmt::format("{} has applied cycles of term {}, and this coordinator has term {}: "
                              "another one leads, or has led (--term begins with a later one)",
                              hello.name, hello.term, own_.term));
  }
  if (policy_.needs_elsewhere && !hello.takes_elsewhere) {
    return refuse(control::Error::UNSUPPORTED, "capabilities",
                  fmt::format("the policy {} needs a scheduler that counts service elsewhere, such "
                              "as sfq: {} has none",
                              policy_.name, hello.name));
  }
  if (policy_.needs_caps && !hello.takes_caps) {
    return refuse(control::Error::UNSUPPORTED, "capabilities",
                  fmt::format("the policy {} needs a scheduler that can cap, such as sfq or tbf: "
                              "{} has none",
                              policy_.name, hello.name));
  }
  if (policy_.needs_elsewhere) {
    const bool is_configured = !config_.cost_model.empty();
    const std::string* expected = is_configured ? &config_.cost_model : common_cost_model();
    std::string whose = "the coordinator's cost_model";
    if (!is_configured && expected != nullptr) {
      const std::size_t stages = cost_models_.at(*expected);
      whose = fmt::format("that of {} connected stage{}", stages, stages == 1 ? "" : "s");
    }
    if (expected != nullptr && *expected != hello.cost_model) {
      return refuse(control::Error::INVALID, "cost_model",
                    fmt::format("\"{}\" of {} is not \"{}\", {}: services could not be compared",
                                hello.cost_model, hello.name, *expected, whose));
    }
  }
  auto stage = state_.join(hello.name, hello.incarnation, clock_.now(),
                           {.caps = hello.takes_caps, .metadata_caps = hello.takes_metadata_caps});
  if (!stage) return refuse(control::Error::EXISTS, "name", stage.error().message);
  return *stage;
}

const std::string* Coordinator::common_cost_model() const {
  const auto most =
      std::ranges::max_element(cost_models_, {}, [](const auto& each) { return each.second; });
  return most == cost_models_.end() ? nullptr : &most->first;
}

std::optional<control::Hello> Coordinator::hello() const {
  const std::string* cost_model =
      config_.cost_model.empty() ? common_cost_model() : &config_.cost_model;
  if (policy_.needs_elsewhere && cost_model == nullptr) return std::nullopt;
  control::Hello hello;
  hello.set_version(control::Versions().newest);
  hello.set_least(control::Versions().least);
  hello.set_role(control::Hello::STAGE);
  hello.set_name(config_.name);
  hello.set_incarnation(own_.incarnation);
  for (const char* const each :
       {"aggregator", "caps", "metadata_caps", "elsewhere", "site", "forward_as"}) {
    hello.add_capabilities(each);
  }
  if (cost_model != nullptr) hello.set_cost_model(*cost_model);
  hello.set_program("vpfs-coordinator " + std::string(version()));
  return hello;
}

// A round of the parent's may be under way, or begin right after this.
void Coordinator::led(bool is_led) {
  if (!is_led) begin_later(clock_.now());
}

void Coordinator::ask(const control::Envelope& request, ParentLink::Done done) {
  if (request.has_site()) {
    return site_->take_on(request.site(), [done](std::vector<std::string> warnings) {
      control::Envelope answer;
      control::Ack& ack = *answer.mutable_ack();
      for (std::string& each : warnings) *ack.add_warnings() = std::move(each);
      done(std::move(answer));
    });
  }
  if (request.has_forward()) return site_->forward(request.forward(), std::move(done));
  control::Envelope answer;
  *answer.mutable_error() =
      make_error(control::Error::UNSUPPORTED, "", "an aggregator does not know that message");
  done(std::move(answer));
}

void Coordinator::joined(allocation::StageId stage) {
  const StageHello& hello = links_->hello(stage);
  ++cost_models_[hello.cost_model];
  site_->joined(stage);
  tell_joins();
  if (++joins_ > kJoinsTold) return;
  spdlog::info("stage {} ({}) at {} has joined", hello.name, hello.program, hello.address);
}

// Thousands may join at once: of each second the first ones are told, and how many followed.
void Coordinator::tell_joins() {
  const TimePoint now = clock_.now();
  if (now - joins_since_ < std::chrono::seconds(1)) return;
  if (joins_ > kJoinsTold) spdlog::info("{} more stages have joined", joins_ - kJoinsTold);
  joins_ = 0;
  joins_since_ = now;
}

void Coordinator::left(allocation::StageId stage) {
  const auto place = cost_models_.find(links_->hello(stage).cost_model);
  if (place != cost_models_.end() && --place->second == 0) cost_models_.erase(place);
  site_->left(stage);
  state_.leave(stage, clock_.now());
  runner_.left();
}

void Coordinator::begin_cycle() {
  cycle_timer_.cancel();
  if (parent_ != nullptr && parent_->is_led()) return;                 // led() comes
  if (runner_.is_running()) return begin_later(clock_.now() + kBusy);  // a round of the parent's
  cycle_began_ = clock_.now();
  if (config_.cycle == CycleKind::fused) {
    return runner_.run(CycleRunner::Kind::fused, [this](const CycleRunner::Times& took) {
      finished({.stages = took.stages,
                .late = took.late,
                .total = took.total,
                .compute = took.compute,
                .enforce = took.total - took.compute});
    });
  }
  runner_.run(CycleRunner::Kind::ask, [this](const CycleRunner::Times& took) {
    run_divided({.stages = took.stages, .late = took.late, .collect = took.total});
  });
}

// The second half of a cycle of four messages.
void Coordinator::run_divided(CycleTimes times) {
  runner_.run(CycleRunner::Kind::enforce, [this, times](const CycleRunner::Times& took) mutable {
    times.late = std::max(times.late, took.late);
    times.compute = took.compute;
    times.enforce = took.total - took.compute;
    times.total = times.collect + took.total;
    finished(times);
  });
}

void Coordinator::finished(const CycleTimes& times) {
  tell_joins();
  if (times.stages > 0) site_->finished(times);
  if (cycle_log_ != nullptr && times.stages > 0) {
    CycleTimes numbered = times;
    numbered.cycle = state_.sequence();
    cycle_log_->add(numbered);
  }
  // Without stages there is nothing to hurry for.
  const Duration period = times.stages == 0 ? std::max(config_.period, kIdle) : config_.period;
  if (parent_ != nullptr) parent_->round_is_over();
  if (cycle_began_ + period <= clock_.now()) return begin_cycle();
  begin_later(cycle_began_ + period);
}

void Coordinator::begin_later(TimePoint at) {
  cycle_timer_.expires_at(at);
  cycle_timer_.async_wait([this](std::error_code error) {
    if (!error) begin_cycle();
  });
}

}  // namespace vpfs::coordinator
