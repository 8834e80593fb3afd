#pragma once

#include <iostream>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

#include "base/version.h"

// The common part of all programs' command lines. Only *_main.cc may include it: the option library
// is slow to compile.
namespace vpfs {

inline constexpr int kBadUsage = 2;  // also the exit code for a configuration with mistakes

// Writes what `app` takes, from its own definitions, one thing each line with tabs between the
// parts:
//   program  NAME  DESCRIPTION
//   command  COMMAND  DESCRIPTION             COMMAND: its words, such as "rule start"
//   option  COMMAND  NAMES  VALUE  DESCRIPTION     NAMES: "-q,--quiet"; VALUE: "" for a flag
//   argument  COMMAND  NAME  COUNT  DESCRIPTION    COUNT: "one", "optional" or "any"
// Hidden ones are left out. Manual pages and completions are made of it.
inline void describe_command_line(const CLI::App& app, const std::string& command,
                                  std::ostream& out) {
  const auto one_line = [](std::string text) {
    for (char& letter : text) letter = letter == '\t' || letter == '\n' ? ' ' : letter;
    return text;
  };
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    const std::string description = one_line(option->get_description());
    if (option->get_positional()) {
      const bool any = option->get_expected_max() > 1;
      const std::string_view count = any ? "any" : (option->get_required() ? "one" : "optional");
      out << "argument\t" << command << '\t' << option->get_name(true) << '\t' << count << '\t'
          << description << '\n';
    } else {
      const bool is_flag = option->get_items_expected_max() == 0;
      out << "option\t" << command << '\t' << option->get_name(false, true) << '\t'
          << (is_flag ? std::string() : option->get_type_name()) << '\t' << description << '\n';
    }
  }
  for (const CLI::App* each : app.get_subcommands(nullptr)) {
    if (each->get_group().empty()) continue;
    const std::string name = (command.empty() ? "" : command + " ") + each->get_name();
    out << "command\t" << name << '\t' << one_line(each->get_description()) << '\n';
    describe_command_line(*each, name, out);
  }
}

// Parses the command line of `program` and adds --version to its options. Nothing when the program
// goes on; else its exit code, after printing the help, the version or the mistake. The only
// argument --describe-options, which the help does not show, prints what the program takes.
[[nodiscard]] inline std::optional<int> parse_command_line(CLI::App& app,
                                                           const std::string& program, int argc,
                                                           char** argv) {
  app.set_version_flag("--version", program + " " + std::string(version()));
  if (argc == 2 && std::string_view(argv[1]) == "--describe-options") {
    std::cout << "program\t" << program << '\t' << app.get_description() << '\n';
    describe_command_line(app, "", std::cout);
    return std::cout.flush() ? 0 : 1;
  }
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
