#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

// The option library. command_line.cc includes it instead of programs: it is slow to compile.
namespace CLI {  // NOLINT(readability-identifier-naming): it is the library's
class App;
class Option;
}  // namespace CLI

// What programs take on their command lines.
namespace vpfs {

inline constexpr int kBadUsage = 2;  // also the exit code for a configuration with mistakes

// An option, a flag or an argument of a command, to say more about it. It is valid as long as the
// OptionParser that it belongs to.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(&option) {}

  Option& required();
  // The help does not show it.
  Option& hidden();
  // What the help calls its value, such as FILE. Otherwise it is the kind of the value.
  Option& value_name(const std::string& name);
  // A value has several ones, with commas between them.
  Option& separated_by_commas();
  // A list gets one value each time that the option is given. Otherwise it takes all words up to
  // the next option.
  Option& one_value_each_time();
  // An empty value is as good as none.
  Option& may_be_empty();

  // What the values have to be. Each of a list is checked.
  Option& positive();
  Option& one_of(const std::vector<std::string>& words);
  // Both ends are allowed. For int, uint32_t, uint64_t and double.
  template <typename Number>
  Option& between(Number least, std::type_identity_t<Number> most);

  // Wrong without, or together with, another option.
  Option& needs(const Option& other);
  Option& excludes(const Option& other);

 private:
  CLI::Option* option_;
};

// The program itself, or one of its commands. It is valid as long as the OptionParser that it
// belongs to.
class Command {
 public:
  explicit Command(CLI::App& app) : app_(&app) {}

  // An option such as "-n,--count" with a value, or an argument such as "NAME". `value` keeps what
  // it has if the option is not given, and must outlive the parsing. An option's value is not
  // empty, see Option::may_be_empty(); an argument may be. For std::string, double, int, uint16_t,
  // uint32_t, uint64_t, and vectors of std::string and of these unsigned ones.
  template <typename Value>
  Option add_option(const std::string& names, Value& value, const std::string& about = "") const;
  // An option with one of these words as its value.
  template <typename Enum>
  requires std::is_enum_v<Enum> Option add_choice(const std::string& names, Enum& value,
                                                  const std::map<std::string, Enum>& words,
                                                  const std::string& about)
  const {
    std::map<std::string, int> numbers;
    for (const auto& [word, each] : words) numbers.emplace(word, static_cast<int>(each));
    return add_choice(
        names, [&value](const int& number) { value = static_cast<Enum>(number); }, numbers, about);
  }
  Option add_flag(const std::string& names, bool& value, const std::string& about = "") const;

  // `chosen` is called if the command line has this command.
  [[nodiscard]] Command add_command(const std::string& name, const std::string& about,
                                    std::function<void()> chosen = {}) const;
  // The command line has to name one of the commands added here.
  void require_command() const;
  // Options of this one may also come after its commands. Call it before commands are added.
  void take_options_after_commands() const;

 protected:
  [[nodiscard]] CLI::App& app() const { return *app_; }

 private:
  Option add_choice(const std::string& names, const std::function<void(const int&)>& set,
                    const std::map<std::string, int>& words, const std::string& about) const;

  CLI::App* app_;
};

// What is wrong with a command line.
struct UsageMistake {
  std::string text;                   // in one line
  std::vector<std::string> unknown;   // words that nothing takes
  std::string command;                // the last one that was recognized; "": none was
  std::vector<std::string> commands;  // names of those that may follow it
  std::vector<std::string> options;   // such as "--count": those of the program and its commands
};

// The command line of a program.
class OptionParser : public Command {
 public:
  explicit OptionParser(const std::string& about);
  OptionParser(const OptionParser&) = delete;
  OptionParser& operator=(const OptionParser&) = delete;
  ~OptionParser();

  // `text` makes what standard error gets for a mistake, with its newlines.
  void describe_mistakes(std::function<std::string(const UsageMistake&)> text) const;

  // Reads the command line of `program` and adds --version to its options. Nothing when the program
  // goes on; else its exit code, after printing the help, the version or the mistake. The only
  // argument --describe-options, which the help does not show, prints what the program takes.
  [[nodiscard]] std::optional<int> parse(const std::string& program, int argc, char** argv) const;
  // The same for programs that are not installed: they have neither --version nor
  // --describe-options, and the exit code of a mistake is one of 100 to 127 that says its kind.
  [[nodiscard]] std::optional<int> parse(int argc, char** argv) const;

  // For an option that parse() left empty: prints that it is required and returns the exit code.
  // The library checks required options before unknown ones, so it would report a misspelt
  // --config as a missing one.
  [[nodiscard]] int missing(const std::string& option) const;

 private:
  explicit OptionParser(std::unique_ptr<CLI::App> app);

  std::unique_ptr<CLI::App> owned_;
};

// The exit code of a program that would end with `code`: 1 instead of 0 if not all that it has
// printed could be written, which it then says on standard error.
[[nodiscard]] int exit_after_output(std::string_view program, int code);

}  // namespace vpfs
