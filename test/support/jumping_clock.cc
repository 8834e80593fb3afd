// A library to preload: the time of day of one program jumps while it runs.
//
// The file that VPFS_CLOCK_FILE names has a signed number of 64 bits, in the byte order of this
// machine: so many nanoseconds are added to what CLOCK_REALTIME says. It is mapped, so a change is
// seen at once. Clocks that only go forward are left alone, as by a person who sets the clock.

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <ctime>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

const std::atomic<std::int64_t>* map_offset() {
  const char* const name = std::getenv("VPFS_CLOCK_FILE");
  if (name == nullptr) return nullptr;
  const int file = ::open(name, O_RDONLY | O_CLOEXEC);
  if (file < 0) return nullptr;
  void* const place = ::mmap(nullptr, sizeof(std::int64_t), PROT_READ, MAP_SHARED, file, 0);
  ::close(file);
  if (place == MAP_FAILED) return nullptr;
  return static_cast<const std::atomic<std::int64_t>*>(place);
}

std::int64_t offset() {
  static const std::atomic<std::int64_t>* const mapped = map_offset();
  return mapped == nullptr ? 0 : mapped->load(std::memory_order_relaxed);
}

using GetTime = int (*)(clockid_t, timespec*);

int real_time(clockid_t clock, timespec* out) {
  static const auto next = reinterpret_cast<GetTime>(::dlsym(RTLD_NEXT, "clock_gettime"));
  if (next != nullptr) return next(clock, out);
  return static_cast<int>(::syscall(SYS_clock_gettime, clock, out));
}

timespec moved(const timespec& time) {
  const std::int64_t whole = time.tv_sec * kSecond + time.tv_nsec + offset();
  return {.tv_sec = whole / kSecond, .tv_nsec = whole % kSecond};
}

}  // namespace

// Others call them by their C names.
extern "C" {

int clock_gettime(clockid_t clock, timespec* out) noexcept {
  const int result = real_time(clock, out);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    *out = moved(*out);
  }
  return result;
}

int gettimeofday(timeval* out, void* /*zone*/) noexcept {
  timespec now = {};
  const int result = clock_gettime(CLOCK_REALTIME, &now);
  if (result == 0) *out = {.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
  return result;
}

time_t time(time_t* out) noexcept {
  timespec now = {};
  (void)clock_gettime(CLOCK_REALTIME, &now);
  if (out != nullptr) *out = now.tv_sec;
  return now.tv_sec;
}
}
