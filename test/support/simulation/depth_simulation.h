#pragma once

#include <cstdint>
#include <deque>
#include <random>

#include "schedulers/depth_controller.h"
#include "sim/engine/engine.h"

namespace vpfs {

// Clients, a depth and a data server in virtual time. `parallelism` requests are served at once,
// further ones wait in order of arrival. Service times are drawn in the order of service, so two
// runs with the same seed serve the same work, whatever their depths.
class DepthSimulation {
 public:
  enum class Shape : std::uint8_t { fixed, exponential, mixed_sizes };

  struct Server {
    std::uint32_t parallelism = 1;
    Duration service = std::chrono::milliseconds(1);  // the mean, without the tail
    Shape shape = Shape::fixed;
    Duration delay = {};  // a network: adds to the latency and occupies nothing
    // This many requests take 50 times as long, at the server or (like a delay) outside of it.
    std::uint32_t slow_per_mille = 0;
    bool slow_ones_occupy = true;
    // Each `parallelism` requests outstanding beyond the first make the service longer by this.
    std::uint32_t thrash_percent = 0;
  };

  // Clients that always have enough to send, or only for `on` of each on + off.
  struct Demand {
    Duration on = {};
    Duration off = {};
    std::uint32_t in_flight = UINT32_MAX;  // at most
  };

  // With no controller the depth is `fixed_depth`.
  DepthSimulation(Server server, Demand demand, std::uint64_t seed, DepthController* controller,
                  std::uint32_t fixed_depth = 0);

  // Changes the server from now on. Requests in service keep their times.
  void set_server(const Server& server);
  void run(Duration until);

  [[nodiscard]] std::uint64_t done() const { return done_; }

 private:
  // The order of events at one time.
  enum Rank : sim::Engine::Rank { kToggle, kService };

  void dispatch();
  void fill();
  void toggle();
  // `outside`: how long the reply is on its way.
  void end_service(TimePoint sent, Duration outside);
  void reply(TimePoint sent);
  [[nodiscard]] Duration draw_service();

  Server server_;
  Demand demand_;
  std::mt19937_64 random_;
  DepthController* controller_;
  std::uint32_t fixed_depth_;
  sim::Engine engine_;
  bool on_ = true;
  std::deque<TimePoint> waiting_;
  std::uint32_t busy_ = 0;
  std::uint32_t outstanding_ = 0;
  std::uint64_t done_ = 0;
};

}  // namespace vpfs
