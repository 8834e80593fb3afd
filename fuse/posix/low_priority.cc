#include "fuse/posix/low_priority.h"

#include <sys/resource.h>

#include "net/start_thread.h"

namespace vpfs::fuse {
namespace {

constexpr int kLow = 19;

// Linux has a priority for each thread.
bool set(int nice) {
  return ::setpriority(PRIO_PROCESS, 0, nice) == 0;
}

// What the program was started with, and every thread inherits.
int normal() {
  static const int nice = ::getpriority(PRIO_PROCESS, 0);
  return nice;
}

}  // namespace

bool LowPriority::is_possible() {
  const int before = normal();
  bool comes_back = false;
  Result<std::thread> thread = net::start_thread([&] { comes_back = set(kLow) && set(before); });
  if (!thread) return false;  // there are no threads to have
  thread->join();
  return comes_back && before < kLow;
}

void LowPriority::set_low() {
  (void)set(kLow);
}

void LowPriority::set_normal() {
  (void)set(normal());
}

}  // namespace vpfs::fuse
