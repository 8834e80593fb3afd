#pragma once

#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "base/version.h"

// What the command lines of all programs have in common. Only for *_main.cc: the option library
// takes seconds to compile.
namespace vpfs {

inline constexpr int kBadUsage = 2;  // also the exit code for a configuration with mistakes

// Parses the command line of `program`, to whose options it adds --version. Nothing when the
// program is to go on; else its exit code, after the help, the version or what is wrong was
// printed.
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

// For an option that parse_command_line() left empty. The library's own check of required options
// comes before that of unknown ones, so a misspelt --config would be told as a missing one.
[[nodiscard]] inline int missing_option(const CLI::App& app, const std::string& option) {
  (void)app.exit(CLI::RequiredError(option));
  return kBadUsage;
}

}  // namespace vpfs
