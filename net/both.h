#pragma once

#include <exception>
#include <optional>
#include <utility>

#include "net/signal.h"

namespace vpfs::net {

// Runs two tasks at once and returns the values of both: two requests that each take L together
// take one L.
//
// Waits for both, whatever comes of one; then rethrows the first exception. As with gather(), the
// waiting coroutine is not cancellable. Give the tasks names before the co_await expression.
template <typename First, typename Second>
[[nodiscard]] Task<std::pair<First, Second>> both(Task<First> first, Task<Second> second) {
  struct State {
    Signal ended;
    std::optional<First> first;
    std::optional<Second> second;
    int running = 2;
    std::exception_ptr problem;
  };
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  State state{.ended = Signal(executor), .first = {}, .second = {}, .problem = nullptr};
  const auto run = [](auto task, auto& into) -> Task<> { into = co_await std::move(task); };
  const auto one_ended = [&state](const std::exception_ptr& problem) {
    if (problem && !state.problem) state.problem = problem;
    if (--state.running == 0) state.ended.notify_all();
  };
  asio::co_spawn(executor, run(std::move(first), state.first), one_ended);
  asio::co_spawn(executor, run(std::move(second), state.second), one_ended);
  while (state.running > 0) co_await state.ended.wait();
  if (state.problem) std::rethrow_exception(state.problem);
  co_return std::pair(std::move(*state.first), std::move(*state.second));
}

}  // namespace vpfs::net
