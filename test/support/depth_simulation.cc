#include "test/support/depth_simulation.h"

#include <algorithm>

namespace vpfs {

DepthSimulation::DepthSimulation(Server server, Demand demand, std::uint64_t seed,
                                 DepthController* controller, std::uint32_t fixed_depth)
    : server_(server),
      demand_(demand),
      random_(seed),
      controller_(controller),
      fixed_depth_(fixed_depth) {
  if (demand_.on > Duration::zero()) toggle_ = TimePoint(demand_.on);
}

void DepthSimulation::set_server(const Server& server) {
  server_ = server;
  fill();
}

void DepthSimulation::run(Duration until) {
  const TimePoint end(until);
  dispatch();
  for (;;) {
    const TimePoint next = events_.empty() ? TimePoint::max() : events_.top().at;
    if (std::min(next, toggle_) > end) break;
    if (toggle_ <= next) {
      now_ = toggle_;
      on_ = !on_;
      toggle_ += on_ ? demand_.on : demand_.off;
    } else {
      const Event event = events_.top();
      events_.pop();
      now_ = event.at;
      handle(event);
    }
    dispatch();
  }
  now_ = end;
}

void DepthSimulation::handle(const Event& event) {
  if (!event.served) {
    --busy_;
    fill();
    if (event.outside > Duration::zero()) {
      events_.push({now_ + event.outside, order_++, event.sent, {}, true});
      return;
    }
  }
  --outstanding_;
  ++done_;
  if (controller_ != nullptr) controller_->completed(event.sent, outstanding_, now_);
}

void DepthSimulation::dispatch() {
  for (;;) {
    const std::uint32_t depth = controller_ != nullptr ? controller_->depth() : fixed_depth_;
    if (outstanding_ >= depth) return;
    if (!on_ || outstanding_ >= demand_.in_flight) {
      if (controller_ != nullptr) controller_->starved(now_);
      return;
    }
    ++outstanding_;
    waiting_.push_back(now_);
    fill();
    if (controller_ != nullptr) controller_->dispatched(outstanding_, now_);
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
    events_.push({now_ + service, order_++, waiting_.front(), outside, false});
    waiting_.pop_front();
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
