#include "base/config/errors.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/one_line.h"

namespace vpfs {

void ConfigErrors::insert(Messages& messages, int line, std::string_view key,
                          std::string_view text) const {
  if (final_) return;
  const auto place = std::ranges::upper_bound(messages.numbers, line);
  const Part& part = part_of(line);
  const std::string where =
      line == 0 ? file_ : fmt::format("{}:{}", part.file, line - part.first_line + 1);
  const std::string subject = key.empty() ? "" : fmt::format("{}: ", key);
  const auto index = place - messages.numbers.begin();
  messages.lines.insert(messages.lines.begin() + index,
                        fmt::format("{}: {}", where, one_line(subject + std::string(text))));
  messages.problems.insert(messages.problems.begin() + index,
                           {.key = one_line(key), .text = one_line(text)});
  messages.numbers.insert(place, line);
}

void ConfigErrors::add(int line, std::string_view key, std::string_view problem) {
  insert(errors_, line, key, problem);
}

void ConfigErrors::add_final(int line, std::string_view problem, std::string_view key) {
  if (final_) return;
  errors_ = {};
  warnings_ = {};
  insert(errors_, line, key, problem);
  final_ = true;
}

void ConfigErrors::warn(std::string_view key, std::string_view text) {
  insert(warnings_, line_of(key), key, text);
}

void ConfigErrors::append(Messages& messages, std::string_view file, std::string_view text) {
  messages.lines.push_back(fmt::format("{}: {}", file, one_line(text)));
  messages.problems.push_back({.key = "", .text = one_line(text)});
  messages.numbers.push_back(std::numeric_limits<int>::max());
}

void ConfigErrors::add_about(std::string_view file, std::string_view problem) {
  append(errors_, file, problem);
}

void ConfigErrors::warn_about(std::string_view file, std::string_view text) {
  append(warnings_, file, text);
}

const ConfigErrors::Part& ConfigErrors::part_of(int line) const {
  const auto next = std::ranges::upper_bound(parts_, line, {}, &Part::first_line);
  return next == parts_.begin() ? parts_.front() : *std::prev(next);
}

void ConfigErrors::begin_file(int first_line, std::string file) {
  parts_.push_back({.first_line = first_line, .file = std::move(file)});
}

std::string ConfigErrors::place(int line, int from) const {
  const Part& part = part_of(line);
  const int number = line - part.first_line + 1;
  if (part == part_of(from)) return fmt::format("on line {}", number);
  return fmt::format("in {}:{}", part.file, number);
}

int ConfigErrors::line_of(std::string_view path) const {
  for (;;) {
    const auto place = places_.find(path);
    if (place != places_.end()) return place->second;
    const std::size_t end = path.find_last_of(".[");
    if (end == std::string_view::npos) return 1;
    path = path.substr(0, end);
  }
}

std::string ConfigErrors::to_string() const {
  std::string text;
  for (const std::string& line : errors_.lines) text += line + "\n";
  return text;
}

}  // namespace vpfs
