#include "control/coordinator/coordinator.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include <asio/post.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/log.h"
#include "control/allocation/policy.h"
#include "control/store/journal.h"
#include "control/wire/protocol.h"

namespace vpfs::coordinator {
namespace {

using allocation::CycleSettings;
using allocation::PolicyKind;
using allocation::PolicySettings;
using control::make_error;

CycleSettings cycle_settings(const Config& config, TimePoint clear_from) {
  CycleSettings settings;
  settings.capacity = config.capacity;
  if (config.period > Duration::zero()) settings.period = config.period;
  settings.deadline = config.deadline;
  settings.lease = config.lease;
  settings.transit = config.transit;
  settings.silent_cycles = config.silent_cycles;
  settings.clear_from = clear_from;
  return settings;
}

std::unique_ptr<allocation::Policy> make_policy(const PolicyKind& kind, const Config& config) {
  PolicySettings settings;
  settings.capacity = config.capacity;
  settings.floor = config.floor;
  for (const JobConfig& job : config.jobs) settings.limits[job.name] = job.limit;
  return kind.make(settings);
}

}  // namespace

Result<std::unique_ptr<Coordinator>> Coordinator::make(const Config& config, const Clock& clock,
                                                       const Options& options) {
  static control::FileCalls calls;
  auto journal = control::Journal::open(config.journal + ".term", calls);
  if (!journal) return fail("journal: " + journal.error().message, journal.error().code);
  auto terms = std::make_unique<TermStore>(std::move(*journal));
  const auto last = terms->load();
  if (!last) return fail("journal: " + last.error().message, last.error().code);
  const Term term = {.number = std::max(terms->next(), options.least_term),
                     .lease = config.lease,
                     .transit = config.transit};
  if (auto begun = terms->begin(term); !begun) {
    return fail("journal: " + begun.error().message, begun.error().code);
  }
  // When the one before has ended is not known: it may have been a moment ago.
  const Term& before = last->value_or(term);
  const TimePoint clear_from =
      term.number > 1 ? clock.now() + before.lease + before.transit : TimePoint::min();
  std::unique_ptr<Coordinator> coordinator(new Coordinator(config, clock, term, clear_from));
  coordinator->terms_ = std::move(terms);
  if (!options.cycle_log.empty()) {
    auto log = CycleLog::open(options.cycle_log);
    if (!log) return fail("--cycle-log: " + log.error().message, log.error().code);
    coordinator->cycle_log_ = std::move(*log);
  }
  auto links = StageLinks::open(coordinator->context_, clock, coordinator->config_, *coordinator,
                                options.links);
  if (!links) return std::unexpected(std::move(links.error()));
  coordinator->links_ = std::move(*links);
  coordinator->runner_.use(*coordinator->links_);
  return coordinator;
}

Coordinator::Coordinator(const Config& config, const Clock& clock, const Term& term,
                         TimePoint clear_from)
    : config_(config),
      clock_(clock),
      term_(term),
      policy_(*allocation::find_policy(config.policy)),
      signals_(context_, SIGTERM, SIGINT, SIGUSR2),
      cycle_timer_(context_),
      state_(cycle_settings(config, clear_from), make_policy(policy_, config), term.number),
      runner_(context_, clock, state_) {
  for (const JobConfig& job : config_.jobs) state_.set_job(job.name, job.weight, job.most);
}

Coordinator::~Coordinator() {
  if (links_ != nullptr) links_->stop();
}

void Coordinator::run() {
  await_signal();
  links_->start();
  begin_cycle();
  context_.run();
  runner_.stop();
  links_->stop();
}

void Coordinator::await_signal() {
  signals_.async_wait([this](std::error_code error, int signal) {
    if (error) return;
    if (signal == SIGUSR2) {
      reopen_log();
      return await_signal();
    }
    spdlog::info("{}: ending; stages go on alone when their leases end",
                 signal == SIGTERM ? "SIGTERM" : "SIGINT");
    context_.stop();
  });
}

std::expected<allocation::StageId, control::Error> Coordinator::admit(const StageHello& hello) {
  const auto refuse = [](control::Error::Code code, const char* place, std::string text) {
    return std::unexpected(make_error(code, place, std::move(text)));
  };
  if (hello.term > term_.number) {
    return refuse(control::Error::OUTDATED, "term",
                  fmt::format("{} has applied cycles of term {}, and this coordinator has term {}: "
                              "another one leads, or has led (--term begins with a later one)",
                              hello.name, hello.term, term_.number));
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
    const std::string* expected = nullptr;
    std::string whose = "the coordinator's cost_model";
    if (!config_.cost_model.empty()) {
      expected = &config_.cost_model;
    } else if (!cost_models_.empty()) {
      const auto most =
          std::ranges::max_element(cost_models_, {}, [](const auto& each) { return each.second; });
      expected = &most->first;
      whose =
          fmt::format("that of {} connected stage{}", most->second, most->second == 1 ? "" : "s");
    }
    if (expected != nullptr && *expected != hello.cost_model) {
      return refuse(control::Error::INVALID, "cost_model",
                    fmt::format("\"{}\" of {} is not \"{}\", {}: services could not be compared",
                                hello.cost_model, hello.name, *expected, whose));
    }
  }
  auto stage = state_.join(hello.name, hello.incarnation, clock_.now());
  if (!stage) return refuse(control::Error::EXISTS, "name", stage.error().message);
  return *stage;
}

void Coordinator::joined(allocation::StageId stage) {
  const StageHello& hello = links_->hello(stage);
  ++cost_models_[hello.cost_model];
  spdlog::info("stage {} ({}) at {} has joined", hello.name, hello.program, hello.address);
}

void Coordinator::left(allocation::StageId stage) {
  const auto place = cost_models_.find(links_->hello(stage).cost_model);
  if (place != cost_models_.end() && --place->second == 0) cost_models_.erase(place);
  state_.leave(stage, clock_.now());
  runner_.left();
}

void Coordinator::begin_cycle() {
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
  if (cycle_log_ != nullptr && times.stages > 0) {
    CycleTimes numbered = times;
    numbered.cycle = state_.sequence();
    cycle_log_->add(numbered);
  }
  // Without stages there is nothing to hurry for.
  constexpr Duration kIdle = std::chrono::milliseconds(10);
  const Duration period = times.stages == 0 ? std::max(config_.period, kIdle) : config_.period;
  if (cycle_began_ + period <= clock_.now()) return begin_cycle();
  cycle_timer_.expires_at(cycle_began_ + period);
  cycle_timer_.async_wait([this](std::error_code error) {
    if (!error) begin_cycle();
  });
}

}  // namespace vpfs::coordinator
