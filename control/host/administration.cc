#include "control/host/administration.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/joined.h"
#include "base/result.h"
#include "control/admin/job_replies.h"
#include "control/admin/jobs_with_io.h"
#include "control/admin/rule_states.h"
#include "control/admin/stats_reply.h"
#include "control/admin/time_after.h"
#include "control/admin/who.h"
#include "control/wire/protocol.h"

namespace vpfs::control {
namespace {

// How often it is noted which clients are there: all connections are read for that.
constexpr Duration kNoted = std::chrono::seconds(30);

// How often it is tried to write a journal that lacks something.
constexpr Duration kBetweenJournals = std::chrono::seconds(10);
constexpr Duration kBetweenLookUps = std::chrono::seconds(30);

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

// Whether a job of the past was the caller's: it is registered now, or was then.
bool is_of(const std::string& jobid, std::optional<std::uint32_t> job_uid, const JobIds& own,
           const Caller& caller) {
  return !jobid.empty() && (own.contains(jobid) || (job_uid && job_uid == caller.uid));
}

}  // namespace

Administration::Administration(Parts parts)
    : live_(parts.live),
      gate_(parts.gate),
      program_(parts.program),
      names_(parts.names),
      look_up_(std::move(parts.look_up)),
      clock_(parts.clock),
      now_(parts.now),
      term_(std::move(parts.term)),
      rules_(live_, names_, now_),
      past_(std::move(parts.history)),
      recordings_(gate_) {}

WantedNames Administration::names_of(const Envelope& request, const Caller& caller,
                                     ReadRequest& read) const {
  if (request.has_site()) {
    if (live_.file().names == nullptr) return {};
    return names_of_site(request.site(), caller, read);
  }
  if (!request.has_why()) return rules_.names_of(request, caller, read);
  return caller.rights == Rights::own ? WantedNames() : names_asked(request.why().who());
}

WantedNames Administration::names_asked(const std::string& who) const {
  if (live_.file().names == nullptr) return {};
  const NotedNames noted(names_);
  (void)read_asked(who, &names_);
  return noted.wanted();
}

void Administration::ask(const Envelope& request, const Caller& caller, const Answer& answer) {
  if (request.has_site()) {
    if (auto taken = site_arrived(request.site()); !taken) return answer(std::move(taken.error()));
  }
  ReadRequest read;
  const WantedNames names = names_of(request, caller, read);
  if (names.empty()) return this->answer(request, caller, answer, read);
  const auto what = request.has_why() ? NameLookups::For::question : NameLookups::For::change;
  look_up_(names, what,
           [this, request, caller, answer,
            site = last_site_](const std::optional<std::string>& problem) {
             if (request.has_site()) {
               if (auto why = why_outdated(request.site(), site)) return answer(std::move(*why));
             }
             if (problem) return answer(make_error(Error::UNAVAILABLE, "", *problem));
             ReadRequest nothing;
             this->answer(request, caller, answer, nothing);
           });
}

void Administration::answer(const Envelope& request, const Caller& caller, const Answer& answer,
                            ReadRequest& read) {
  switch (request.body_case()) {
    case Envelope::kRule:
      return deliver(
          answer, in_force(rule(request.rule(), caller, read)),
          [](Envelope& to, RuleReply reply) { *to.mutable_rule_reply() = std::move(reply); });
    case Envelope::kJob:
      return deliver(
          answer, in_force(rules_.job(request.job(), caller)),
          [](Envelope& to, JobReply reply) { *to.mutable_job_reply() = std::move(reply); });
    case Envelope::kStats: {
      Envelope reply;
      *reply.mutable_stats_reply() = stats_of(request.stats(), caller);
      return answer(std::move(reply));
    }
    case Envelope::kWhy:
      return why(request.why(), caller, answer);
    case Envelope::kPast:
      return past(request.past(), caller, answer);
    case Envelope::kSeries:
      return deliver(
          answer, past_.series(request.series(), now_()),
          [](Envelope& to, SeriesReply reply) { *to.mutable_series_reply() = std::move(reply); });
    case Envelope::kLedger:
      return deliver(answer, ledger(request.ledger(), caller), [](Envelope& to, LedgerReply reply) {
        *to.mutable_ledger_reply() = std::move(reply);
      });
    case Envelope::kRecord:
      return deliver(
          answer, recordings_.answer(request.record(), clock_.now(), now_()),
          [](Envelope& to, RecordReply reply) { *to.mutable_record_reply() = std::move(reply); });
    case Envelope::kSite:
      return send_ack(answer, in_force(site(request.site(), caller, read)));
    case Envelope::kBypass:
      return send_ack(answer, in_force(bypass(request.bypass(), caller)));
    default:
      return answer(make_error(Error::UNSUPPORTED, "", "a stage does not answer this"));
  }
}

void Administration::tick() {
  (void)rules_.tick();
  keep_book();
  look_at_suspended();
  recordings_.tick(clock_.now());
  put_into_force();
  write_history();
  note_clients();
}

// A bypass is carried out without the journal, and what is due ends without it.
void Administration::keep_book() {
  const TimePoint now = clock_.now();
  if (!live_.is_behind() || now < keep_again_at_) return;
  keep_again_at_ = now + kBetweenJournals;
  live_.catch_up();
  if (!live_.is_behind()) spdlog::info("control.journal: it has all live rules again");
}

// A name service that was not there at the start may know by now what live rules are about.
void Administration::look_at_suspended() {
  const TimePoint now = clock_.now();
  const bool has_any = !live_.composed().suspended.empty() && live_.file().names != nullptr;
  if (!has_any || now < look_again_at_) return;
  look_again_at_ = now + kBetweenLookUps;
  WantedNames wanted;
  {
    const NotedNames noted(names_);
    (void)live_.fits(live_.file());
    wanted = noted.wanted();
  }
  if (wanted.empty()) return;
  look_up_(wanted, NameLookups::For::change, [this](const std::optional<std::string>& problem) {
    if (!problem) read_live_rules_again();
  });
}

void Administration::read_live_rules_again() {
  const std::size_t before = live_.composed().suspended.size();
  live_.take_on(live_.file());
  const std::size_t after = live_.composed().suspended.size();
  if (after >= before) return;
  gate_.reconfigure(live_.composed().config, clock_.now());
  spdlog::info("live rules: {} of {} that were not in force are again", before - after, before);
}

void Administration::note_clients() {
  const TimePoint now = clock_.now();
  if (noted_at_ == TimePoint()) noted_at_ = now;  // no client is there yet
  if (now - noted_at_ < kNoted) return;
  noted_at_ = now;
  program_.list_clients(
      [this](std::vector<Client> clients) { past_clients_.note(clients, now_()); });
}

void Administration::finish() {
  write_history();
  past_.finish();
}

std::string Administration::history() const {
  const stage::History& all = past_.history();
  return history_record(all, all.minutes());
}

void Administration::write_history() {
  past_.tick(gate_, clock_.now(), now_(), live_.book().state().version, live_.composed().config);
}

void Administration::put_into_force() {
  if (rules_.take_change()) gate_.reconfigure(live_.composed().config, clock_.now());
  const bool bypass = live_.book().state().bypass.on;
  if (std::exchange(bypassed_, bypass) != bypass) gate_.bypass(bypass, clock_.now());
}

Administration::Outcome<RuleReply> Administration::rule(const Rule& request, const Caller& caller,
                                                        ReadRequest& read) {
  if (request.action() == Rule::LIST) return rules_.list_rules(snapshot().rules);
  return rules_.rule(request, caller, read);
}

Administration::Outcome<Ack> Administration::bypass(const Bypass& request, const Caller& caller) {
  stage::SetBypass what = {.on = request.on()};
  const WallTime now = now_();
  if (request.on()) what.until = time_after(now, request.for_seconds());
  const auto change = rules_.carry_out({.at = now, .who = caller.name, .what = what});
  VPFS_TRY(change);
  std::string text = "bypass is on until `bypass off`: nothing is held";
  if (what.until) {
    text = fmt::format("bypass is on until {:%F %T} UTC: nothing is held", *what.until);
  }
  if (!what.on) text = "bypass is off: requests are scheduled again";
  Ack reply = ack(std::move(text));
  if (live_.is_behind()) {
    reply.add_warnings(
        "control.journal cannot be written, and is tried again: a restart before that brings back "
        "what it has");
  }
  return reply;
}

StatsReply Administration::stats() {
  Stats request;
  request.set_rules(true);
  return stats_of(request, {.name = "", .from = "", .rights = Rights::read, .uid = {}});
}

StatsReply Administration::stats_of(const Stats& request, const Caller& caller) {
  if (caller.rights == Rights::own) return own_stats(caller);
  const StageSnapshot snapshot = this->snapshot();
  StatsReply reply;
  add_stage(reply, snapshot, live_.composed().config, now_());
  const JobsWithIo jobs = jobs_with_io(snapshot, live_.composed().config);
  reply.set_jobs_with_io(static_cast<std::uint32_t>(jobs.all));
  reply.set_registered_jobs_with_io(static_cast<std::uint32_t>(jobs.registered));
  program_.describe(reply);
  reply.set_lag_faults(past_.lag_faults());
  past_.add_entitlements(reply);
  const stage::Bypass& bypass = live_.book().state().bypass;
  if (bypass.until) reply.set_bypass_until_at(bypass.until->time_since_epoch().count());
  if (request.rules()) add_rules(*reply.mutable_rules(), live_, snapshot.rules);
  return reply;
}

StatsReply Administration::own_stats(const Caller& caller) {
  const WallTime now = now_();
  if (seen_at_ != now) {
    seen_by_others_ = snapshot();
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
  past_.add_entitlements(reply);
  program_.describe(reply);
  reply.clear_upstream();
  reply.clear_coordinator();
  reply.set_partial(true);
  return reply;
}

void Administration::why(const Why& request, const Caller& caller, const Answer& answer) {
  if (caller.rights == Rights::own) return own_why(request, caller, answer);
  const Asked asked = read_asked(request.who(), live_.composed().config.names);
  program_.list_clients([this, asked, caller, answer](std::vector<Client> clients) {
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
  program_.list_clients([this, tell](std::vector<Client> clients) {
    clients_of_others_ = std::move(clients);
    listed_at_ = now_();
    tell();
  });
}

void Administration::past(const Past& request, const Caller& caller, const Answer& answer) {
  const auto tell = [answer](Outcome<PastReply> reply) {
    deliver(answer, std::move(reply),
            [](Envelope& to, PastReply made) { *to.mutable_past_reply() = std::move(made); });
  };
  if (caller.rights == Rights::own) return tell(own_past(request, caller));
  Outcome<insight::Past> read = past_.read(request, now_());
  if (!read) return answer(std::move(read.error()));
  PastChoice choice = {
      .is_asked = [name = request.name()](const auto& who) { return is_named(name, who); },
      .may_be_seen = [](const auto&) { return true; },
      .most = request.most()};
  if (request.name().empty() || std::ranges::any_of(read->of, choice.is_asked)) {
    return tell(past_.reply(*read, choice));
  }
  // A name service is asked about a name that is not that of a virtual PFS or a job alone.
  const auto past = std::make_shared<const insight::Past>(std::move(*read));  // shared by callbacks
  const auto find = [this, tell, choice, who = request.name(), past] {
    const auto found = [this, tell, choice, past](const std::set<std::string, std::less<>>& names) {
      PastChoice chosen = choice;
      chosen.is_asked = [&names](const auto& each) { return names.contains(each.name); };
      tell(past_.reply(*past, chosen));
    };
    find_virtual_pfs(who, past->begin, past->end, found);
  };
  const WantedNames names = names_asked(request.name());
  if (names.empty()) return find();
  look_up_(names, NameLookups::For::question,
           [find, answer](const std::optional<std::string>& problem) {
             if (problem) return answer(make_error(Error::UNAVAILABLE, "", *problem));
             find();
           });
}

void Administration::find_virtual_pfs(const std::string& who, WallTime from, WallTime to,
                                      FoundNames found) {
  const Asked asked = read_asked(who, live_.composed().config.names);
  auto names = past_clients_.virtual_pfs_of(asked, from, to);
  program_.list_clients([asked, names = std::move(names),
                         found = std::move(found)](std::vector<Client> clients) mutable {
    WhyReply reply;
    add_clients(reply, std::move(clients), asked);
    for (const Client& client : reply.clients()) {
      for (const Seen& seen : client.seen()) names.insert(seen.virtual_pfs());
    }
    found(names);
  });
}

Administration::Outcome<PastReply> Administration::own_past(const Past& request,
                                                            const Caller& caller) {
  Outcome<insight::Past> read = past_.read_for_own(request, now_());
  VPFS_TRY(read);
  const std::string& name = request.name();
  // The caller's own name or number is all that it may see.
  const bool is_caller = !name.empty() && (caller.name.starts_with(name + " (") ||
                                           (caller.uid && std::to_string(*caller.uid) == name));
  const JobIds own = own_jobs(live_.composed().config, caller);
  PastReply reply = past_.reply(
      *read,
      {.is_asked = [&](const auto& who) { return is_caller || is_named(name, who); },
       .may_be_seen = [&](const auto& who) { return is_of(who.jobid, who.job_uid, own, caller); },
       .most = request.most()});
  // Sums of the jobs of others.
  reply.clear_others();
  reply.clear_cost();
  reply.clear_most_cost_per_second();
  reply.set_partial(true);
  return reply;
}

Administration::Outcome<LedgerReply> Administration::ledger(const Ledger& request,
                                                            const Caller& caller) {
  const WallTime now = now_();
  if (caller.rights != Rights::own) {
    return past_.ledger(request, now, [](const auto&) { return true; });
  }
  VPFS_TRY(past_.count_for_own(now));
  const JobIds own = own_jobs(live_.composed().config, caller);
  auto reply = past_.ledger(request, now, [&](const insight::Spell& spell) {
    return is_of(spell.jobid, spell.job_uid, own, caller);
  });
  VPFS_TRY(reply);
  reply->set_partial(true);
  return reply;
}

}  // namespace vpfs::control
