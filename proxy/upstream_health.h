#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "net/async.h"

namespace vpfs::proxy {

// Logs when a data server stops answering and when it is back, instead of a line for each refused
// client. Thread-safe. reached() costs one load while all is well.
class UpstreamHealth {
 public:
  // A connection to `server` failed. `whom` is the client that is refused for it; "" at the start,
  // when there is none.
  void failed(const net::Endpoint& server, const std::string& problem, const std::string& whom,
              TimePoint now);
  void reached(const net::Endpoint& server, TimePoint now) {
    if (trouble_.load(std::memory_order_relaxed) > 0) note_reached(server, now);
  }

 private:
  // An outage for the same reason is logged once in this time.
  static constexpr Duration kQuiet = std::chrono::seconds(10);

  struct Outage {
    bool down = false;
    bool told = false;          // it is in the log
    std::uint64_t refused = 0;  // clients since the last line in the log
    std::string problem;        // the last one in the log, even of an earlier outage
    TimePoint quiet_until;
  };
  void note_reached(const net::Endpoint& server, TimePoint now);

  std::mutex mutex_;  // guards what follows
  std::map<net::Endpoint, Outage> outages_;
  std::atomic<std::size_t> trouble_ = 0;  // current outages
};

}  // namespace vpfs::proxy
