#include "sim/device/device.h"

#include <algorithm>

#include "base/check.h"

namespace vpfs::sim {
namespace {

bool is_free_later(const Pipe& one, const Pipe& other) {
  return other.is_free_before(one);
}

}  // namespace

Device::Device(Settings settings)
    : settings_(settings), channels_(settings.parallelism, Pipe(settings.cost_per_second)) {
  VPFS_ASSERT(settings.parallelism >= 1 && settings.cost_per_second >= 1);
}

TimePoint Device::serve(Cost cost, TimePoint now) {
  std::ranges::pop_heap(channels_, is_free_later);
  const TimePoint end =
      channels_.back().pass(cost * settings_.parallelism, now, settings_.per_request);
  std::ranges::push_heap(channels_, is_free_later);
  return end;
}

void Device::set_rate(std::uint64_t cost_per_second) {
  for (Pipe& channel : channels_) channel.set_rate(cost_per_second);
  // Rounding may have made equals of two.
  std::ranges::make_heap(channels_, is_free_later);
}

}  // namespace vpfs::sim
