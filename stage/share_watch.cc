#include "stage/share_watch.h"

namespace vpfs::stage {
namespace {

double nanoseconds(Duration time) {
  return static_cast<double>(time.count());
}

}  // namespace

bool ShareWatch::judge(const Reading& first, const Reading& last, Duration length) {
  const Crowding& before = first.crowding;
  const Crowding& now = last.crowding;
  const Duration in_flight = now.in_flight - before.in_flight;
  if (in_flight < length / 2 || in_flight <= Duration::zero()) return false;
  const double entitled = (now.entitled - before.entitled) /
                          nanoseconds(now.crowded - before.crowded) *
                          static_cast<double>(now.sent - before.sent);
  const auto got = static_cast<double>(last.sent - first.sent);
  if (got > 0.9 * entitled) return false;
  const double without_queue =
      nanoseconds(now.without_queue - before.without_queue) / nanoseconds(in_flight);
  return entitled * without_queue >= (entitled - got) / 2;
}

const ShareWatch::Verdict& ShareWatch::look(const Reading& reading, TimePoint now) {
  const std::size_t index = std::to_underlying(reading.id.app);
  if (index >= spans_.size()) spans_.resize(index + 1);
  Span& span = spans_[index];
  const Reading& first = span.first;
  Verdict& verdict = span.verdict;
  if (!span.has_begun || first.id != reading.id) {
    const Verdict sums = span.has_begun || first.id != reading.id ? Verdict{} : verdict;
    span = {.begin = now, .first = reading, .has_begun = true, .verdict = sums};
    return verdict;
  }
  if (first.schedulers != reading.schedulers || first.traffic_class != reading.traffic_class) {
    verdict.keeps_no_queue = false;
  } else if (now - span.begin < kSpan) {
    return verdict;
  } else {
    verdict.keeps_no_queue = judge(first, reading, now - span.begin);
    verdict.present += reading.crowding.present - first.crowding.present;
    verdict.in_flight += reading.crowding.in_flight - first.crowding.in_flight;
    verdict.without_queue += reading.crowding.without_queue - first.crowding.without_queue;
  }
  span.begin = now;
  span.first = reading;
  return verdict;
}

ShareWatch::Verdict ShareWatch::verdict(VirtualPfsId id) const {
  const std::size_t index = std::to_underlying(id.app);
  if (index >= spans_.size() || spans_[index].first.id != id) return {};
  return spans_[index].verdict;
}

void ShareWatch::begin_with(VirtualPfsId id, const Verdict& sums) {
  const std::size_t index = std::to_underlying(id.app);
  if (index >= spans_.size()) spans_.resize(index + 1);
  spans_[index] = {.begin = {}, .first = {.id = id}, .has_begun = false, .verdict = sums};
}

ShareWatch::Verdict ShareWatch::stop(VirtualPfsId id) {
  const std::size_t index = std::to_underlying(id.app);
  if (index >= spans_.size() || spans_[index].first.id != id) return {};
  Verdict& verdict = spans_[index].verdict;
  verdict.keeps_no_queue = false;
  return verdict;
}

}  // namespace vpfs::stage
