#pragma once

#include <cstddef>
#include <deque>

#include "net/async.h"

namespace vpfs::net {

// A number of permits that coroutines of one strand take and give back. The longest waiter gets the
// next one. Waiters cannot be cancelled, but close() ends them. Outlives its waiters.
class Permits {
 public:
  Permits(asio::any_io_executor executor, std::size_t permits)
      : executor_(std::move(executor)), free_(permits) {}
  Permits(const Permits&) = delete;
  Permits& operator=(const Permits&) = delete;

  // False once closed; the caller then has no permit.
  [[nodiscard]] Task<bool> take();
  // The waiter resumes in a later turn of the event loop, never inside this call.
  void give_back();
  void close();

  [[nodiscard]] std::size_t waiting() const { return waiters_.size(); }

 private:
  using Waiter = asio::async_result<asio::use_awaitable_t<>, void(bool)>::handler_type;
  void wake(Waiter waiter, bool granted);

  asio::any_io_executor executor_;
  std::size_t free_;
  std::deque<Waiter> waiters_;
  bool closed_ = false;
};

}  // namespace vpfs::net
