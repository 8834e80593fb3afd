#pragma once

#include <chrono>
#include <thread>

#include <asio/io_context.hpp>

namespace vpfs::test {

// Whether it holds within the time, looked at again and again.
template <typename Holds>
[[nodiscard]] bool comes_true(Holds holds,
                              std::chrono::milliseconds within = std::chrono::seconds(20)) {
  const auto end = std::chrono::steady_clock::now() + within;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

// The same, where it comes true by what runs in `context`.
template <typename Holds>
[[nodiscard]] bool comes_true(asio::io_context& context, Holds holds,
                              std::chrono::milliseconds within = std::chrono::seconds(20)) {
  const auto end = std::chrono::steady_clock::now() + within;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    context.restart();
    context.run_one_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace vpfs::test
