#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "control/admin/administration.h"
#include "control/admin/live_state.h"
#include "control/admin/stage_access.h"
#include "control/admin/stage_owner.h"
#include "stage/config/rule_text.h"
#include "stage/stage.h"

namespace vpfs::control {

[[nodiscard]] inline WallTime at(std::int64_t seconds) {
  return WallTime(std::chrono::seconds(1'800'000'000 + seconds));
}

// Adds a rule as if the configuration file had it.
inline void add_rule(stage::Config& config, const stage::RuleText& text) {
  auto parsed = stage::parse_rule(text, config);
  ASSERT_TRUE(parsed) << parsed.error().front().text;
  parsed->rule.origin = stage::RuleOrigin::file;
  config.rules.push_back(std::move(parsed->rule));
  if (parsed->declares) config.virtual_pfs.push_back(std::move(*parsed->declares));
}

// The configuration of a file: job ids have virtual PFSes of their own.
[[nodiscard]] inline stage::Config file_config() {
  stage::Config config;
  config.source = "the protocol orangefs";
  config.shown = {Attribute::hint,  Attribute::uid,   Attribute::metadata,
                  Attribute::jobid, Attribute::owner, Attribute::file_system};
  config.virtual_pfs.push_back({.name = "default"});
  add_rule(config, {.name = "job-{jobid}", .condition = "jobid=*", .words = {}});
  return config;
}

// A store whose calls fail on demand.
class MemoryStore final : public StateStore {
 public:
  struct Contents {
    std::vector<std::string> records;
    bool fails = false;
    std::size_t appended = 0;
    std::size_t replaced = 0;
    bool wants_replacing = false;
    bool is_gone = false;
  };
  explicit MemoryStore(Contents& contents) : contents_(contents) {}

  Result<Loaded> load() override {
    Loaded loaded;
    for (const std::string& each : contents_.records) {
      loaded.records.push_back({.text = each, .place = "journal"});
    }
    return loaded;
  }
  Result<void> append(std::string_view record) override {
    if (contents_.fails) return fail("the disk is full");
    ++contents_.appended;
    contents_.records.emplace_back(record);
    return {};
  }
  Result<void> replace(std::string_view record) override {
    if (contents_.fails) return fail("the disk is full");
    ++contents_.replaced;
    contents_.records = {std::string(record)};
    contents_.is_gone = false;
    return {};
  }
  [[nodiscard]] bool is_in_place() const override { return !contents_.is_gone; }
  [[nodiscard]] bool wants_replacing() const override { return contents_.wants_replacing; }

 private:
  Contents& contents_;
};

// A stage whose owner is a test; time is the test's.
class StageOfTest final : public StageAccess {
 public:
  explicit StageOfTest(const stage::Config& config) : config_(config), stage_(config, now_) {}

  void give_way() override {}
  void inspect(const Visitor& visit) override { visit(stage_, now_); }
  void copy_counters(std::vector<stage::CounterRow>& rows) override {
    rows.resize(stage_.rows());
    if (!rows.empty()) stage_.copy_counters(0, rows, now_);
  }

  void reconfigure(const stage::Config& config) {
    config_ = config;
    stage_.reconfigure(config, now_);
  }
  stage::Place find(const std::string& jobid, const std::string& address = "10.0.0.1") {
    stage::JobRegistry jobs;
    for (const stage::RegisteredJob& job : config_.jobs) EXPECT_TRUE(jobs.add(job));
    const stage::Classifier classifier(config_.rules, 0, &jobs);
    std::vector<std::optional<std::string_view>> hints(classifier.hint_names().size());
    if (!jobid.empty()) std::ranges::fill(hints, jobid);
    stage::Identity identity;
    identity.hints = hints;
    const auto where = stage::Address::parse(address);
    EXPECT_TRUE(where);
    return stage_.find(classifier.classify(*where, identity), now_, config_.rules);
  }
  // A request of 1,000 bytes, to its end.
  void serve(const stage::Place& place, IoKind kind = IoKind::read) {
    stage::Held& io = arrive(place, kind);
    std::vector<stage::Held*> released;
    (void)stage_.release(now_, released);
    for (stage::Held* each : released) {
      stage::Stage::took_over(*each);
      stage_.end(*each, {.moved = {1000}}, now_);
    }
    EXPECT_EQ(released.size(), 1U);
    (void)io;
  }
  stage::Held& arrive(const stage::Place& place, IoKind kind = IoKind::read) {
    stage::Held& io = requests_.emplace_back();
    io.set_place(place);
    io.kind = kind;
    io.size = io.asked = {1000};
    io.cost = 1000;
    io.arrival = now_;
    stage_.arrive(io, now_);
    return io;
  }
  // All idle virtual PFSes that a template made.
  void retire_idle() {
    now_ += config_.idle + std::chrono::seconds(1);
    stage_.find_idle(stage_.rows(), now_);
    while (stage_.has_idle()) stage_.retire(1, now_);
  }
  void advance(Duration by) { now_ += by; }
  [[nodiscard]] TimePoint now() const { return now_; }
  [[nodiscard]] stage::Stage& get() { return stage_; }

 private:
  TimePoint now_ = TimePoint(std::chrono::seconds(100));
  stage::Config config_;
  std::deque<stage::Held> requests_;  // none is ever moved
  stage::Stage stage_;
};

// Does what an administration asks of it, and remembers it.
class OwnerOfTest final : public StageOwner {
 public:
  explicit OwnerOfTest(const stage::Config& config) : stage_(config) {}

  void use(const stage::Config& config) override {
    ++used;
    stage_.reconfigure(config);
  }
  void set_bypass(bool on) override { bypass.push_back(on); }
  void reload(Reloaded done) override { done(reloaded); }
  void look_up(const WantedNames& names,
               std::function<void(std::optional<std::string>)> done) override {
    wanted = names;
    if (looks_up_later) {
      pending.push_back(std::move(done));
    } else {
      done(std::nullopt);
    }
  }
  void drain() override { ++drained; }
  [[nodiscard]] StageAccess& stage() override { return stage_; }
  [[nodiscard]] StageOfTest& of_test() { return stage_; }
  [[nodiscard]] std::string status() override { return "{}"; }
  void describe(StatsReply& reply) override {
    reply.set_name("stor0");
    reply.set_upstream("127.0.0.1:3334");
  }
  void list_clients(std::function<void(std::vector<Client>)> done) override { done(clients); }

  [[nodiscard]] StageOfTest& real() { return stage_; }

  int used = 0;
  int drained = 0;
  std::vector<bool> bypass;
  Result<std::vector<std::string>> reloaded = std::vector<std::string>{};
  std::vector<Client> clients;
  WantedNames wanted;
  bool looks_up_later = false;
  std::vector<std::function<void(std::optional<std::string>)>> pending;

 private:
  StageOfTest stage_;
};

// An administration with a journal in memory.
class AdministrationTest : public ::testing::Test {
 protected:
  explicit AdministrationTest(stage::Config file = file_config()) : file_(std::move(file)) {
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
    owner_ = std::make_unique<OwnerOfTest>(live_->composed().config);
    administration_ = std::make_unique<Administration>(*live_, *owner_, [] { return wall_; });
    administration_->tick();
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
  stage::Config file_;
  std::vector<std::string> notes_;
  std::unique_ptr<LiveState> live_;
  std::unique_ptr<OwnerOfTest> owner_;
  std::unique_ptr<Administration> administration_;
};

}  // namespace vpfs::control
