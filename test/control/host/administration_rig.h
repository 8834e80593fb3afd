#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "control/host/administration.h"
#include "control/host/program.h"
#include "test/control/admin/admin_rig.h"

namespace vpfs::control {

// What only a program has, without one.
class ProgramOfTest final : public Program {
 public:
  std::shared_ptr<const HostConfig> read(ConfigErrors&, const HostConfig&,
                                         const stage::Names&) override {
    return nullptr;
  }
  std::vector<std::string> use(const HostConfig&, const stage::Config&) override { return {}; }
  std::string status(const HostStatus&) override { return "{}"; }
  void describe(StatsReply& reply) override {
    reply.set_name("stor0");
    reply.set_upstream("127.0.0.1:3334");
  }
  void list_clients(std::function<void(std::vector<Client>)> done) override { done(clients); }
  void drain(std::string_view) override {}
  bool draining() const override { return false; }

  std::vector<Client> clients;
};

// Remembers which names were to be looked up, and says that it has done so, at once or when the
// test does.
struct LookupsOfTest {
  void look_up(const WantedNames& names, NameLookups::For what, NameLookups::Done done) {
    wanted = names;
    is_question = what == NameLookups::For::question;
    if (later) {
      pending.push_back(std::move(done));
    } else {
      done(std::nullopt);
    }
  }

  WantedNames wanted;
  bool is_question = false;
  bool later = false;
  std::vector<NameLookups::Done> pending;
};

// An administration with a journal in memory.
class AdministrationTest : public ::testing::Test {
 protected:
  explicit AdministrationTest(stage::Config file = file_config(), const HostNames& names = {})
      : names_(names), file_(std::move(file)) {
    wall_ = at(0);
  }
  void SetUp() override { start(); }

  // As after a restart: only the journal is left.
  void start() {
    administration_.reset();
    notes_.clear();
    auto live = LiveState::load(std::make_unique<MemoryStore>(journal_), file_, wall_, notes_);
    ASSERT_TRUE(live) << live.error().message;
    live_ = std::move(*live);
    stage_ = std::make_unique<StageOfTest>(live_->composed().config);
    administer([] { return wall_; });
    administration_->tick();
  }
  void administer(WallTime (*now)()) {
    administration_ = std::make_unique<Administration>(Administration::Parts{
        .live = *live_,
        .gate = *stage_,
        .program = program_,
        .names = names_,
        .look_up = [this](
                       const WantedNames& names, NameLookups::For what,
                       NameLookups::Done done) { lookups_.look_up(names, what, std::move(done)); },
        .clock = stage_->clock(),
        .now = now,
        .term = [this] { return term_of_cycles_; }});
  }

  Envelope ask(const Envelope& request, const Caller& caller = kChief) {
    Envelope reply;
    const Answer answer([&](Envelope come) { reply = std::move(come); });
    administration_->ask(request, caller, answer);
    return reply;
  }
  Envelope ask(const Rule& rule, const Caller& caller = kChief) {
    Envelope request;
    *request.mutable_rule() = rule;
    return ask(request, caller);
  }
  Envelope ask(const Job& job, const Caller& caller = kChief) {
    Envelope request;
    *request.mutable_job() = job;
    return ask(request, caller);
  }
  Envelope stats(const Caller& caller = kChief) {
    Envelope request;
    request.mutable_stats()->set_rules(true);
    return ask(request, caller);
  }
  Envelope who(const std::string& whom, const Caller& caller = kChief) {
    Envelope request;
    request.mutable_why()->set_who(whom);
    return ask(request, caller);
  }
  static Rule start_of(const std::string& name, const std::string& condition,
                       const std::vector<std::string>& words = {}) {
    Rule rule;
    rule.set_action(Rule::START);
    rule.set_name(name);
    rule.set_condition(condition);
    for (const std::string& each : words) rule.add_words(each);
    return rule;
  }
  static Job job_of(const std::string& jobid, std::uint32_t uid,
                    const std::vector<std::string>& clients = {"10.0.0.1"}) {
    Job job;
    job.set_action(Job::START);
    job.set_jobid(jobid);
    job.add_uids(uid);
    for (const std::string& each : clients) job.add_clients(each);
    return job;
  }
  static Rule action_of(Rule::Action action, const std::string& name = "") {
    Rule rule;
    rule.set_action(action);
    rule.set_name(name);
    return rule;
  }
  // The names of the rules in force, in their order.
  std::vector<std::string> rules() {
    std::vector<std::string> names;
    const Envelope reply = ask(action_of(Rule::LIST));
    for (const RuleState& each : reply.rule_reply().rules()) names.push_back(each.name());
    return names;
  }
  static std::string why_not(const Envelope& reply) {
    return reply.has_error() ? reply.error().place() + ": " + reply.error().text() : "";
  }

  inline static const Caller kChief = {
      .name = "ops (uid 0)", .from = "unix", .rights = Rights::change, .uid = 0};
  inline static const Caller kAlice = {
      .name = "alice (uid 1001)", .from = "unix", .rights = Rights::own, .uid = 1001};
  inline static WallTime wall_;

  MemoryStore::Contents journal_;
  const HostNames names_;
  stage::Config file_;
  std::vector<std::string> notes_;
  std::unique_ptr<LiveState> live_;
  ProgramOfTest program_;
  LookupsOfTest lookups_;
  std::uint64_t term_of_cycles_ = 0;
  std::unique_ptr<StageOfTest> stage_;
  std::unique_ptr<Administration> administration_;
};

}  // namespace vpfs::control
