#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "control/allocation/cycle_state.h"

namespace vpfs::allocation {

using namespace std::chrono_literals;

// Grants what the test says; otherwise nothing.
class ScriptedPolicy final : public AllocationPolicy {
 public:
  Result<void> allocate(std::span<const Pair> pairs, Duration period, const Amounts& less,
                        std::span<const std::string_view> jobs, std::span<Grant> grants) override {
    last_period = period;
    last_less = less;
    if (!problem.empty()) return fail(problem);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      if (grant) grants[i] = grant(jobs[pairs[i].job], pairs[i]);
    }
    return {};
  }

  std::function<Grant(std::string_view job, const Pair& pair)> grant;
  std::string problem;
  Duration last_period = {};
  Amounts last_less;
};

inline CycleSettings small_settings() {
  CycleSettings settings;
  settings.capacity = {.bytes = 1000};
  settings.period = 50ms;
  settings.deadline = 25ms;
  settings.lease = 1s;
  settings.transit = 200ms;
  settings.silent_cycles = 4;
  return settings;
}

class CycleStateTest : public testing::Test {
 protected:
  struct Sent {
    std::uint64_t sequence = 0;
    Duration lease = {};
    bool complete = false;
    bool close = false;
    std::vector<FlowGrant> grants;
  };

  CycleStateTest() { start(small_settings()); }

  void start(const CycleSettings& settings, std::uint64_t term = 7) {
    auto policy = std::make_unique<ScriptedPolicy>();
    policy_ = policy.get();
    state_ = std::make_unique<CycleState>(settings, std::move(policy), term);
  }

  StageId join(const std::string& name, std::uint64_t incarnation = 1) {
    const Result<StageId> stage = state_->join(name, incarnation, now_);
    EXPECT_TRUE(stage) << stage.error().message;
    return stage.value_or(StageId{});
  }
  void announce(StageId stage, std::uint32_t flow, const std::string& job,
                std::uint32_t generation = 1, std::uint32_t weight = 1) {
    state_->on_flow(stage, {.flow = flow, .generation = generation, .job = job, .weight = weight});
  }

  // One period later.
  void begin(bool want_report = true) {
    now_ += 50ms;
    keep(state_->begin_cycle(now_, want_report));
  }
  void ask() {
    now_ += 1ms;
    keep(state_->ask(now_));
  }
  void keep(std::span<const Outgoing> outgoing) {
    sent_.clear();
    for (const Outgoing& each : outgoing) {
      sent_[each.stage.index] = {.sequence = each.sequence,
                                 .lease = each.lease,
                                 .complete = each.complete,
                                 .close = each.close,
                                 .grants = {each.grants.begin(), each.grants.end()}};
    }
  }
  [[nodiscard]] bool is_sent(StageId stage) const { return sent_.contains(stage.index); }

  AnswerResult answer(StageId stage, const std::vector<FlowCounters>& flows = {},
                      bool applied = true, bool pending = false) {
    const StageAnswer head = {.term = state_->term(),
                              .sequence = state_->sequence(),
                              .applied = applied,
                              .problem = applied ? "" : "no caps here",
                              .pending = pending};
    return state_->on_report(stage, head, flows, now_ + 1ms);
  }
  AnswerResult answer_pending(StageId stage, const std::vector<FlowCounters>& flows = {}) {
    return answer(stage, flows, true, true);
  }
  // A stage with one flow, number 0, that has reported once.
  StageId add(const std::string& name, const std::string& job, std::uint64_t incarnation = 1) {
    const StageId stage = join(name, incarnation);
    introduce(stage, job);
    return stage;
  }
  void introduce(StageId stage, const std::string& job) {
    ask();
    for (const auto& [other, sent] : sent_) {
      if (other == stage.index) announce(stage, 0, job);
      EXPECT_EQ(answer(StageId{other}, other == stage.index ? std::vector<FlowCounters>{{.flow = 0}}
                                                            : std::vector<FlowCounters>{}),
                AnswerResult::taken);
    }
  }
  void begin_and_answer() {
    begin();
    for (const auto& [stage, sent] : sent_) {
      if (!sent.close) EXPECT_EQ(answer(StageId{stage}), AnswerResult::taken);
    }
  }

  // Each job on each stage gets so many bytes.
  void grant_bytes(std::map<std::string, std::uint64_t, std::less<>> bytes) {
    policy_->grant = [bytes = std::move(bytes)](std::string_view job, const Pair&) -> Grant {
      return {.bytes = bytes.find(job)->second};
    };
  }
  // The bytes that flow 0 of the stage was sent in this cycle.
  std::optional<std::uint64_t> bytes(StageId stage) {
    const Sent& sent = sent_[stage.index];
    return sent.grants.empty() ? std::nullopt : sent.grants.front().grant.bytes;
  }
  const Pair& pair(std::size_t row) const { return state_->pairs()[row]; }
  const StageStatus& status(StageId stage) const { return state_->status(stage); }

  TimePoint now_ = TimePoint{} + 100s;
  ScriptedPolicy* policy_ = nullptr;
  std::unique_ptr<CycleState> state_;
  std::map<std::uint32_t, Sent> sent_;
};

}  // namespace vpfs::allocation
