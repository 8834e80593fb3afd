#include "stage/counters.h"

namespace vpfs::stage {

Counters& Counters::operator+=(const Counters& other) {
  arrived += other.arrived;
  sent += other.sent;
  done += other.done;
  failed += other.failed;
  refused += other.refused;
  cost_sent += other.cost_sent;
  cost_done += other.cost_done;
  excess += other.excess;
  given_up += other.given_up;
  passed_limit += other.passed_limit;
  held += other.held;
  slow_client += other.slow_client;
  return *this;
}

void Histograms::merge(const Histograms& other) {
  wait.merge(other.wait);
  service.merge(other.service);
  statistics.merge(other.statistics);
  unscheduled += other.unscheduled;
}

}  // namespace vpfs::stage
