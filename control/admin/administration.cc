#include "control/admin/administration.h"

#include <chrono>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "control/admin/job_replies.h"
#include "control/admin/rule_states.h"
#include "control/admin/stats_reply.h"
#include "control/admin/who.h"
#include "control/wire/protocol.h"

namespace vpfs::control {
namespace {

// Sends what was asked for, or why there is none.
template <typename Reply, typename Set>
void deliver(const Answer& answer, std::expected<Reply, Error> outcome, Set&& set) {
  if (!outcome) return answer(std::move(outcome.error()));
  Envelope envelope;
  set(envelope, std::move(*outcome));
  answer(std::move(envelope));
}

Ack ack(std::string text) {
  Ack made;
  made.set_text(std::move(text));
  return made;
}

void send_ack(const Answer& answer, std::expected<Ack, Error> outcome) {
  deliver(answer, std::move(outcome), [](Envelope& to, Ack made) { *to.mutable_ack() = made; });
}

}  // namespace

void Administration::ask(const Envelope& request, const Caller& caller, const Answer& answer) {
  switch (request.body_case()) {
    case Envelope::kRule:
      return deliver(answer, rule(request.rule(), caller), [](Envelope& to, RuleReply reply) {
        *to.mutable_rule_reply() = std::move(reply);
      });
    case Envelope::kJob:
      return deliver(answer, job(request.job(), caller), [](Envelope& to, JobReply reply) {
        *to.mutable_job_reply() = std::move(reply);
      });
    case Envelope::kStats: {
      Envelope reply;
      *reply.mutable_stats_reply() = stats(request.stats().rules(), &caller);
      return answer(std::move(reply));
    }
    case Envelope::kWhy:
      return why(request.why(), caller, answer);
    case Envelope::kStatus: {
      Envelope reply;
      reply.mutable_status_reply()->set_json(owner_.status());
      return answer(std::move(reply));
    }
    case Envelope::kReload:
      return send_ack(answer, reload());
    case Envelope::kDrain:
      return send_ack(answer, drain());
    case Envelope::kBypass:
      return send_ack(answer, bypass(request.bypass(), caller));
    default:
      return answer(make_error(Error::UNSUPPORTED, "", "a stage does not answer this"));
  }
}

void Administration::tick() {
  if (live_.expire(now_())) owner_.use(live_.composed().config);
  apply_bypass();
}

void Administration::use_composed() {
  owner_.use(live_.composed().config);
  apply_bypass();
}

void Administration::apply_bypass() {
  const bool wanted = live_.book().state().bypass.on;
  if (std::exchange(bypassed_, wanted) != wanted) owner_.set_bypass(wanted);
}

Administration::Outcome<stage::Change> Administration::carry_out(stage::BookOperation operation) {
  tick();
  auto change = live_.prepare(std::move(operation));
  if (!change) return change;
  if (auto done = live_.carry_out(*change); !done) return std::unexpected(std::move(done.error()));
  spdlog::info("{}: {}", change->operation.who, stage::command_of(change->operation));
  use_composed();
  return change;
}

Administration::Outcome<Ack> Administration::reload() {
  Result<std::vector<std::string>> changed = owner_.reload();
  if (!changed) return std::unexpected(make_error(Error::INVALID, "", changed.error().message));
  return ack(changed->empty() ? "nothing has changed"
                              : fmt::format("{}", fmt::join(*changed, "\n")));
}

Administration::Outcome<Ack> Administration::drain() {
  owner_.drain();
  return ack("draining: outstanding requests may finish, then the program ends");
}

Administration::Outcome<Ack> Administration::bypass(const Bypass& request, const Caller& caller) {
  stage::SetBypass what = {.on = request.on()};
  const WallTime now = now_();
  if (request.on() && request.for_seconds() > 0) {
    what.until = now + std::chrono::seconds(request.for_seconds());
  }
  const auto change = carry_out({.at = now, .who = caller.name, .what = what});
  if (!change) return std::unexpected(change.error());
  if (!what.on) return ack("bypass is off: requests are scheduled again");
  return ack(what.until
                 ? fmt::format("bypass is on until {:%F %T} UTC: nothing is held", *what.until)
                 : "bypass is on until `bypass off`: nothing is held");
}

StatsReply Administration::stats() {
  return stats(true, nullptr);
}

StatsReply Administration::stats(bool with_rules, const Caller* caller) {
  const StageSnapshot snapshot = reader_.read(owner_.stage());
  const stage::Config& config = live_.composed().config;
  StatsReply reply;
  add_stage(reply, snapshot, config, now_());
  owner_.describe(reply);
  const stage::Bypass& bypass = live_.book().state().bypass;
  if (bypass.until) reply.set_bypass_until_at(bypass.until->time_since_epoch().count());
  if (with_rules) add_rules(*reply.mutable_rules(), live_, snapshot.rules);
  if (caller != nullptr && caller->rights == Rights::own)
    keep_own(reply, own_jobs(config, *caller));
  return reply;
}

void Administration::why(const Why& request, const Caller& caller, const Answer& answer) {
  const Asked asked = read_asked(request.who(), live_.composed().config.names);
  owner_.list_clients([this, asked, caller, answer](std::vector<Client> clients) {
    Envelope reply;
    WhyReply& why = *reply.mutable_why_reply();
    const stage::Config& config = live_.composed().config;
    add_clients(why, std::move(clients), asked);
    StatsReply all = stats(true, nullptr);
    add_context(why, all, list_jobs(caller), asked);
    if (caller.rights == Rights::own) keep_own(why, own_jobs(config, caller));
    answer(std::move(reply));
  });
}

}  // namespace vpfs::control
