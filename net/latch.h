#pragma once

#include <cstddef>
#include <optional>

#include "net/async.h"

namespace vpfs::net {

// Counts events that are still to come, and lets one coroutine wait for the last of them.
//
// Cheaper than a timer to cancel: a request costs one post to the event loop. Must outlive its
// events; the waiting coroutine is not cancellable, so every event has a deadline elsewhere.
class Latch {
 public:
  explicit Latch(asio::any_io_executor executor) : executor_(std::move(executor)) {}
  Latch(const Latch&) = delete;
  Latch& operator=(const Latch&) = delete;

  void expect() { ++pending_; }
  // The waiter resumes in a later turn of the event loop, never inside this call.
  void done();
  [[nodiscard]] Task<> wait();

 private:
  using Waiter = asio::async_result<asio::use_awaitable_t<>, void()>::handler_type;

  asio::any_io_executor executor_;
  std::size_t pending_ = 0;
  std::optional<Waiter> waiter_;
};

}  // namespace vpfs::net
