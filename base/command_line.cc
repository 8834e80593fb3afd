#include "base/command_line.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <iostream>
#include <limits>
#include <ostream>
#include <span>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include <CLI/CLI.hpp>

#include "base/nearest_word.h"
#include "base/version.h"

namespace vpfs {
namespace {

// Writes what `app` takes, from its own definitions, one thing each line with tabs between the
// parts:
//   program  NAME  DESCRIPTION
//   command  COMMAND  DESCRIPTION             COMMAND: its words, such as "rule start"
//   option  COMMAND  NAMES  VALUE  DESCRIPTION     NAMES: "-q,--quiet"; VALUE: "" for a flag
//   argument  COMMAND  NAME  COUNT  DESCRIPTION    COUNT: "one", "optional" or "any"
// Hidden ones are left out. Manual pages and completions are made of it.
void describe_command_line(const CLI::App& app, const std::string& command, std::ostream& out) {
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

void add_long_names(const CLI::App& app, std::vector<std::string>& names) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
}

UsageMistake mistake_of(const CLI::App& app, const CLI::Error& error) {
  UsageMistake mistake{.text = error.what(), .unknown = app.remaining(true)};
  const CLI::App* last = &app;
  add_long_names(app, mistake.options);
  while (!last->get_subcommands().empty()) {
    last = last->get_subcommands().front();
    mistake.command = last->get_name();
    add_long_names(*last, mistake.options);
  }
  for (const CLI::App* each : last->get_subcommands(nullptr)) {
    mistake.commands.push_back(each->get_name());
  }
  return mistake;
}

// What the library says, and what an unknown option may have meant.
std::string usual_text(const CLI::App* app, const CLI::Error& error) {
  std::string text = CLI::FailureMessage::simple(app, error);
  const UsageMistake mistake = mistake_of(*app, error);
  for (const std::string& each : mistake.unknown) {
    if (!each.starts_with("--")) continue;
    const auto nearest = nearest_word(each.substr(0, each.find('=')), mistake.options);
    if (nearest) text += "Did you mean " + *nearest + "?\n";
  }
  return text;
}

// A script's variable that is not set leaves an empty value, which must not count as none.
constexpr const char* kNotEmpty = "not empty";
CLI::Validator not_empty() {
  const auto check = [](const std::string& value) {
    return std::string(value.empty() ? "expected a value, not an empty one" : "");
  };
  return {check, "", kNotEmpty};
}

// The library reads 010 as eight, -1 as a large number, and takes one beyond the type for its most.
// It gets the number that is meant, in words that it reads right. Empty ones are left to it.
template <typename Number>
CLI::Validator whole_number() {
  const auto check = [](std::string& text) {
    Number number = 0;
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, number);
    if (read.ec == std::errc() && read.ptr == end) {
      text = std::to_string(number);
      return std::string();
    }
    if (text.empty()) return std::string();
    using Limits = std::numeric_limits<Number>;
    return "expected a whole number, " + std::to_string(Limits::min()) + " to " +
           std::to_string(Limits::max()) + ", not '" + text + "'";
  };
  return {check, "", "whole number"};
}

// Checks the words of a value, or of each one of a list, before the library reads them.
template <typename Value>
void check_words(CLI::Option& option, const Value& /*value*/) {
  if constexpr (std::is_integral_v<Value>) option.transform(whole_number<Value>());
}
template <typename Each>
void check_words(CLI::Option& option, const std::vector<Each>& /*value*/) {
  if constexpr (std::is_integral_v<Each>) option.transform(whole_number<Each>());
}

// Whether `name` is an option, of `app` or a command, that takes a value.
bool takes_value(const CLI::App& app, std::string_view name) {
  const auto is_meant = [&](const CLI::Option* option) {
    return option->get_items_expected_max() > 0 && option->check_name(std::string(name));
  };
  return std::ranges::any_of(app.get_options(), is_meant) ||
         std::ranges::any_of(app.get_subcommands(nullptr),
                             [&](const CLI::App* each) { return takes_value(*each, name); });
}

// "--name=" as the two words "--name" and "": the library would take the next word for the value.
std::vector<std::string> words_of(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> words;
  bool is_value = false;  // of the option before it
  bool are_arguments = false;
  for (std::string_view word : std::span(argv, static_cast<std::size_t>(argc))) {
    are_arguments |= !is_value && word == "--";
    const std::string_view name = word.substr(0, word.find('='));
    const bool is_option = !is_value && !are_arguments && name.starts_with("--") &&
                           name.size() > 2 && takes_value(app, name);
    is_value = is_option && name == word;
    const bool is_empty = is_option && name.size() + 1 == word.size();
    words.emplace_back(is_empty ? name : word);
    if (is_empty) words.emplace_back();
  }
  return words;
}

// Nothing when the program goes on; else the exit code of the library.
std::optional<int> parse_words(CLI::App& app, int argc, char** argv) {
  const std::vector<std::string> words = words_of(app, argc, argv);
  std::vector<const char*> pointers;
  for (const std::string& word : words) pointers.push_back(word.c_str());
  try {
    app.parse(static_cast<int>(pointers.size()), pointers.data());
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  return std::nullopt;
}

}  // namespace

Option& Option::required() {
  option_->required();
  return *this;
}

Option& Option::hidden() {
  option_->group("");
  return *this;
}

Option& Option::value_name(const std::string& name) {
  option_->type_name(name);
  return *this;
}

Option& Option::separated_by_commas() {
  option_->delimiter(',');
  return *this;
}

Option& Option::one_value_each_time() {
  option_->allow_extra_args(false);
  return *this;
}

Option& Option::may_be_empty() {
  option_->get_validator(kNotEmpty)->active(false);
  return *this;
}

Option& Option::positive() {
  option_->check(CLI::PositiveNumber);
  return *this;
}

Option& Option::one_of(const std::vector<std::string>& words) {
  option_->check(CLI::IsMember(words));
  return *this;
}

template <typename Number>
Option& Option::between(Number least, std::type_identity_t<Number> most) {
  option_->check(CLI::Range(least, most));
  return *this;
}

template Option& Option::between(int, int);
template Option& Option::between(std::uint32_t, std::uint32_t);
template Option& Option::between(std::uint64_t, std::uint64_t);
template Option& Option::between(double, double);

Option& Option::needs(const Option& other) {
  option_->needs(other.option_);
  return *this;
}

Option& Option::excludes(const Option& other) {
  option_->excludes(other.option_);
  return *this;
}

template <typename Value>
Option Command::add_option(const std::string& names, Value& value, const std::string& about) const {
  CLI::Option* const option = app_->add_option(names, value, about);
  if (names.starts_with('-')) option->check(not_empty());
  check_words(*option, value);
  return Option(*option);
}

template Option Command::add_option(const std::string&, std::string&, const std::string&) const;
template Option Command::add_option(const std::string&, double&, const std::string&) const;
template Option Command::add_option(const std::string&, int&, const std::string&) const;
template Option Command::add_option(const std::string&, std::uint16_t&, const std::string&) const;
template Option Command::add_option(const std::string&, std::uint32_t&, const std::string&) const;
template Option Command::add_option(const std::string&, std::uint64_t&, const std::string&) const;
template Option Command::add_option(const std::string&, std::vector<std::string>&,
                                    const std::string&) const;
template Option Command::add_option(const std::string&, std::vector<std::uint16_t>&,
                                    const std::string&) const;
template Option Command::add_option(const std::string&, std::vector<std::uint32_t>&,
                                    const std::string&) const;
template Option Command::add_option(const std::string&, std::vector<std::uint64_t>&,
                                    const std::string&) const;

Option Command::add_choice(const std::string& names, const std::function<void(const int&)>& set,
                           const std::map<std::string, int>& words,
                           const std::string& about) const {
  CLI::Option* const option = app_->add_option_function<int>(names, set, about);
  option->transform(CLI::CheckedTransformer(words).description(""));
  return Option(*option);
}

Option Command::add_flag(const std::string& names, bool& value, const std::string& about) const {
  return Option(*app_->add_flag(names, value, about));
}

Command Command::add_command(const std::string& name, const std::string& about,
                             std::function<void()> chosen) const {
  CLI::App* const command = app_->add_subcommand(name, about);
  if (chosen) command->callback(std::move(chosen));
  return Command(*command);
}

void Command::require_command() const {
  app_->require_subcommand(1);
}

void Command::take_options_after_commands() const {
  app_->fallthrough();
}

OptionParser::OptionParser(const std::string& about)
    : OptionParser(std::make_unique<CLI::App>(about)) {}

OptionParser::OptionParser(std::unique_ptr<CLI::App> app) : Command(*app), owned_(std::move(app)) {
  owned_->failure_message(usual_text);
}

OptionParser::~OptionParser() = default;

void OptionParser::describe_mistakes(std::function<std::string(const UsageMistake&)> text) const {
  app().failure_message([text = std::move(text)](const CLI::App* of, const CLI::Error& error) {
    return text(mistake_of(*of, error));
  });
}

std::optional<int> OptionParser::parse(const std::string& program, int argc, char** argv) const {
  app().set_version_flag("--version", program + " " + std::string(version()));
  if (argc == 2 && std::string_view(argv[1]) == "--describe-options") {
    std::cout << "program\t" << program << '\t' << app().get_description() << '\n';
    describe_command_line(app(), "", std::cout);
    return std::cout.flush() ? 0 : 1;
  }
  const std::optional<int> code = parse_words(app(), argc, argv);
  if (!code) return std::nullopt;
  return *code == 0 ? 0 : kBadUsage;
}

std::optional<int> OptionParser::parse(int argc, char** argv) const {
  return parse_words(app(), argc, argv);
}

int OptionParser::missing(const std::string& option) const {
  (void)app().exit(CLI::RequiredError(option));
  return kBadUsage;
}

int exit_after_output(std::string_view program, int code) {
  errno = 0;
  std::cout.flush();
  const bool is_flushed = std::fflush(stdout) == 0;
  const int error = errno;
  if (is_flushed && std::ferror(stdout) == 0 && std::cout.good()) return code;
  // What failed before has left no reason.
  std::cerr << program << ": standard output: "
            << (error == 0 ? "not all of it could be written"
                           : std::generic_category().message(error))
            << "\n";
  return code == 0 ? 1 : code;
}

}  // namespace vpfs
