#include "tools/selftest/phase.h"

namespace vpfs::selftest {
namespace {

double per_second(std::uint64_t count, Duration length) {
  return length > Duration::zero() ? static_cast<double>(count) / in_seconds(length) : 0;
}

}  // namespace

double Measurement::mib_per_second(std::size_t application) const {
  return per_second(applications[application].bytes, length) / static_cast<double>(kMiB);
}

double Measurement::mib_per_second() const {
  double sum = 0;
  for (std::size_t i = 0; i < applications.size(); ++i) sum += mib_per_second(i);
  return sum;
}

double Measurement::requests_per_second() const {
  double sum = 0;
  for (const Got& each : applications) sum += per_second(each.requests, length);
  return sum;
}

}  // namespace vpfs::selftest
