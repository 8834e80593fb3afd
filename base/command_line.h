#pragma once

#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "base/version.h"

// The common part of all programs' command lines. Only *_main.cc may include it: the option library
// is slow to compile.
namespace vpfs {

inline constexpr int kBadUsage = 2;  // also the exit code for a configuration with mistakes

// Parses the command line of `program` and adds --version to its options. Nothing when the program
// goes on; else its exit code, after printing the help, the version or the mistake.
[[nodiscard]] inline std::optional<int> parse_command_line(CLI::App& app,
                                                           const std::string& program, int argc,
                                                           char** argv) {
  app.set_version_flag("--version", program + " " + std::string(version()));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kBadUsage;
  }
  return std::nullopt;
}

// For an option that parse_command_line() left empty. The library checks required options before
// unknown ones, so it would report a misspelt --config as a missing one.
[[nodiscard]] inline int missing_option(const CLI::App& app, const std::string& option) {
  (void)app.exit(CLI::RequiredError(option));
  return kBadUsage;
}

}  // namespace vpfs
