#pragma once

#include <cstdlib>
#include <ctime>
#include <optional>
#include <string>

namespace vpfs::test {

// The process is in this time zone as long as the object lives. Other tests run in the same
// process, so the zone before it comes back. REQUIRES: no other thread looks at the environment.
class TimeZone {
 public:
  explicit TimeZone(const char* zone) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe)
    if (const char* const before = std::getenv("TZ"); before != nullptr) before_ = before;
    set(zone);
  }
  ~TimeZone() { set(before_ ? before_->c_str() : nullptr); }
  TimeZone(const TimeZone&) = delete;
  TimeZone& operator=(const TimeZone&) = delete;

  // Null: that of the machine.
  static void set(const char* zone) {
    if (zone == nullptr) {
      ::unsetenv("TZ");  // NOLINT(concurrency-mt-unsafe)
    } else {
      ::setenv("TZ", zone, 1);  // NOLINT(concurrency-mt-unsafe)
    }
    ::tzset();
  }

 private:
  std::optional<std::string> before_;
};

}  // namespace vpfs::test
