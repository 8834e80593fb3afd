#include "control/admin/administration.h"

#include <chrono>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include "control/admin/job_replies.h"
#include "control/admin/rule_states.h"
#include "control/admin/stats_reply.h"
#include "control/admin/time_after.h"
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

Administration::Administration(LiveState& live, StageOwner& owner, ReadWallClock now)
    : live_(live),
      owner_(owner),
      now_(now),
      rules_(live, now,
             {.changed = [this] { use_composed(); },
              .count = [this] { return reader_.read(owner_.stage()).rules; }}) {}

WantedNames Administration::names_of(const Envelope& request, const Caller& caller,
                                     ReadRequest& read) const {
  if (request.has_site()) {
    return live_.file().names == nullptr ? WantedNames() : names_of_site(request.site(), caller);
  }
  if (!request.has_why()) return rules_.names_of(request, caller, &read);
  if (live_.file().names == nullptr || caller.rights == Rights::own) return {};
  const NotedNames noted;
  (void)read_asked(request.why().who(), &noted);
  return noted.wanted();
}

void Administration::ask(const Envelope& request, const Caller& caller, const Answer& answer) {
  ReadRequest read;
  const WantedNames names = names_of(request, caller, read);
  if (names.empty()) return this->answer(request, caller, answer, &read);
  owner_.look_up(names, [this, request, caller, answer](std::optional<std::string> problem) {
    if (problem) return answer(make_error(Error::UNAVAILABLE, "", *problem));
    this->answer(request, caller, answer, nullptr);
  });
}

void Administration::answer(const Envelope& request, const Caller& caller, const Answer& answer,
                            ReadRequest* read) {
  switch (request.body_case()) {
    case Envelope::kRule:
      return deliver(
          answer, rules_.rule(request.rule(), caller, read),
          [](Envelope& to, RuleReply reply) { *to.mutable_rule_reply() = std::move(reply); });
    case Envelope::kJob:
      return deliver(answer, rules_.job(request.job(), caller), [](Envelope& to, JobReply reply) {
        *to.mutable_job_reply() = std::move(reply);
      });
    case Envelope::kStats: {
      Envelope reply;
      *reply.mutable_stats_reply() = stats_of(request.stats(), caller);
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
      return owner_.reload([answer](Result<std::vector<std::string>> changed) {
        if (!changed) return answer(make_error(Error::INVALID, "", changed.error().message));
        answer(ack(changed->empty() ? "nothing has changed"
                                    : fmt::format("{}", fmt::join(*changed, "\n"))));
      });
    case Envelope::kSite:
      return send_ack(answer, site(request.site(), caller));
    case Envelope::kDrain:
      return send_ack(answer, drain());
    case Envelope::kBypass:
      return send_ack(answer, bypass(request.bypass(), caller));
    default:
      return answer(make_error(Error::UNSUPPORTED, "", "a stage does not answer this"));
  }
}

void Administration::tick() {
  (void)rules_.tick();
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

Administration::Outcome<Ack> Administration::drain() {
  owner_.drain();
  return ack("draining: outstanding requests may finish, then the program ends");
}

Administration::Outcome<Ack> Administration::bypass(const Bypass& request, const Caller& caller) {
  stage::SetBypass what = {.on = request.on()};
  const WallTime now = now_();
  if (request.on()) what.until = time_after(now, request.for_seconds());
  const auto change = rules_.carry_out({.at = now, .who = caller.name, .what = what});
  if (!change) return std::unexpected(change.error());
  if (!what.on) return ack("bypass is off: requests are scheduled again");
  return ack(what.until
                 ? fmt::format("bypass is on until {:%F %T} UTC: nothing is held", *what.until)
                 : "bypass is on until `bypass off`: nothing is held");
}

StatsReply Administration::stats() {
  Stats request;
  request.set_rules(true);
  return stats_of(request, {.name = "", .from = "", .rights = Rights::read, .uid = {}});
}

StatsReply Administration::stats_of(const Stats& request, const Caller& caller) {
  if (caller.rights == Rights::own) return own_stats(caller);
  const StageSnapshot snapshot = reader_.read(owner_.stage());
  StatsReply reply;
  add_stage(reply, snapshot, live_.composed().config, now_());
  owner_.describe(reply);
  const stage::Bypass& bypass = live_.book().state().bypass;
  if (bypass.until) reply.set_bypass_until_at(bypass.until->time_since_epoch().count());
  if (request.rules()) add_rules(*reply.mutable_rules(), live_, snapshot.rules);
  return reply;
}

StatsReply Administration::own_stats(const Caller& caller) {
  const WallTime now = now_();
  if (seen_at_ != now) {
    seen_by_others_ = reader_.read(owner_.stage());
    seen_at_ = now;
  }
  const stage::Config& config = live_.composed().config;
  const JobIds own = own_jobs(config, caller);
  StatsReply reply;
  add_totals(reply, seen_by_others_, config, now);
  for (const StageSnapshot::Row& row : seen_by_others_.rows) {
    if (!own.contains(row.jobid)) continue;
    fill(*reply.add_virtual_pfs(), row, config, seen_by_others_.at, now);
  }
  owner_.describe(reply);
  reply.clear_upstream();
  reply.clear_coordinator();
  reply.set_partial(true);
  return reply;
}

void Administration::why(const Why& request, const Caller& caller, const Answer& answer) {
  if (caller.rights == Rights::own) return own_why(request, caller, answer);
  const Asked asked = read_asked(request.who(), live_.composed().config.names);
  owner_.list_clients([this, asked, caller, answer](std::vector<Client> clients) {
    Envelope reply;
    WhyReply& why = *reply.mutable_why_reply();
    add_clients(why, std::move(clients), asked);
    StatsReply all = stats();
    add_context(why, all, rules_.list_jobs(caller), asked);
    answer(std::move(reply));
  });
}

void Administration::own_why(const Why& request, const Caller& caller, const Answer& answer) {
  // Only the caller's own name is known. Others are not looked up: any user may call this.
  Asked asked = read_asked(request.who(), nullptr);
  if (!request.who().empty() && caller.name.starts_with(request.who() + " (")) {
    asked.uid = caller.uid;
  }
  const auto tell = [this, asked, caller, answer] {
    const JobIds own = own_jobs(live_.composed().config, caller);
    Envelope reply;
    WhyReply& why = *reply.mutable_why_reply();
    add_clients(why, clients_of(clients_of_others_, own), asked);
    StatsReply seen = own_stats(caller);
    add_context(why, seen, rules_.list_jobs(caller), asked);
    answer(std::move(reply));
  };
  if (listed_at_ == now_()) return tell();
  owner_.list_clients([this, tell](std::vector<Client> clients) {
    clients_of_others_ = std::move(clients);
    listed_at_ = now_();
    tell();
  });
}

}  // namespace vpfs::control
