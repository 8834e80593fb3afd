#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "test/support/process.h"

namespace vpfs::test {

// How a program ended, and what it said.
struct Outcome {
  int code = -1;  // exit code; -1 if a signal ended it or it still runs
  std::string output;
  std::string errors;

  [[nodiscard]] bool ok() const { return code == 0; }
  [[nodiscard]] std::string text() const { return output + errors; }
};

// Waits for the end.
[[nodiscard]] inline Outcome outcome_of(Process& process,
                                        std::chrono::milliseconds patience = 30s) {
  const auto exit = process.wait(patience);
  return {.code = exit ? exit->code : -1, .output = process.output(), .errors = process.errors()};
}

// Runs `command` to its end.
[[nodiscard]] inline Outcome outcome_of(
    std::vector<std::string> command,
    const std::vector<std::pair<std::string, std::string>>& environment = {}) {
  Process process(std::move(command), environment);
  return outcome_of(process);
}

}  // namespace vpfs::test
