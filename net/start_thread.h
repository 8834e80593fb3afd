#pragma once

#include <functional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/result.h"
#include "base/signal_block.h"

namespace vpfs::net {

// Starts a thread that takes no signal: those are for the main thread.
[[nodiscard]] inline Result<std::thread> start_thread(std::function<void()> run) {
  const SignalBlock no_signals;
  try {
    return std::thread(std::move(run));
  } catch (const std::system_error& problem) {
    return fail(std::string("cannot start a thread: ") + problem.what(), problem.code());
  }
}

}  // namespace vpfs::net
