#include "tools/selftest/phase_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace vpfs::selftest {

std::string to_text(const Phase& phase) {
  std::string text = fmt::format("{} {}, {} in flight", to_string(phase.size),
                                 phase.reads ? "reads" : "writes", phase.in_flight);
  if (!phase.weights.empty())
    text += fmt::format(" each, weights {}", fmt::join(phase.weights, ":"));
  return text + (phase.path == Path::direct ? ", direct" : ", through the proxy");
}

std::string to_text(const Measurement& measurement) {
  std::string text = to_text(measurement.phase);
  if (measurement.limit.count > 0) text += fmt::format(", limit {}", to_string(measurement.limit));
  text += ": ";
  const std::size_t count = measurement.applications.size();
  for (std::size_t i = 0; i < count; ++i) {
    text += fmt::format("{}{:.1f}", i == 0 ? "" : " and ", measurement.mib_per_second(i));
  }
  return text + fmt::format(" MiB/s, {:.0f} requests/s", measurement.requests_per_second());
}

}  // namespace vpfs::selftest
