#include "proxy/watchdogs.h"

namespace vpfs::proxy {
namespace {
constexpr Duration kPause = std::chrono::milliseconds(200);
constexpr Duration kEnd = std::chrono::seconds(2);
}  // namespace

Silence silence_of(Duration without_progress, Duration limit) {
  if (without_progress >= limit) return Silence::overdue;
  if (without_progress >= kEnd) return Silence::end;
  return without_progress >= kPause ? Silence::pause : Silence::none;
}

}  // namespace vpfs::proxy
