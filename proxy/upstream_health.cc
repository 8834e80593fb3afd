#include "proxy/upstream_health.h"

#include <spdlog/spdlog.h>

#include "net/endpoint.h"

namespace vpfs::proxy {

void UpstreamHealth::failed(const net::Endpoint& server, const std::string& problem,
                            const std::string& whom, TimePoint now) {
  const std::lock_guard lock(mutex_);
  Outage& outage = outages_[server];
  if (!outage.down) ++trouble_;
  outage.down = true;
  if (!whom.empty()) ++outage.refused;
  if (outage.told || (now < outage.quiet_until && problem == outage.problem)) return;
  outage.told = true;
  outage.problem = problem;
  if (whom.empty()) {
    spdlog::warn("data server: {}; clients are refused until it answers", problem);
  } else {
    spdlog::warn(
        "client {} refused: data server: {}; further refusals are counted until it answers", whom,
        problem);
  }
}

void UpstreamHealth::note_reached(const net::Endpoint& server, TimePoint now) {
  const std::lock_guard lock(mutex_);
  const auto found = outages_.find(server);
  if (found == outages_.end() || !found->second.down) return;
  Outage& outage = found->second;
  outage.down = false;
  --trouble_;
  if (!outage.told) return;
  spdlog::info("data server {} answers again; clients refused meanwhile: {}",
               net::to_string(server), outage.refused);
  outage.told = false;
  outage.refused = 0;
  outage.quiet_until = now + kQuiet;
}

}  // namespace vpfs::proxy
