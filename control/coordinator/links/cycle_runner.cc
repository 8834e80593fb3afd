#include "control/coordinator/links/cycle_runner.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include <asio/post.hpp>
#include <spdlog/spdlog.h>

#include "base/check.h"
#include "base/clock.h"
#include "control/wire/protocol.h"

namespace vpfs::coordinator {
namespace {

using allocation::StageId;

constexpr std::size_t kBurst = 64;
constexpr std::size_t kAhead = 2;

void fill(control::Allocation& to, const allocation::FlowGrant& from) {
  to.set_flow(from.flow);
  const allocation::Grant& grant = from.grant;
  if (grant.bytes) to.set_bytes_per_second(*grant.bytes);
  if (grant.operations) to.set_operations_per_second(*grant.operations);
  if (grant.metadata_operations) {
    to.set_metadata_operations_per_second(*grant.metadata_operations);
  }
  if (grant.elsewhere_total) to.set_elsewhere_total(*grant.elsewhere_total);
}

allocation::FlowCounters counters_of(const control::FlowReport& report) {
  return {.flow = report.flow(),
          .ended = report.ended(),
          .arrived_bytes = report.arrived_bytes(),
          .arrived_requests = report.arrived_requests(),
          .metadata_operations = report.metadata_operations(),
          .done_cost = report.done_cost(),
          .limited = allocation::Microseconds(report.limited_us()),
          .present = allocation::Microseconds(report.present_us()),
          .crowded = allocation::Microseconds(report.crowded_us()),
          .without_queue = allocation::Microseconds(report.without_queue_us())};
}

}  // namespace

bool announce(allocation::CycleState& state, StageId stage, const control::Flow& flow) {
  return state.on_flow(stage, {.flow = flow.id(),
                               .generation = flow.generation(),
                               .job = flow.name(),
                               .weight = flow.weight(),
                               .stages = std::max(flow.stages(), 1U)});
}

void CycleRunner::run(Kind kind, Done done) {
  if (may_send_ && !may_send_()) return;
  VPFS_ASSERT(!is_running() && links_ != nullptr);
  done_ = std::move(done);
  is_finished_ = false;
  ++round_;
  began_ = clock_.now();
  times_ = {};
  const std::span<const allocation::Outgoing> outgoing =
      kind == Kind::ask ? state_.ask(began_) : state_.begin_cycle(began_, kind == Kind::fused);
  times_.compute = clock_.now() - began_;
  times_.stages = outgoing.size();
  // Answers that have come are taken between bursts: what they are about is in the caches still.
  const std::uint64_t joins = links_->joins();
  for (std::size_t i = 0; i < outgoing.size(); ++i) {
    if (i % kBurst == 0) {
      if (i > 0) links_->serve_now();
      if (const char* const why = why_not_go_on(); why != nullptr) {
        give_up(outgoing.subspan(i), joins, why);
        break;
      }
    }
    if (i + kAhead < outgoing.size()) links_->prepare(outgoing[i + kAhead].stage);
    send(outgoing[i], joins);
  }
  if (state_.unanswered() == 0) return finish(0);
  links_->expect_answers(true);
  wait();
}

// Caps of these stages count as sent until their connections have ended.
void CycleRunner::give_up(std::span<const allocation::Outgoing> rest, std::uint64_t joins,
                          const char* why) {
  spdlog::warn("a cycle was not sent to {} of {} stages: {}", rest.size(), times_.stages, why);
  for (const allocation::Outgoing& each : rest) links_->disconnect(each.stage, joins, why);
}

const char* CycleRunner::why_not_go_on() const {
  if (may_send_ && !may_send_()) return "the coordinator may lead no more";
  return state_.is_in_time(clock_.now()) ? nullptr : "the coordinator was stopped for too long";
}

void CycleRunner::stop() {
  ++round_;
  done_ = nullptr;
  timer_.cancel();
}

void CycleRunner::send(const allocation::Outgoing& message, std::uint64_t joins) {
  control::Cycle& cycle = *envelope_.mutable_cycle();
  cycle.set_term(state_.term());
  cycle.set_sequence(message.sequence);
  cycle.set_lease_us(microseconds_of(message.lease));
  cycle.set_want_report(message.want_report);
  cycle.set_complete(message.complete);
  cycle.clear_allocations();
  for (const allocation::FlowGrant& each : message.grants) fill(*cycle.add_allocations(), each);
  (void)links_->send_cycle(message.stage, envelope_, joins);
  if (message.close) links_->disconnect(message.stage, joins, "it was silent for too long");
}

void CycleRunner::wait() {
  const std::optional<TimePoint> deadline = state_.next_deadline();
  if (!deadline) return;
  timer_.expires_at(*deadline);
  timer_.async_wait([this, round = round_](std::error_code error) {
    if (error || round != round_ || is_finished_) return;
    const std::size_t late = state_.unanswered();
    state_.on_deadline(clock_.now());
    finish(late);
  });
}

void CycleRunner::look_whether_done() {
  if (!is_finished_ && state_.unanswered() == 0) finish(0);
}

void CycleRunner::finish(std::size_t late) {
  if (std::exchange(is_finished_, true)) return;
  links_->expect_answers(false);
  times_.late = late;
  times_.total = clock_.now() - began_;
  timer_.cancel();
  asio::post(context_, [this, round = round_, times = times_] {
    if (round != round_ || !is_running()) return;
    std::exchange(done_, nullptr)(times);
  });
}

void CycleRunner::reported(StageId stage, const control::Report& report) {
  counters_.clear();
  for (const control::FlowReport& each : report.flows()) counters_.push_back(counters_of(each));
  const std::string problem = report.has_refused() ? control::describe(report.refused()) : "";
  (void)state_.on_report(stage,
                         {.term = report.term(),
                          .sequence = report.sequence(),
                          .applied = report.applied(),
                          .problem = problem,
                          .pending = report.pending()},
                         counters_, clock_.now());
  look_whether_done();
}

void CycleRunner::refused(StageId stage, std::uint64_t sequence, const control::Error& why) {
  state_.on_refusal(stage, sequence, control::describe(why), clock_.now());
  look_whether_done();
}

}  // namespace vpfs::coordinator
