#include "control/admin/stats_reply.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.h"

namespace vpfs::control {
namespace {

// The time of day of a moment before the snapshot.
std::int64_t seconds_at(TimePoint then, TimePoint at, WallTime now) {
  return seconds_since_epoch(now - std::chrono::duration_cast<std::chrono::seconds>(at - then));
}

void fill_amount(Amount& to, const stage::Amount& from) {
  to.set_requests(from.requests);
  to.set_bytes(from.bytes);
}

void fill_latency(Latency& to, const StageSnapshot::Latencies& from) {
  to.set_p50_us(microseconds_of(from.p50));
  to.set_p99_us(microseconds_of(from.p99));
  to.set_max_us(microseconds_of(from.max));
}

void fill_statistic(Statistic& to, const stage::Statistic& from) {
  to.set_samples(from.samples);
  to.set_min(from.min);
  to.set_max(from.max);
  to.set_sum(from.sum);
  to.set_sumsq(static_cast<double>(from.sum_of_squares));
}

void fill_wait(Wait& to, const StageSnapshot::Wait& from) {
  to.set_reason(from.text());
  to.set_since_us(microseconds_of(from.since.value_or(Duration::zero())));
  if (from.may_go_in) to.set_may_go_in_us(microseconds_of(*from.may_go_in));
  if (from.target) to.set_target(*from.target);
}

void fill_share(VirtualPfs& to, const Share& share) {
  to.set_weight(share.weight);
  to.set_rate(share.rate.count);
  to.set_operations(share.operations);
  to.set_min(share.min.count);
  to.set_latency_us(microseconds_of(share.latency));
  to.set_nodes(static_cast<std::uint32_t>(share.own_value("nodes").value_or(0)));
  if (share.rank) to.set_rank(*share.rank);
}

void fill_counters(VirtualPfs& to, const stage::Counters& counters) {
  fill_amount(*to.mutable_read(), counters.done.of(IoKind::read));
  fill_amount(*to.mutable_write(), counters.done.of(IoKind::write));
  fill_amount(*to.mutable_metadata(), counters.done.of(IoKind::metadata));
  fill_amount(*to.mutable_failed(), counters.failed.all());
  fill_amount(*to.mutable_refused(), counters.refused.all());
  fill_amount(*to.mutable_queued(), counters.queued);
  fill_amount(*to.mutable_outstanding(), counters.outstanding);
  to.set_cost_done(counters.cost_done);
  to.set_passed_limit(counters.passed_limit);
  to.set_held_limit_us(microseconds_of(counters.held.limit));
  to.set_held_share_us(microseconds_of(counters.held.share));
  to.set_held_kept_us(microseconds_of(counters.held.kept_slot));
  to.set_held_depth_us(microseconds_of(counters.held.depth));
  to.set_held_class_us(microseconds_of(counters.held.traffic_class));
  to.set_held_client_us(microseconds_of(counters.slow_client));
}

void fill_verdict(VirtualPfs& to, const stage::ShareWatch::Verdict& from) {
  to.set_keeps_no_queue(from.keeps_no_queue);
  to.set_present_us(microseconds_of(from.present));
  to.set_crowded_us(microseconds_of(from.in_flight));
  to.set_without_queue_us(microseconds_of(from.without_queue));
}

// What retired virtual PFSes have too.
template <typename From>
void fill_history(VirtualPfs& to, const From& from) {
  fill_latency(*to.mutable_held(), from.held);
  fill_latency(*to.mutable_service(), from.service);
  fill_statistic(*to.mutable_read_bytes(), from.statistics.read_bytes);
  fill_statistic(*to.mutable_write_bytes(), from.statistics.write_bytes);
  fill_statistic(*to.mutable_read_usecs(), from.statistics.read_time);
  fill_statistic(*to.mutable_write_usecs(), from.statistics.write_time);
}

void fill_retired(VirtualPfs& to, const StageSnapshot::Retired& from) {
  fill_counters(to, from.counters);
  fill_history(to, from);
}

}  // namespace

void fill(VirtualPfs& to, const StageSnapshot::Row& from, const stage::Config& config, TimePoint at,
          WallTime now) {
  to.set_id(std::to_underlying(from.id.app));
  to.set_generation(from.id.generation);
  to.set_name(from.info->name);
  if (from.info->declared->name != from.info->name) to.set_template_(from.info->declared->name);
  if (from.rule != nullptr) to.set_rule(*from.rule);
  const auto& classes = config.scheduler.classes.classes;
  if (from.traffic_class < classes.size()) to.set_class_(classes[from.traffic_class].name);
  to.set_jobid(from.jobid);
  to.set_removed(from.info->removed);
  if (from.info->refused_promise) to.set_refused_promise(*from.info->refused_promise);
  fill_share(to, from.info->share());
  if (from.allocated.bytes) to.set_allocated_rate(from.allocated.bytes->count);
  if (from.allocated.operations) to.set_allocated_operations(*from.allocated.operations);
  if (from.allocated.metadata_operations) {
    to.set_allocated_metadata_operations(*from.allocated.metadata_operations);
  }
  fill_counters(to, from.counters);
  fill_verdict(to, from.share);
  if (from.wait) fill_wait(*to.mutable_wait(), *from.wait);
  fill_history(to, from);
  const stage::IoStatistics& statistics = from.statistics;
  if (statistics.since != TimePoint{}) {
    to.set_since_at(seconds_at(statistics.since, at, now));
    to.set_snapshot_at(seconds_at(statistics.last, at, now));
  }
}

void add_totals(StatsReply& reply, const StageSnapshot& snapshot, const stage::Config& config,
                WallTime now) {
  reply.set_at_us(microseconds_of(snapshot.at.time_since_epoch()));
  reply.set_at(seconds_since_epoch(now));
  reply.set_policy(config.policy);
  reply.set_bypass(snapshot.bypass);
  if (const auto& epoch = snapshot.coordinator.epoch) {
    reply.set_term(epoch->term);
    reply.set_sequence(epoch->sequence);
  }
  reply.set_allocated(snapshot.coordinator.lease_left.has_value());
  std::uint64_t outstanding = snapshot.unscheduled;
  std::uint64_t queued = 0;
  for (const StageSnapshot::Lane& lane : snapshot.lanes) {
    outstanding += lane.outstanding;
    queued += lane.queued;
  }
  reply.set_outstanding(static_cast<std::uint32_t>(outstanding));
  reply.set_queued(static_cast<std::uint32_t>(queued));
  if (!snapshot.lanes.empty()) {
    reply.set_depth_requests(snapshot.lanes.front().depth.requests);
    reply.set_depth_bytes(snapshot.lanes.front().depth.cost);
  }
}

void add_stage(StatsReply& reply, const StageSnapshot& snapshot, const stage::Config& config,
               WallTime now) {
  add_totals(reply, snapshot, config, now);
  for (const StageSnapshot::Row& row : snapshot.rows) {
    fill(*reply.add_virtual_pfs(), row, config, snapshot.at, now);
  }
  fill_retired(*reply.mutable_retired(), snapshot.retired);
  reply.set_virtual_pfs_retired(snapshot.retired.count);
}

}  // namespace vpfs::control
