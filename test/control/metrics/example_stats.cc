#include "test/control/metrics/example_stats.h"

namespace vpfs::test {
namespace {

using control::Amount;
using control::VirtualPfs;

void set(Amount* amount, std::uint64_t requests, std::uint64_t bytes) {
  amount->set_requests(requests);
  amount->set_bytes(bytes);
}

// Counters that differ from those of another `base`.
void fill_counters(VirtualPfs& pfs, std::uint64_t base) {
  set(pfs.mutable_read(), base + 1, base * 1'000 + 2);
  set(pfs.mutable_write(), base + 3, base * 1'000 + 4);
  set(pfs.mutable_metadata(), base + 5, 0);
  set(pfs.mutable_failed(), base + 6, 0);
  set(pfs.mutable_refused(), base + 7, 0);
  pfs.set_cost_done(base * 2'000);
  pfs.set_held_limit_us(base * 1'000'000 + 500'000);
  pfs.set_held_share_us(base * 2'000'000);
  pfs.set_held_kept_us(base * 7'000'000);
  pfs.set_held_depth_us(base * 3'000'000);
  pfs.set_held_class_us(base * 4'000'000);
  pfs.set_passed_limit(base + 8);
  pfs.mutable_read_usecs()->set_samples(base + 1);
  pfs.mutable_read_usecs()->set_sum(base * 5'000'000);
  pfs.mutable_write_usecs()->set_samples(base + 3);
  pfs.mutable_write_usecs()->set_sum(base * 6'000'000);
}

void fill_simulation(VirtualPfs& pfs) {
  pfs.set_name("job-\"7\"\\n");
  pfs.set_template_("job-{jobid}");
  pfs.set_rule("jobs");
  pfs.set_class_("bulk");
  pfs.set_jobid("\"7\"\\n");
  pfs.set_weight(4);
  pfs.set_nodes(16);
  pfs.set_keeps_no_queue(true);
  pfs.set_rate(100 << 20);
  pfs.set_allocated_rate(0);
  pfs.set_operations(2'000);
  pfs.set_allocated_operations(1'000);
  pfs.set_allocated_metadata_operations(300);
  pfs.set_min(10 << 20);
  pfs.set_latency_us(20'000);
  set(pfs.mutable_queued(), 12, 12 << 20);
  set(pfs.mutable_outstanding(), 2, 2 << 20);
  pfs.mutable_wait()->set_reason("held by its rate limit");
  pfs.mutable_wait()->set_since_us(250'000);
  pfs.mutable_held()->set_p50_us(1'000);
  pfs.mutable_held()->set_p99_us(100'000);
  pfs.mutable_held()->set_max_us(1'000'000);
  pfs.mutable_service()->set_p50_us(2'000);
  pfs.mutable_service()->set_p99_us(20'000);
  pfs.mutable_service()->set_max_us(2'000'000);
}

void add_rules(control::StatsReply& stats) {
  control::RuleState& jobs = *stats.add_rules();
  jobs.set_name("jobs");
  jobs.set_origin("administrator");
  jobs.set_virtual_pfs("job-{jobid}");
  jobs.set_class_("bulk");
  jobs.set_hits(123);
  jobs.set_virtual_pfs_made(17);
  control::RuleState& trial = *stats.add_rules();
  trial.set_name("trial");
  trial.set_origin("file");
  trial.set_shadow(true);
  trial.set_hits(45);
  trial.mutable_would_hold()->set_requests(6);
  trial.mutable_would_hold()->set_bytes(7'000);
  trial.mutable_would_hold()->set_seconds_us(8'500'000);
  trial.set_hidden_by("jobs");
}

}  // namespace

control::StatsReply example_stats() {
  control::StatsReply stats;
  stats.set_name("stor0");
  stats.set_upstream("stor0:3334");
  stats.set_policy("sfq");
  stats.set_at(1'700'000'500);
  stats.set_started_at(1'700'000'000);
  stats.set_connections(21);
  stats.set_depth_requests(16);
  stats.set_depth_bytes(64 << 20);
  stats.set_queued(12);
  stats.set_outstanding(2);
  stats.set_term(3);
  stats.set_allocated(true);
  stats.mutable_coordinator()->set_connected(true);
  stats.mutable_coordinator()->set_dials(3);
  stats.mutable_coordinator()->set_address("coord2:7312");
  for (const char* const each : {"coord1:7312", "coord2:7312"}) {
    stats.mutable_coordinator()->add_addresses(each);
  }
  fill_counters(*stats.mutable_retired(), 100);
  stats.set_certificate_ends_at(1790000000);
  stats.set_jobs_with_io(7);
  stats.set_registered_jobs_with_io(2);
  stats.set_virtual_pfs_retired(9);
  VirtualPfs& usual = *stats.add_virtual_pfs();
  usual.set_name("default");
  usual.set_weight(1);
  fill_counters(usual, 10);
  VirtualPfs& simulation = *stats.add_virtual_pfs();
  fill_simulation(simulation);
  fill_counters(simulation, 1'000);
  add_rules(stats);
  return stats;
}

}  // namespace vpfs::test
