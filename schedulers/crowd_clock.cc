#include "schedulers/crowd_clock.h"

namespace vpfs {

Crowding& Crowding::operator+=(const Crowding& more) {
  present += more.present;
  in_flight += more.in_flight;
  without_queue += more.without_queue;
  entitled += more.entitled;
  crowded += more.crowded;
  sent += more.sent;
  return *this;
}

void CrowdClock::grow(std::size_t flows) {
  if (flows > rows_.size()) rows_.resize(flows);
}

void CrowdClock::set_weight(std::uint32_t flow, std::uint32_t weight, TimePoint now) {
  Row& row = rows_[flow];
  if (row.weight == weight) return;
  clock_.go_on(now);
  clock_.settle(row);
  if (row.phase != Phase::absent) {
    clock_.in_flight_weight -= row.weight;
    clock_.in_flight_weight += weight;
  }
  row.weight = weight;
}

Crowding CrowdClock::crowding(std::uint32_t flow, TimePoint now) const {
  if (flow >= rows_.size()) return {};
  Clock clock = clock_;
  clock.go_on(now);
  Row row = rows_[flow];
  clock.settle(row);
  if (row.phase != Phase::absent) row.present += now.time_since_epoch();
  return {.present = row.present,
          .in_flight = row.in_flight,
          .without_queue = row.without_queue,
          .entitled = row.entitled,
          .crowded = clock.crowded,
          .sent = sent_};
}

}  // namespace vpfs
