#pragma once

#include <exception>
#include <optional>
#include <utility>

#include "net/async.h"

namespace vpfs::test {

// Runs a coroutine, and everything that it started, to the end. Nothing else runs the io_context.
template <typename T>
T run_task(asio::io_context& context, net::Task<T> task) {
  std::optional<T> result;
  asio::co_spawn(context, std::move(task), [&result](std::exception_ptr error, T value) {
    if (error) std::rethrow_exception(error);
    result.emplace(std::move(value));
  });
  context.restart();
  context.run();
  return std::move(result.value());
}

}  // namespace vpfs::test
