#pragma once

#include <cstddef>
#include <deque>

#include "net/async.h"

namespace vpfs::client {

// A number of slots that coroutines of one strand take and give back; whoever waits longest gets
// the next. Waiters are not cancellable, but close() ends them. Outlives its waiters.
class FifoSlots {
 public:
  FifoSlots(asio::any_io_executor executor, std::size_t slots)
      : executor_(std::move(executor)), free_(slots) {}
  FifoSlots(const FifoSlots&) = delete;
  FifoSlots& operator=(const FifoSlots&) = delete;

  // False when closed, and then nothing is taken.
  [[nodiscard]] net::Task<bool> take();
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

}  // namespace vpfs::client
