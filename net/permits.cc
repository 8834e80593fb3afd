#include "net/permits.h"

#include <utility>

#include <asio/post.hpp>

namespace vpfs::net {

Task<bool> Permits::take() {
  if (closed_) co_return false;
  // No coroutine waits while a permit is free: give_back() passes it on at once.
  if (free_ > 0) {
    --free_;
    co_return true;
  }
  const auto keep = [this](Waiter waiter) { waiters_.push_back(std::move(waiter)); };
  co_return co_await asio::async_initiate<const asio::use_awaitable_t<>, void(bool)>(
      keep, asio::use_awaitable);
}

void Permits::give_back() {
  if (waiters_.empty()) {
    ++free_;
    return;
  }
  Waiter next = std::move(waiters_.front());
  waiters_.pop_front();
  wake(std::move(next), true);
}

void Permits::close() {
  closed_ = true;
  for (Waiter& waiter : std::exchange(waiters_, {})) wake(std::move(waiter), false);
}

void Permits::wake(Waiter waiter, bool granted) {
  asio::post(executor_, [waiter = std::move(waiter), granted]() mutable { waiter(granted); });
}

}  // namespace vpfs::net
