#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <type_traits>
#include <utility>
#include <vector>

#include "net/signal.h"

namespace vpfs::net {

// Runs make(0), make(1), ... make(count - 1), each a Task with a value, at most `most` at once, and
// returns their values in that order: n requests that each take L together take one L, not n.
//
// Waits for all of them, whatever comes of some; then rethrows the first exception. The waiting
// coroutine is not cancellable, so every task has a deadline of its own. With GCC 12, give `make`
// a name before the co_await expression.
template <typename Make>
[[nodiscard]] auto gather(std::size_t count, std::size_t most, Make make)
    -> Task<std::vector<typename std::invoke_result_t<Make&, std::size_t>::value_type>> {
  using Value = typename std::invoke_result_t<Make&, std::size_t>::value_type;
  struct State {
    Signal ended;
    std::vector<Value> values;
    std::size_t next = 0;
    std::size_t running = 0;
    std::exception_ptr problem;
  };
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  State state{.ended = Signal(executor), .values = std::vector<Value>(count), .problem = nullptr};
  const auto run_some = [](State& work, Make& make_one) -> Task<> {
    while (work.next < work.values.size()) {
      const std::size_t index = work.next++;
      work.values[index] = co_await make_one(index);
    }
  };
  const auto one_ended = [&state](const std::exception_ptr& problem) {
    if (problem && !state.problem) state.problem = problem;
    if (--state.running == 0) state.ended.notify_all();
  };
  for (std::size_t i = std::min(count, std::max<std::size_t>(most, 1)); i > 0; --i) {
    ++state.running;
    asio::co_spawn(executor, run_some(state, make), one_ended);
  }
  while (state.running > 0) co_await state.ended.wait();
  if (state.problem) std::rethrow_exception(state.problem);
  co_return std::move(state.values);
}

}  // namespace vpfs::net
