#include "tools/sim/progress.h"

#include <cstdio>
#include <utility>

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

namespace vpfs::sim_tool {

Progress::Progress(std::string name)
    : name_(std::move(name)), is_live_(::isatty(STDERR_FILENO) == 1), begin_(clock_.now()) {}

void Progress::show(std::string_view what, std::uint64_t events) const {
  if (!is_live_) return;
  fmt::print(stderr, "\r{}: {}, {} events ", name_, what, events);
  (void)std::fflush(stderr);
}

void Progress::end(Duration virtual_time, std::uint64_t events) const {
  if (is_live_) fmt::print(stderr, "\r\x1b[K");
  const double seconds = std::chrono::duration<double>(clock_.now() - begin_).count();
  struct rusage usage = {};
  (void)::getrusage(RUSAGE_SELF, &usage);
  fmt::print(stderr,
             "{}: {:.1f} s of virtual time, {} events in {:.2f} s, {:.2f} million/s, {} MiB\n",
             name_, std::chrono::duration<double>(virtual_time).count(), events, seconds,
             static_cast<double>(events) / seconds / 1e6, usage.ru_maxrss / 1024);
}

}  // namespace vpfs::sim_tool
