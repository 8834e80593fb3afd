#pragma once

#include <vector>

#include <asio/steady_timer.hpp>

#include "net/async.h"

namespace vpfs::dataserver {

// Coroutines of one strand wait for it; notify_all() resumes them in the next turn of the loop.
// Outlives its waiters.
class Signal {
 public:
  explicit Signal(asio::io_context& context) : context_(context) {}
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;

  // Returns after the next notify_all(); ask again for what was waited for.
  [[nodiscard]] net::Task<void> wait() {
    asio::steady_timer timer(context_, asio::steady_timer::time_point::max());
    waiters_.push_back(&timer);
    co_await timer.async_wait(net::kUseTask);
    std::erase(waiters_, &timer);
  }
  void notify_all() {
    for (asio::steady_timer* waiter : waiters_) waiter->cancel();
    waiters_.clear();
  }

 private:
  asio::io_context& context_;
  std::vector<asio::steady_timer*> waiters_;
};

}  // namespace vpfs::dataserver
