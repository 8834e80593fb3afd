#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace vpfs::trace {

// The input is wrong; exit code 2.
class BadInput : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
// Exit code 1.
class CannotWrite : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

[[nodiscard]] bool all_digits(std::string_view text);
[[nodiscard]] std::string_view without_leading_zeros(std::string_view digits);

// The whole file; "-" is standard input. Throws BadInput.
[[nodiscard]] std::string read_file(const std::string& name);
// To standard output. Both throw CannotWrite.
void print(std::string_view text);
void finish_printing();

// Lines of comma-separated fields without quotes, behind a header. Mistakes throw BadInput with the
// file's name and the line.
class CsvReader {
 public:
  CsvReader(std::string name, std::string text, std::string_view header);

  // False at the end.
  [[nodiscard]] bool next();
  // The fields of the present line, as many as the header has; valid until the reader ends.
  [[nodiscard]] const std::vector<std::string_view>& fields() const { return fields_; }
  // A field as a number of at most `most`; `least` is 0 or 1.
  [[nodiscard]] std::uint64_t number(std::size_t field, std::uint64_t least,
                                     std::uint64_t most) const;
  [[noreturn]] void fail(const std::string& what) const;

 private:
  std::string_view next_line();

  std::string name_;
  std::string text_;
  std::size_t at_ = 0;
  std::size_t line_ = 0;
  std::vector<std::string_view> names_;  // of the fields
  std::vector<std::string_view> fields_;
};

// Calls run() and says what it throws. Returns the program's exit code.
[[nodiscard]] int guarded(const char* program, int (*run)(int argc, char** argv), int argc,
                          char** argv);

}  // namespace vpfs::trace
