#pragma once

#include <cstdint>
#include <exception>

#include <asio/co_spawn.hpp>
#include <asio/this_coro.hpp>

#include "net/async.h"
#include "net/latch.h"

namespace vpfs::load {

// Runs `count` coroutines made by `make(index)` at once, and returns when all have ended.
template <typename Make>
net::Task<> all_of(std::uint64_t count, Make make) {
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  net::Latch latch(executor);
  const auto done = [&latch](const std::exception_ptr& problem) {
    if (problem) std::rethrow_exception(problem);
    latch.done();
  };
  for (std::uint64_t i = 0; i < count; ++i) {
    latch.expect();
    asio::co_spawn(executor, make(i), done);
  }
  co_await latch.wait();
}

}  // namespace vpfs::load
