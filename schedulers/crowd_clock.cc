#include "schedulers/crowd_clock.h"

#include <utility>

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
  const std::uint32_t before = std::exchange(row.weight, weight);
  if (weight == before || row.phase == Phase::absent) return;
  clock_.go_on(now);
  clock_.share_on();
  clock_.in_flight_weight = clock_.in_flight_weight - before + weight;
  row.entitled += clock_.share * before - clock_.share * weight;
}

Crowding CrowdClock::crowding(std::uint32_t flow, TimePoint now) const {
  if (flow >= rows_.size()) return {};
  Clock clock = clock_;
  clock.go_on(now);
  clock.share_on();
  Row row = rows_[flow];
  if (row.phase == Phase::at_server) row.without_queue += clock.crowded;
  if (row.phase != Phase::absent) {
    row.present += now.time_since_epoch();
    row.in_flight += clock.crowded;
    row.entitled += clock.share * row.weight;
  }
  return {.present = row.present,
          .in_flight = row.in_flight,
          .without_queue = row.without_queue,
          .entitled = row.entitled,
          .crowded = clock.crowded,
          .sent = sent_};
}

}  // namespace vpfs
