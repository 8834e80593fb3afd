#include "control/coordinator/coordinator.h"

#include <algorithm>
#include <utility>

#include <asio/post.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/result.h"
#include "base/version.h"
#include "control/allocation/allocation_policy.h"
#include "control/coordinator/members/messages.h"
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

constexpr const char* kAnotherLeads = "another coordinator leads";
constexpr Duration kCutOff = std::chrono::seconds(2);
constexpr Duration kIdle = std::chrono::milliseconds(10);
constexpr std::size_t kJoinsTold = 20;
constexpr Duration kBusy = std::chrono::milliseconds(1);

}  // namespace

Result<std::unique_ptr<Coordinator>> Coordinator::make(const Parts& parts) {
  std::unique_ptr<Coordinator> coordinator(new Coordinator(parts));
  VPFS_TRY(coordinator->open(parts));
  return coordinator;
}

Coordinator::Coordinator(const Parts& parts)
    : context_(parts.context),
      config_(parts.config),
      clock_(parts.clock),
      incarnation_(parts.incarnation),
      policy_(*allocation::find_policy(config_.policy)),
      cycle_timer_(context_),
      state_(cycle_settings(config_, policy_, parts.clear_from), make_policy(), parts.term),
      runner_(context_, clock_, state_),
      later_term_(context_, parts.later_term_after, parts.begin_later_term),
      part_(parts.part),
      reached_at_(clock_.now()),
      reach_timer_(context_) {
  if (!parts.leads_members) return;
  views_.emplace(context_, clock_, parts.term,
                 [over = parts.over] { over("no number is left for the views of its members"); });
  views_->set_cost_model(config_.cost_model);
  if (!parts.gone_member.empty()) views_->is_gone(parts.gone_member);
}

Result<void> Coordinator::open(const Parts& parts) {
  if (!parts.options.cycle_log.empty()) {
    auto log = CycleLog::open(parts.options.cycle_log);
    if (!log) return fail("--cycle-log: " + log.error().message, log.error().code);
    cycle_log_ = std::move(*log);
  }
  auto links = StageLinks::open(context_, clock_, config_, *this, parts.options.links);
  VPFS_TRY(links);
  links_ = std::move(*links);
  runner_.use(*links_);
  runner_.ask_before(parts.may_send);
  if (part_) serve_part();
  if (views_) views_->use(*links_);
  if (config_.parent) {
    uplink_.emplace(state_, *given_);
    auto parent =
        ParentLink::make(context_, clock_, config_, links_->room(), *uplink_, runner_, *this);
    VPFS_TRY(parent);
    parent_ = std::move(*parent);
  }
  auto site = SiteAdministration::open({.context = context_,
                                        .clock = clock_,
                                        .config = config_,
                                        .state = state_,
                                        .links = *links_,
                                        .parent = parent_.get(),
                                        .incarnation = incarnation_,
                                        .store = parts.store,
                                        .lost = [over = parts.over] { over(kAnotherLeads); },
                                        .store_problem = parts.store_problem,
                                        .confirm = parts.confirm,
                                        .may_send = parts.may_send,
                                        .own_part = parts.own_part,
                                        .databases = parts.databases},
                                       parts.records);
  VPFS_TRY(site);
  site_ = std::move(*site);
  return {};
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

Coordinator::~Coordinator() {
  stop();
}

void Coordinator::start() {
  links_->start();
  site_->start();
  if (parent_ != nullptr) parent_->start();
  if (part_) look_whether_cut_off();
  begin_cycle();
}

void Coordinator::stop() {
  if (std::exchange(is_stopped_, true)) return;
  runner_.stop();
  cycle_timer_.cancel();
  reach_timer_.cancel();
  later_term_.stop();
  if (views_) views_->stop();
  if (parent_ != nullptr) parent_->stop();
  if (site_ != nullptr) site_->stop();
  if (links_ != nullptr) links_->stop();
}

std::expected<allocation::StageId, control::Error> Coordinator::admit(const StageHello& hello) {
  if (is_led_by_another(hello)) return std::unexpected(need_later_term(hello));
  if (auto why = why_not(hello)) return std::unexpected(std::move(*why));
  if (auto why = compare_costs(hello)) return std::unexpected(std::move(*why));
  auto stage = state_.join(hello.name, hello.incarnation, clock_.now(),
                           {.caps = hello.takes_caps, .metadata_caps = hello.takes_metadata_caps});
  if (!stage) {
    return std::unexpected(make_error(control::Error::EXISTS, "name", stage.error().message));
  }
  return *stage;
}

bool Coordinator::is_led_by_another(const StageHello& hello) const {
  if (hello.term > state_.term()) return true;
  // The terms of members are their leader's.
  return hello.term == state_.term() && !part_ && !led_.contains(hello.incarnation);
}

control::Error Coordinator::need_later_term(const StageHello& hello) {
  const std::string problem = fmt::format(
      "{} has applied cycles of term {}{}, and this coordinator has term {}", hello.name,
      hello.term, hello.term == state_.term() ? " of another one" : "", state_.term());
  if (later_term_.may_begin() && hello.term < members::kLargestFirstTerm) {
    later_term_.need_above(hello.term, hello.name);
    return make_error(control::Error::OUTDATED, "term", problem + ": it begins a later one");
  }
  return make_error(
      control::Error::OUTDATED, "term",
      fmt::format("{}: another one leads, or has led (--term {} begins with a later one)", problem,
                  hello.term + 1));
}

std::optional<control::Error> Coordinator::why_not(const StageHello& hello) const {
  if (views_ && hello.member != nullptr &&
      hello.member->view.epoch() >= state_.term() + members::kEpochsOfATerm) {
    return make_error(
        control::Error::OUTDATED, "view",
        fmt::format("{} has the view {}, which is later than this term, {}: --term of "
                    "the one that leads has to be above it",
                    hello.name, hello.member->view.epoch(), state_.term()));
  }
  if (views_ && hello.member == nullptr) {
    return make_error(control::Error::INVALID, "role",
                      "only members of this site may dial here: stages have a port of their own");
  }
  if (policy_.needs_elsewhere && !hello.takes_elsewhere) {
    return make_error(
        control::Error::UNSUPPORTED, "capabilities",
        fmt::format("the policy {} needs a scheduler that counts service elsewhere, such "
                    "as sfq: {} has none",
                    policy_.name, hello.name));
  }
  if (policy_.needs_caps && !hello.takes_caps) {
    return make_error(control::Error::UNSUPPORTED, "capabilities",
                      fmt::format("the policy {} needs a scheduler that can cap, such as sfq or "
                                  "tbf: {} has none",
                                  policy_.name, hello.name));
  }
  return std::nullopt;
}

std::optional<control::Error> Coordinator::compare_costs(const StageHello& hello) const {
  if (!policy_.needs_elsewhere) return std::nullopt;
  // Its leader tells a member what its stages have to call their costs.
  if (views_ && hello.member != nullptr) return std::nullopt;
  const std::string* expected = given_cost_model();
  std::string whose = config_.cost_model.empty()
                          ? "that of the site's stages (cost_model of the coordinators' "
                            "configuration decides)"
                          : "the coordinator's cost_model";
  if (expected == nullptr) {
    expected = common_cost_model();
    if (expected == nullptr) return std::nullopt;
    const std::size_t stages = cost_models_.at(*expected);
    whose = fmt::format("that of {} connected stage{}", stages, stages == 1 ? "" : "s");
  }
  if (*expected == hello.cost_model) return std::nullopt;
  return make_error(control::Error::INVALID, "cost_model",
                    fmt::format("\"{}\" of {} is not \"{}\", {}: services could not be compared",
                                hello.cost_model, hello.name, *expected, whose));
}

const std::string* Coordinator::given_cost_model() const {
  if (!config_.cost_model.empty()) return &config_.cost_model;
  if (part_ && !part_->cost_model().empty()) return &part_->cost_model();
  if (views_ && !views_->cost_model().empty()) return &views_->cost_model();
  return nullptr;
}

const std::string* Coordinator::common_cost_model() const {
  const auto most =
      std::ranges::max_element(cost_models_, {}, [](const auto& each) { return each.second; });
  return most == cost_models_.end() ? nullptr : &most->first;
}

std::optional<control::Hello> Coordinator::hello() const {
  // A member says what its stages do, not what it was told: else no leader would ever hear of
  // others.
  const std::string* cost_model = part_ ? nullptr : given_cost_model();
  if (cost_model == nullptr) cost_model = common_cost_model();
  if (policy_.needs_elsewhere && cost_model == nullptr && !part_) return std::nullopt;
  control::Hello hello;
  hello.set_version(control::Versions().newest);
  hello.set_least(control::Versions().least);
  hello.set_role(control::Hello::STAGE);
  hello.set_name(part_ ? part_->own().name : config_.name);
  hello.set_incarnation(incarnation_);
  for (const char* const each :
       {"aggregator", "caps", "metadata_caps", "elsewhere", "site", "forward_as"}) {
    hello.add_capabilities(each);
  }
  if (cost_model != nullptr) hello.set_cost_model(*cost_model);
  hello.set_program("vpfs-coordinator " + std::string(version()));
  if (!part_) return hello;
  hello.add_capabilities(std::string(control::kMember));
  *hello.mutable_view() = to_message(part_->view());
  for (auto& each : *hello.mutable_view()->mutable_members()) each.clear_stage_addresses();
  const std::vector<std::string>& addresses = part_->own().stage_addresses;
  hello.mutable_stage_addresses()->Add(addresses.begin(), addresses.end());
  return hello;
}

std::string Coordinator::cost_model_to_tell() const {
  if (!part_) return "";
  const std::string* const cost_model = common_cost_model();
  return cost_model == nullptr ? "" : *cost_model;
}

// A round of the parent's may be under way, or begin right after this.
void Coordinator::led(bool is_led) {
  if (!is_led) begin_later(clock_.now());
}

void Coordinator::ask(const control::Envelope& request, ParentLink::Done done) {
  if (request.has_member_view() && part_) {
    // A round takes messages between those that it sends, and its term must not change meanwhile.
    return asio::post(context_, [this, told = request.member_view(), done = std::move(done)] {
      if (!is_stopped_) take_view(told, done);
    });
  }
  if (request.has_site()) {
    const std::uint64_t known = std::max(parent_->term(), site_term_);
    if (auto why = control::why_outdated(request.site(), known)) {
      control::Envelope answer;
      *answer.mutable_error() = std::move(*why);
      return done(std::move(answer));
    }
    site_term_ = std::max(site_term_, request.site().term());
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

void Coordinator::serve_part() {
  links_->serve([this](const std::string& stage, StageLinks::Comes comes) {
    return part_->why_not(stage, comes == StageLinks::Comes::by_itself);
  });
}

void Coordinator::follow(const std::vector<control::PortAddress>& leader) {
  if (!std::exchange(has_leader_, true)) reached_at_ = clock_.now();
  parent_->follow(leader);
}

void Coordinator::look_whether_cut_off() {
  const TimePoint now = clock_.now();
  const bool is_reached = parent_->is_connected() || parent_->is_led() || !has_leader_;
  if (is_reached) reached_at_ = now;
  const bool is_cut_off = now - reached_at_ >= kCutOff;
  if (is_cut_off != part_->is_cut_off()) {
    part_->set_cut_off(is_cut_off);
    spdlog::info("this member {} the one that leads", is_cut_off ? "does not reach" : "reaches");
    serve_part();
  }
  reach_timer_.expires_after(kCutOff / 8);
  reach_timer_.async_wait([this](std::error_code error) {
    if (!error && !is_stopped_) look_whether_cut_off();
  });
}

void Coordinator::take_view(const control::MemberView& told, const ParentLink::Done& done) {
  control::Envelope answer;
  const std::uint64_t epoch = part_->view().epoch;
  if (auto why = part_->take(told)) {
    *answer.mutable_error() = std::move(*why);
    return done(std::move(answer));
  }
  if (part_->view().epoch > state_.term()) state_.set_term(part_->view().epoch);
  serve_part();
  if (const std::string* const model = given_cost_model(); model != nullptr) {
    links_->disconnect_if([model](const StageHello& each) { return each.cost_model != *model; },
                          "its cost model is not that of the site's stages");
  }
  if (part_->view().epoch != epoch) {
    const std::size_t members = part_->view().members.size();
    spdlog::info("view {} of {} member{}: this one {}", part_->view().epoch, members,
                 members == 1 ? "" : "s",
                 part_->takes_part() ? "serves its part of the stages" : "is not among them");
  }
  answer.mutable_ack();
  done(std::move(answer));
}

void Coordinator::joined(allocation::StageId stage) {
  const StageHello& hello = links_->hello(stage);
  led_.joined(hello.incarnation);
  if (!hello.cost_model.empty()) ++cost_models_[hello.cost_model];
  if (views_) views_->joined(stage, hello);
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
  led_.left(links_->hello(stage).incarnation, links_->was_sent_cycle(stage));
  const auto place = cost_models_.find(links_->hello(stage).cost_model);
  if (place != cost_models_.end() && --place->second == 0) cost_models_.erase(place);
  if (views_) views_->left(stage, links_->hello(stage));
  site_->left(stage);
  state_.leave(stage, clock_.now());
  runner_.left();
}

void Coordinator::begin_cycle() {
  if (is_stopped_) return;
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
