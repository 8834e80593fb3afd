#include "tools/trace/csv.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <memory>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace vpfs::trace {
namespace {

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  for (;;) {
    const std::size_t comma = line.find(',');
    fields.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

}  // namespace

bool all_digits(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](char letter) { return letter >= '0' && letter <= '9'; });
}

std::string_view without_leading_zeros(std::string_view digits) {
  return digits.substr(std::min(digits.find_first_not_of('0'), digits.size()));
}

std::string read_file(const std::string& name) {
  const auto fail = [&](std::string_view what) {
    throw BadInput(
        fmt::format("{}: cannot {}: {}", name, what, std::generic_category().message(errno)));
  };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
      name == "-" ? stdin : std::fopen(name.c_str(), "rbe"),
      [](std::FILE* opened) { return opened == stdin ? 0 : std::fclose(opened); });
  if (!file) fail("open");
  std::string text;
  std::vector<char> part(std::size_t{1} << 16);
  bool more = true;
  while (more) {
    const std::size_t got = std::fread(part.data(), 1, part.size(), file.get());
    text.append(part.data(), got);
    more = std::feof(file.get()) == 0 && std::ferror(file.get()) == 0;
  }
  if (std::ferror(file.get()) != 0) fail("read");
  return text;
}

void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) {
    throw CannotWrite(std::generic_category().message(errno));
  }
}

void finish_printing() {
  if (std::fflush(stdout) != 0) throw CannotWrite(std::generic_category().message(errno));
}

CsvReader::CsvReader(std::string name, std::string text, std::string_view header)
    : name_(std::move(name)), text_(std::move(text)), names_(fields_of(header)) {
  if (next_line() != header) fail(fmt::format("the header must be \"{}\"", header));
}

bool CsvReader::next() {
  if (at_ >= text_.size()) return false;
  fields_ = fields_of(next_line());
  if (fields_.size() != names_.size()) {
    fail(fmt::format("{} fields instead of {}", fields_.size(), names_.size()));
  }
  return true;
}

std::string_view CsvReader::next_line() {
  ++line_;
  const std::size_t end = std::min(text_.find('\n', at_), text_.size());
  std::string_view line = std::string_view(text_).substr(at_, end - at_);
  at_ = end + 1;
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::uint64_t CsvReader::number(std::size_t field, std::uint64_t least, std::uint64_t most) const {
  const std::string_view text = fields_[field];
  if (!all_digits(text)) fail(fmt::format("{}: \"{}\" is not a number", names_[field], text));
  std::uint64_t value = 0;
  for (const char digit : text) {
    if (__builtin_mul_overflow(value, 10U, &value) ||
        __builtin_add_overflow(value, static_cast<unsigned>(digit - '0'), &value) || value > most) {
      fail(fmt::format("{}: {} is more than {}", names_[field], text, most));
    }
  }
  if (value < least) fail(fmt::format("{}: must be more than zero", names_[field]));
  return value;
}

void CsvReader::fail(const std::string& what) const {
  throw BadInput(fmt::format("{}:{}: {}", name_, std::max<std::size_t>(line_, 1), what));
}

int guarded(const char* program, int (*run)(int argc, char** argv), int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const BadInput& problem) {
    fmt::print(stderr, "{}\n", problem.what());
    return 2;
  } catch (const CannotWrite& problem) {
    fmt::print(stderr, "cannot write to standard output: {}\n", problem.what());
    return 1;
  } catch (const std::exception& problem) {
    fmt::print(stderr, "{}: {}\n", program, problem.what());
    return 1;
  }
}

}  // namespace vpfs::trace
