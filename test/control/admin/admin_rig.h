#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "control/admin/live_state.h"
#include "control/gate/stage_gate.h"
#include "stage/config/rule_text.h"
#include "stage/stage.h"
#include "test/support/manual_clock.h"

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
    bool has_room_for_another = true;  // or it fails to replace
    std::size_t tried = 0;
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
    ++contents_.tried;
    if (contents_.fails) return fail("the disk is full");
    ++contents_.appended;
    contents_.records.emplace_back(record);
    return {};
  }
  Result<void> replace(std::string_view record) override {
    ++contents_.tried;
    if (contents_.fails || !contents_.has_room_for_another) return fail("the disk is full");
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
class StageOfTest final : public StageGate {
 public:
  explicit StageOfTest(const stage::Config& config) : StageGate(config, kBegin), config_(config) {
    inspect(kBegin, [this](stage::Stage& stage, TimePoint) { stage_ = &stage; });
  }

  void reconfigure(const stage::Config& config, TimePoint now) override {
    ++reconfigured;
    config_ = config;
    StageGate::reconfigure(config, now);
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
    return stage_->find(classifier.classify(*where, identity), now(), config_.rules);
  }
  // A request of 1,000 bytes, to its end.
  void serve(const stage::Place& place, IoKind kind = IoKind::read) {
    stage::Held& io = arrive(place, kind);
    std::vector<stage::Held*> released;
    (void)stage_->release(now(), released);
    for (stage::Held* each : released) {
      stage::Stage::took_over(*each);
      stage_->end(*each, {.moved = {1000}}, now());
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
    io.arrival = now();
    stage_->arrive(io, now());
    return io;
  }
  // All idle virtual PFSes that a template made.
  void retire_idle() {
    advance(config_.idle + std::chrono::seconds(1));
    stage_->find_idle(stage_->rows(), now());
    while (stage_->has_idle()) stage_->retire(1, now());
  }
  void advance(Duration by) { clock_.set(now() + by); }
  [[nodiscard]] TimePoint now() const { return clock_.now(); }
  [[nodiscard]] const Clock& clock() const { return clock_; }
  [[nodiscard]] stage::Stage& get() { return *stage_; }

  int reconfigured = 0;

 private:
  static constexpr TimePoint kBegin = TimePoint(std::chrono::seconds(100));

  void ask_again() override {}

  test::ManualClock clock_{kBegin};
  stage::Config config_;
  std::deque<stage::Held> requests_;  // none is ever moved
  stage::Stage* stage_ = nullptr;     // of the gate
};

}  // namespace vpfs::control
