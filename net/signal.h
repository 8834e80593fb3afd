#pragma once

#include <vector>

#include <asio/steady_timer.hpp>

#include "base/clock.h"
#include "net/async.h"

namespace vpfs::net {

// A condition variable of one strand: coroutines wait for it, and notify_all() resumes them in a
// later turn of the event loop. A waiter checks again what it waited for.
//
// Outlives its waiters. A waiter that is never notified dies with the io_context.
class Signal {
 public:
  explicit Signal(asio::any_io_executor executor) : executor_(std::move(executor)) {}
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;

  [[nodiscard]] Task<> wait();
  // True if notified in time.
  [[nodiscard]] Task<bool> wait_for(Duration patience);
  void notify_all();

 private:
  struct Waiter {
    asio::steady_timer timer;
    bool notified = false;
  };
  [[nodiscard]] Task<bool> wait_until(asio::steady_timer::time_point deadline);

  asio::any_io_executor executor_;
  std::vector<Waiter*> waiters_;
};

}  // namespace vpfs::net
