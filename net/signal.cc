#include "net/signal.h"

#include <utility>

namespace vpfs::net {

Task<> Signal::wait() {
  (void)co_await wait_until(asio::steady_timer::time_point::max());
}

Task<bool> Signal::wait_for(Duration patience) {
  asio::steady_timer timer(executor_, patience);
  co_return co_await wait_until(timer.expiry());
}

Task<bool> Signal::wait_until(asio::steady_timer::time_point deadline) {
  Waiter waiter{.timer = asio::steady_timer(executor_, deadline)};
  waiters_.push_back(&waiter);
  (void)co_await waiter.timer.async_wait(kUseTask);
  if (!waiter.notified) std::erase(waiters_, &waiter);
  co_return waiter.notified;
}

void Signal::notify_all() {
  for (Waiter* waiter : std::exchange(waiters_, {})) {
    waiter->notified = true;
    waiter->timer.cancel();
  }
}

}  // namespace vpfs::net
