#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "net/async.h"

namespace vpfs::proxy {

// Tells the log when a data server stops to answer and when it is back, not each client that it was
// not there for. Thread-safe; reached() costs one load while all is well.
class UpstreamHealth {
 public:
  // A connection to `server` failed. `whom` is who is turned away for it; "": nobody yet.
  void failed(const net::Endpoint& server, const std::string& problem, const std::string& whom,
              TimePoint now);
  void reached(const net::Endpoint& server, TimePoint now) {
    if (trouble_.load(std::memory_order_relaxed) > 0) note_reached(server, now);
  }

 private:
  // A server that comes and goes for the same reason is told about once in that time.
  static constexpr Duration kQuiet = std::chrono::seconds(10);

  struct Outage {
    bool down = false;
    bool told = false;          // the log knows
    std::uint64_t refused = 0;  // clients, since the log last said how many
    std::string problem;        // that the log knows of, also from an outage before
    TimePoint quiet_until;
  };
  void note_reached(const net::Endpoint& server, TimePoint now);

  std::mutex mutex_;  // guards what follows
  std::map<net::Endpoint, Outage> outages_;
  std::atomic<std::size_t> trouble_ = 0;  // outages that are not over
};

}  // namespace vpfs::proxy
