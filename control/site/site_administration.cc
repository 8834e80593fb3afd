#include "control/site/site_administration.h"

#include <set>
#include <utility>
#include <vector>

#include <asio/post.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/log/log.h"
#include "base/result.h"
#include "base/system_clock.h"
#include "base/version.h"
#include "control/coordinator/config/certificates.h"
#include "control/metrics/http_source.h"
#include "control/site/site_message.h"
#include "control/site/site_metrics.h"
#include "control/site/site_rules.h"
#include "control/site/site_status.h"
#include "control/wire/protocol.h"
#include "control/wire/requests.h"

namespace vpfs::coordinator {
namespace {

using control::Answer;
using control::Caller;
using control::Envelope;
using control::make_error;

constexpr Duration kTick = std::chrono::seconds(1);
constexpr std::uint64_t kTicksBetweenSweeps = 10;
// For the answers of stages to a change of the rules.
constexpr Duration kStagesAnswerWithin = std::chrono::seconds(1);
// So many names of the rules in a store are looked up at once, and again after so long.
constexpr std::size_t kNamesAtOnce = 1000;
constexpr Duration kLookUpAgain = std::chrono::seconds(10);
constexpr const char* kMayBeOld =
    "the store has not said in time that this coordinator still leads: recent changes may be "
    "missing here";

control::Hello make_hello(const std::string& name, std::uint64_t incarnation) {
  control::Hello hello;
  hello.set_role(control::Hello::COORDINATOR);
  hello.set_name(name);
  hello.set_incarnation(incarnation);
  for (const char* const each : {"rules", "jobs", "forward"}) hello.add_capabilities(each);
  hello.set_program("vpfs-coordinator " + std::string(version()));
  return hello;
}

bool changes(const Envelope& request) {
  return control::needed_right(request) == control::Rights::change;
}

// Its parent has the rules of an aggregator.
std::optional<control::Error> not_here(const Config& config) {
  if (!config.parent) return std::nullopt;
  return make_error(control::Error::UNAVAILABLE, "parent",
                    fmt::format("this is an aggregator: the rules and jobs are those of its "
                                "parent at {}",
                                control::to_string(config.parent->addresses)));
}

control::Error leads_no_more() {
  return make_error(control::Error::UNAVAILABLE, "leader", "this coordinator no longer leads");
}

void take_some(std::set<std::string>& from, std::set<std::string>& to, std::size_t& most) {
  for (; most > 0 && !from.empty(); --most) to.insert(from.extract(from.begin()));
}

// Takes names out, and returns them.
control::WantedNames take_some(control::WantedNames& from, std::size_t most) {
  control::WantedNames some;
  take_some(from.users, some.users, most);
  take_some(from.groups, some.groups, most);
  take_some(from.hosts, some.hosts, most);
  return some;
}

// Answers with `reply`, and with what stages say of the change.
SiteStages::Told with_warnings(Envelope reply, const Answer& answer) {
  return [reply = std::move(reply), answer](const std::vector<std::string>& lines) {
    Envelope told = reply;
    for (const std::string& line : lines) {
      if (told.has_rule_reply()) told.mutable_rule_reply()->add_warnings(line);
      if (told.has_job_reply()) told.mutable_job_reply()->add_warnings(line);
    }
    answer(std::move(told));
  };
}

}  // namespace

SiteAdministration::SiteAdministration(const Parts& parts)
    : context_(parts.context),
      clock_(parts.clock),
      config_(parts.config),
      state_(parts.state),
      links_(parts.links),
      parent_(parts.parent),
      started_(wall_clock_now()),
      certificate_end_(first_certificate_end(config_)),
      hello_(make_hello(config_.name, parts.incarnation)),
      names_(parts.databases == nullptr ? control::HostNames()
                                        : control::HostNames(*parts.databases)),
      lookups_(context_, clock_, names_),
      grammar_(site_grammar(&names_)),
      store_(parts.store),
      store_problem_(parts.store_problem),
      own_part_(parts.own_part),
      reads_(context_, clock_, parts.confirm, SiteReads::Limits()),
      jobs_(state_),
      stages_(context_, clock_),
      forward_(stages_, links_),
      timer_(context_),
      names_timer_(context_) {
  stages_.use(links_);
  stages_.lead([this] { return state_.term(); }, parts.may_send);
  if (allocation::find_policy(config_.policy)->needs_elsewhere) totals_.emplace();
}

Result<std::unique_ptr<SiteAdministration>> SiteAdministration::open(
    const Parts& parts, const control::StateStore::Loaded& records) {
  std::unique_ptr<SiteAdministration> site(new SiteAdministration(parts));
  VPFS_TRY(site->load(records, parts.lost));
  VPFS_TRY(site->open_ports());
  return site;
}

// Looks no name up: the office is not confirmed yet, and would be lost while a name service is
// silent.
Result<std::unique_ptr<control::LiveState>> SiteAdministration::replay(
    const control::StateStore::Loaded& records, std::vector<std::string>& notes) {
  const control::NotedNames noted(names_);
  auto live = control::LiveState::replay(records, grammar_, wall_clock_now(), notes);
  unknown_names_ = noted.wanted();
  return live;
}

Result<void> SiteAdministration::load(const control::StateStore::Loaded& records,
                                      std::function<void()> lost) {
  std::vector<std::string> notes;
  auto live = replay(records, notes);
  if (!live) {
    return fail((config_.store ? "store: " : "journal: ") + live.error().message,
                live.error().code);
  }
  live_ = std::move(*live);
  for (const std::string& note : notes) log_answer(spdlog::level::warn, note);
  rules_ = std::make_unique<control::RuleAdministration>(*live_, names_, wall_clock_now);
  SiteBook::Limits limits;
  limits.most_bytes -= config_.name.size();  // which the message has, too
  book_ = std::make_unique<SiteBook>(context_, clock_, store_, *live_, *rules_, live_->is_behind(),
                                     std::move(lost), limits);
  use_composed();
  return {};
}

Result<void> SiteAdministration::open_ports() {
  control::HttpSource source;
  source.not_ready = [] { return std::string(); };
  source.metrics = [this](std::function<void(control::HttpSource::MakeText)> give) {
    asio::post(context_, [this, give = std::move(give)] {
      auto text = [numbers = numbers(), most = config_.http.most_virtual_pfs] {
        return site_metrics(numbers, std::string(version()), most);
      };
      if (own_part_ != nullptr) return own_part_->give_metrics(std::move(text), give);
      give(std::move(text));
    });
  };
  source.ask = control::ask_of(*this);
  source.is_site = true;
  auto http = control::HttpPorts::open(config_.http, config_.control, source,
                                       std::string(version()), clock_);
  VPFS_TRY(http);
  http_ = std::move(*http);
  if (!config_.control.enabled()) return {};
  auto port = control::Port::open(config_.control, *this, clock_);
  VPFS_TRY(port);
  port_ = std::move(*port);
  return {};
}

void SiteAdministration::reopen_audit() {
  if (port_ != nullptr) port_->reopen_audit();
}

void SiteAdministration::start() {
  if (port_ != nullptr) port_->start();
  tick();
  if (!unknown_names_.empty()) look_names_up();
}

void SiteAdministration::stop() {
  if (std::exchange(is_stopped_, true)) return;
  if (book_ != nullptr) book_->stop();
  reads_.stop();
  stages_.stop();
  timer_.cancel();
  names_timer_.cancel();
  if (port_ != nullptr) port_->stop();
  http_.close();
}

void SiteAdministration::tick() {
  book_->tick();
  put_into_force();
  stages_.tick();
  if (++ticks_ % kTicksBetweenSweeps == 0) jobs_.sweep();
  timer_.expires_after(kTick);
  timer_.async_wait([this](std::error_code error) {
    if (!error && !is_stopped_) tick();
  });
}

void SiteAdministration::put_into_force() {
  if (rules_->take_change()) use_composed();
}

void SiteAdministration::use_composed() {
  numbers_.forget();
  status_.forget();
  jobs_.use(entitlements_of(config_.jobs, live_->composed().config));
  // An aggregator's stages keep what they have until its parent has spoken.
  if (config_.parent) return;
  (void)stages_.set(to_site(*live_, config_.name));
}

// Until all are known, conditions have made-up addresses and numbers here. Stages are told the
// names, and look them up by themselves.
void SiteAdministration::look_names_up() {
  control::WantedNames some = take_some(unknown_names_, kNamesAtOnce);
  lookups_.fetch(some, [this, some](const std::optional<std::string>& problem) mutable {
    if (is_stopped_) return;
    if (!problem) return unknown_names_.empty() ? read_again() : look_names_up();
    spdlog::warn("names in the site's rules are not known yet: {}", *problem);
    unknown_names_.merge(std::move(some));
    names_timer_.expires_after(kLookUpAgain);
    names_timer_.async_wait([this](std::error_code error) {
      if (!error && !is_stopped_) look_names_up();
    });
  });
}

void SiteAdministration::read_again() {
  const std::vector<stage::Suspended> before = live_->composed().suspended;
  live_->take_on(grammar_);
  for (const auto& each : stage::newly_suspended(before, live_->composed().suspended)) {
    log_answer(spdlog::level::warn, control::note_of(each));
  }
  use_composed();
}

void SiteAdministration::take_on(const control::Site& of_parent, SiteStages::Told done) {
  (void)stages_.set(of_parent);
  stages_.when_answered(kStagesAnswerWithin, std::move(done));
}

void SiteAdministration::ask(Envelope request, const Caller& caller, Answer answer) {
  asio::post(context_, [this, request = std::move(request), caller, answer = std::move(answer)] {
    handle(request, caller, answer);
  });
}

void SiteAdministration::handle(const Envelope& request, const Caller& caller,
                                const Answer& answer) {
  control::ReadRequest read;
  const control::WantedNames wanted = rules_->names_of(request, caller, read);
  if (wanted.empty()) return this->answer(request, caller, answer, read);
  lookups_.fetch(wanted, [this, request, caller, answer](std::optional<std::string> problem) {
    if (problem) return answer(make_error(control::Error::UNAVAILABLE, "", *problem));
    control::ReadRequest nothing;
    this->answer(request, caller, answer, nothing);
  });
}

void SiteAdministration::answer(const Envelope& request, const Caller& caller, const Answer& answer,
                                control::ReadRequest& read) {
  switch (request.body_case()) {
    case Envelope::kRule:
      return answer_rule(request, caller, answer, read);
    case Envelope::kJob:
      return answer_job(request, caller, answer);
    case Envelope::kForward:
      return forward_.forward(request.forward(), caller,
                              [answer](Envelope reply) { answer(std::move(reply)); });
    case Envelope::kStatus: {
      if (own_part_ != nullptr) return own_part_->answer_status(status(), answer);
      Envelope reply;
      reply.mutable_status_reply()->set_json(status());
      return answer(std::move(reply));
    }
    case Envelope::kStats: {
      if (caller.rights == control::Rights::own) {
        return answer(control::refusal(caller, control::Rights::read));
      }
      Envelope reply;
      *reply.mutable_stats_reply() = stats_of(numbers(), *live_, request.stats().rules());
      return answer(std::move(reply));
    }
    default:
      return answer(
          make_error(control::Error::UNSUPPORTED, "",
                     fmt::format("a coordinator has no answer to {}: forward it to stages",
                                 control::body_name(request))));
  }
}

void SiteAdministration::answer_rule(const Envelope& request, const Caller& caller,
                                     const Answer& answer, control::ReadRequest& read) {
  if (const auto why = changes(request) ? not_here(config_) : std::nullopt) return answer(*why);
  if (control::RuleAdministration::changes_book(request)) {
    return change(request, caller, answer, read);
  }
  reads_.ask([this, request, caller, answer, number = live_->book().state().number,
              read = std::make_shared<control::ReadRequest>(std::move(read))](
                 SiteReads::Standing standing) {
    // What was read counts for the book as it was then.
    if (number != live_->book().state().number) *read = {};
    tell_rules(request, caller, answer, *read, standing);
  });
}

void SiteAdministration::tell_rules(const Envelope& request, const Caller& caller,
                                    const Answer& answer, control::ReadRequest& read,
                                    SiteReads::Standing standing) {
  if (standing == SiteReads::Standing::lost) return answer(leads_no_more());
  auto outcome = rules_->rule(request.rule(), caller, read);
  if (!outcome) return answer(std::move(outcome.error()));
  Envelope reply;
  *reply.mutable_rule_reply() = std::move(*outcome);
  if (standing == SiteReads::Standing::unknown) {
    reply.mutable_rule_reply()->add_warnings(kMayBeOld);
  }
  if (request.rule().action() != control::Rule::LIST) return answer(std::move(reply));
  add_lists(std::move(reply), request, caller, answer);
}

void SiteAdministration::add_lists(Envelope reply, const Envelope& request, const Caller& caller,
                                   const Answer& answer) {
  control::Forward question;
  *question.mutable_request() = request;
  question.mutable_request()->clear_id();
  forward_.forward(question, caller, [reply = std::move(reply), answer](const Envelope& came) {
    Envelope told = reply;
    control::RuleReply& list = *told.mutable_rule_reply();
    if (came.has_forward_reply()) {
      add_lists_of_stages(list, came.forward_reply());
    } else {
      list.add_warnings("hits of stages are not counted: " + control::describe(came.error()));
    }
    answer(std::move(told));
  });
}

void SiteAdministration::answer_job(const Envelope& request, const Caller& caller,
                                    const Answer& answer) {
  if (const auto why = changes(request) ? not_here(config_) : std::nullopt) return answer(*why);
  control::ReadRequest nothing;
  if (changes(request)) return change(request, caller, answer, nothing);
  reads_.ask([this, caller, answer](SiteReads::Standing standing) {
    if (standing == SiteReads::Standing::lost) return answer(leads_no_more());
    Envelope reply;
    *reply.mutable_job_reply() = rules_->list_jobs(caller);
    if (standing == SiteReads::Standing::unknown) {
      reply.mutable_job_reply()->add_warnings(kMayBeOld);
    }
    answer(std::move(reply));
  });
}

void SiteAdministration::change(const Envelope& request, const Caller& caller, const Answer& answer,
                                control::ReadRequest& read) {
  book_->change(request, caller, std::move(read),
                [this, answer](std::expected<Envelope, control::Error> outcome) {
                  put_into_force();
                  if (!outcome) return answer(std::move(outcome.error()));
                  stages_.when_answered(kStagesAnswerWithin,
                                        with_warnings(std::move(*outcome), answer));
                });
}

std::unique_ptr<control::Link> SiteAdministration::make_link(const Caller& /*caller*/) {
  return std::make_unique<control::Link>();
}

void SiteAdministration::cycle(const control::Cycle& /*cycle*/, control::Link& /*link*/,
                               control::CycleAnswer& answer) {
  answer.report.set_applied(false);
  *answer.report.mutable_refused() =
      make_error(control::Error::UNSUPPORTED, "", "this port is for administrators");
}

void SiteAdministration::finished(const CycleTimes& times) {
  cycles_.add(times);
  tell_whether_divided();
  if (!totals_) return;
  const auto name_of = [this](std::size_t row) {
    const allocation::StageStatus* const stage = state_.stage_of(row);
    return stage == nullptr ? std::string_view() : stage->name;
  };
  totals_->look(state_.pairs(), state_.job_names(), name_of, clock_.now());
}

void SiteAdministration::tell_whether_divided() {
  const std::string& problem = state_.policy_problem();
  if (problem.empty() == divides_) return;
  divides_ = problem.empty();
  if (divides_) return spdlog::info("the policy {} divides again", config_.policy);
  spdlog::warn("the policy {} does not divide, and all limits stay as they are: {}", config_.policy,
               problem);
}

const SiteNumbers& SiteAdministration::numbers() {
  return numbers_.get(clock_, [this] { return make_numbers(); });
}

SiteNumbers SiteAdministration::make_numbers() {
  SiteNumbers numbers;
  numbers.name = config_.name;
  numbers.policy = config_.policy;
  numbers.policy_problem = state_.policy_problem();
  numbers.term = state_.term();
  numbers.sequence = state_.sequence();
  numbers.started = started_;
  numbers.capacity = config_.capacity;
  numbers.in_force = state_.in_force();
  numbers.cycles = cycles_.summary();
  numbers.links = links_.counters();
  numbers.store_problem = store_problem_();
  numbers.certificate_end = certificate_end_;
  if (parent_ != nullptr) numbers.parent = parent_->status();
  add_stages(numbers, state_, stages_);
  add_jobs(numbers, state_);
  if (totals_) add_totals(numbers, *totals_);
  std::map<std::string, GrowingSums::Counts> counts;
  for (const SiteNumbers::Stage& stage : numbers.stages) {
    counts[stage.name] = {stage.lies, stage.refused_answers, stage.not_applied};
  }
  sums_.add(counts);
  numbers.lies = sums_.sums()[0];
  numbers.refused_answers = sums_.sums()[1];
  numbers.not_applied = sums_.sums()[2];
  return numbers;
}

const std::string& SiteAdministration::status() {
  return status_.get(clock_, [this] { return status_json(numbers(), config_, *live_); });
}

}  // namespace vpfs::coordinator
