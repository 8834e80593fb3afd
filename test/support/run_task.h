#pragma once

#include <exception>
#include <optional>
#include <utility>

#include "net/async.h"

namespace vpfs::test {

// Runs the loop, with everything on it, until `task` is done. Returns the task's result.
template <typename T>
T run_task(asio::io_context& loop, net::Task<T> task) {
  std::optional<T> result;
  const auto done = [&result](const std::exception_ptr& problem, T value) {
    if (problem) std::rethrow_exception(problem);
    result.emplace(std::move(value));
  };
  asio::co_spawn(loop, std::move(task), done);
  loop.restart();
  while (!result && loop.run_one() > 0) {
  }
  return std::move(*result);
}

inline void run_task(asio::io_context& loop, net::Task<> task) {
  bool finished = false;
  const auto done = [&finished](const std::exception_ptr& problem) {
    if (problem) std::rethrow_exception(problem);
    finished = true;
  };
  asio::co_spawn(loop, std::move(task), done);
  loop.restart();
  while (!finished && loop.run_one() > 0) {
  }
}

// Runs `task`, and everything that it started, to the end. Nothing else runs the loop.
template <typename T>
T run_to_end(asio::io_context& loop, net::Task<T> task) {
  T result = run_task(loop, std::move(task));
  loop.run();
  return result;
}

// Runs everything that is ready.
inline void drain(asio::io_context& loop) {
  loop.restart();
  loop.poll();
}

}  // namespace vpfs::test
