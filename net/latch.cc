#include "net/latch.h"

#include <utility>

#include <asio/post.hpp>

#include "base/check.h"

namespace vpfs::net {

void Latch::done() {
  VPFS_ASSERT(pending_ > 0);
  if (--pending_ > 0 || !waiter_) return;
  Waiter waiter = std::move(*waiter_);
  waiter_.reset();
  asio::post(executor_, std::move(waiter));
}

Task<> Latch::wait() {
  if (pending_ == 0) co_return;
  VPFS_ASSERT(!waiter_);
  const auto keep = [this](Waiter waiter) { waiter_.emplace(std::move(waiter)); };
  co_await asio::async_initiate<const asio::use_awaitable_t<>, void()>(keep, asio::use_awaitable);
}

}  // namespace vpfs::net
