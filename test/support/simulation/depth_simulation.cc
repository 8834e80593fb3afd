#include "test/support/simulation/depth_simulation.h"

#include <algorithm>

namespace vpfs {

DepthSimulation::DepthSimulation(Server server, Demand demand, std::uint64_t seed,
                                 DepthController* controller, std::uint32_t fixed_depth)
    : server_(server),
      demand_(demand),
      random_(seed),
      controller_(controller),
      fixed_depth_(fixed_depth) {
  if (demand_.on > Duration::zero())
    engine_.after(
        demand_.on, [this] { toggle(); }, kToggle);
}

void DepthSimulation::set_server(const Server& server) {
  server_ = server;
  fill();
}

void DepthSimulation::run(Duration until) {
  const TimePoint end(until);
  dispatch();
  while (engine_.step(end)) dispatch();
  engine_.skip_to(end);
}

void DepthSimulation::toggle() {
  on_ = !on_;
  engine_.after(
      on_ ? demand_.on : demand_.off, [this] { toggle(); }, kToggle);
}

void DepthSimulation::end_service(TimePoint sent, Duration outside) {
  --busy_;
  fill();
  if (outside == Duration::zero()) return reply(sent);
  engine_.after(
      outside, [this, sent] { reply(sent); }, kService);
}

void DepthSimulation::reply(TimePoint sent) {
  --outstanding_;
  ++done_;
  if (controller_ != nullptr) controller_->completed(sent, outstanding_, engine_.now());
}

void DepthSimulation::dispatch() {
  for (;;) {
    const std::uint32_t depth = controller_ != nullptr ? controller_->depth() : fixed_depth_;
    if (outstanding_ >= depth) return;
    if (!on_ || outstanding_ >= demand_.in_flight) {
      if (controller_ != nullptr) controller_->starved(engine_.now());
      return;
    }
    ++outstanding_;
    waiting_.push_back(engine_.now());
    fill();
    if (controller_ != nullptr) controller_->dispatched(outstanding_, engine_.now());
  }
}

void DepthSimulation::fill() {
  while (!waiting_.empty() && busy_ < server_.parallelism) {
    Duration service = draw_service();
    Duration outside = server_.delay;
    if (server_.slow_per_mille > 0 && random_() % 1000 < server_.slow_per_mille) {
      (server_.slow_ones_occupy ? service : outside) += 49 * service;
    }
    if (outstanding_ > server_.parallelism) {
      service += service * (outstanding_ - server_.parallelism) * server_.thrash_percent /
                 (100 * server_.parallelism);
    }
    ++busy_;
    const TimePoint sent = waiting_.front();
    waiting_.pop_front();
    engine_.after(
        service, [this, sent, outside] { end_service(sent, outside); }, kService);
  }
}

Duration DepthSimulation::draw_service() {
  double factor = 1;
  if (server_.shape == Shape::exponential) {
    factor = std::exponential_distribution<>(1)(random_);
  } else if (server_.shape == Shape::mixed_sizes) {
    // 4 KiB to 4 MiB by powers of two, all as often: the mean is 2047 / 11 of the smallest.
    factor = static_cast<double>(1U << random_() % 11) * 11 / 2047;
  }
  return Duration(static_cast<std::int64_t>(static_cast<double>(server_.service.count()) * factor));
}

}  // namespace vpfs
