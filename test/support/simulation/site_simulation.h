#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <queue>
#include <random>
#include <vector>

#include "schedulers/limits.h"
#include "schedulers/policies/anticipation_settings.h"
#include "schedulers/rate_limits.h"
#include "schedulers/scheduler.h"

namespace vpfs {

// An application of a SiteSimulation, in closed loop.
struct SiteWork {
  std::uint32_t weight = 1;
  std::vector<std::size_t> servers;
  bool striped = true;                // each I/O has a part on all of its servers
  std::uint32_t in_flight = 24;       // I/Os; not striped: requests on each server
  std::uint64_t part = 256 * kKiB;    // bytes of an I/O on a server
  Duration think = Duration::zero();  // from the end of an I/O to the next one
  BytesPerSecond rate = {};           // of its share; 0: no limit
  Duration begin = Duration::zero();
  Duration end = Duration::max();
};

// Several servers of the same speed, each behind a scheduler of its own, and a coordinator that
// tells the schedulers what was done elsewhere, in virtual time. As a coordinator with fused cycles
// does, it tells in each cycle what stages reported in the one before.
class SiteSimulation {
 public:
  struct Settings {
    std::size_t servers = 4;
    std::uint64_t speed = 40 * kMiB;  // of each server, cost a second
    std::uint32_t depth = 4;
    AnticipationSettings anticipation = {};
    // The schedulers are lanes of one data server: limits count for all of them together.
    bool lanes = false;
    Duration period = std::chrono::milliseconds(50);
    Duration delay = std::chrono::milliseconds(500);
    double jitter = 0;         // of a period: cycles are late by up to so much
    double service_noise = 0;  // of a request: it takes longer or shorter by up to so much
    Duration coordinator_begins = Duration::zero();
    std::uint64_t seed = 1;
  };

  SiteSimulation(const Settings& settings, std::vector<SiteWork> works);

  void run_until(TimePoint end);
  [[nodiscard]] TimePoint now() const { return now_; }
  // What the application had of all servers together.
  [[nodiscard]] Cost done(std::size_t app) const;
  [[nodiscard]] Cost done(std::size_t app, std::size_t server) const {
    return servers_[server].done[app];
  }
  void set_weight(std::size_t app, std::uint32_t weight);
  // A coordinator's limits, on every server.
  void set_limits(std::size_t app, const Limits& limits);
  [[nodiscard]] const Scheduler& scheduler(std::size_t server) const {
    return *servers_[server].scheduler;
  }

 private:
  struct Io {
    std::size_t app = 0;
    std::size_t parts_left = 0;
  };
  struct Part {
    IoRequest request;
    Io* io = nullptr;
    std::size_t server = 0;
  };
  enum class Kind : std::uint8_t { completion, wake, cycle, begin, thought };
  struct Event {
    TimePoint at = {};
    std::uint64_t order = 0;
    Kind kind = Kind::wake;
    std::size_t index = 0;  // of a server or an application
    Part* part = nullptr;
    std::size_t server = 0;  // of the next request of an application that is not striped

    bool operator>(const Event& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };
  struct Server {
    std::unique_ptr<Scheduler> scheduler;
    TimePoint busy_until = {};
    TimePoint wake = kNever;
    std::vector<Cost> done;      // by application
    std::vector<Cost> reported;  // the last report
    std::vector<Cost> told;      // elsewhere
  };

  void add(TimePoint at, Kind kind, std::size_t index, Part* part = nullptr);
  void handle(const Event& event);
  void submit_next(std::size_t app, std::size_t server);
  void submit(std::size_t app, std::size_t server);
  void submit_striped(std::size_t app);
  void make_part(Io& io, std::size_t server);
  void complete(Part& part);
  void pump(std::size_t server);
  void cycle();
  // A number from 1 - part to 1 + part.
  double around_one(double part);

  Settings settings_;
  std::vector<SiteWork> works_;
  RateLimits limits_;  // of lanes
  std::vector<Server> servers_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::deque<Io> ios_;
  std::deque<Part> parts_;
  std::vector<Io*> free_ios_;
  std::vector<Part*> free_parts_;
  std::mt19937_64 random_;
  TimePoint now_ = {};
  std::uint64_t order_ = 0;
  std::uint64_t cycles_ = 0;
};

}  // namespace vpfs
