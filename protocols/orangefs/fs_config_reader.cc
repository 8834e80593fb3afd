#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "protocols/orangefs/fs_config.h"

namespace vpfs::orangefs {
namespace {

constexpr std::string_view kBlank = " \t\r";

std::string_view trim(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

// The first word of `*text`, which loses it.
std::string_view take_word(std::string_view* text) {
  *text = trim(*text);
  const std::size_t end = std::min(text->find_first_of(kBlank), text->size());
  const std::string_view word = text->substr(0, end);
  *text = trim(text->substr(end));
  return word;
}

// Calls each(part) for the parts between commas that are not empty.
template <typename Each>
void for_each_part(std::string_view text, Each each) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    if (const std::string_view part = trim(text.substr(0, end)); !part.empty()) each(part);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// Names of sections and options are case-insensitive.
bool same(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "200-300", or one handle.
std::optional<HandleExtent> parse_extent(std::string_view text) {
  const std::size_t dash = std::min(text.find('-'), text.size());
  const auto first = parse_number<Handle>(trim(text.substr(0, dash)));
  const auto last = dash == text.size() ? first : parse_number<Handle>(trim(text.substr(dash + 1)));
  if (!first || !last || *last < *first) return std::nullopt;
  return HandleExtent{.first = *first, .last = *last};
}

// Reads the text line by line. Sections nest: <Defaults>, <Aliases>, <FileSystem> with ranges,
// distribution and hints inside, <ServerOptions>.
class Reader {
 public:
  FsConfigReading read(std::string_view text);

 private:
  void line(std::string_view text);
  void section(std::string_view text);
  void option(std::string_view key, std::string_view value);
  void default_option(std::string_view key, std::string_view value);
  void file_system_option(std::string_view key, std::string_view value);
  void distribution_option(std::string_view key, std::string_view value);
  void alias(std::string_view value);
  void range(std::string_view value, std::vector<FsConfig::Range>* into);
  template <typename Number>
  [[nodiscard]] std::optional<Number> number(std::string_view key, std::string_view text);
  template <typename Unit>
  void duration(std::string_view key, std::string_view text, std::optional<Duration>* value);

  [[nodiscard]] bool inside(std::string_view name) const {
    return !sections_.empty() && same(sections_.back(), name);
  }
  void report(std::string_view problem) {
    if (problem_) return;
    problem_ = Error{.message = fmt::format("line {}: {}", line_number_, problem)};
  }

  int line_number_ = 0;
  std::vector<std::string_view> sections_;  // the open ones, outermost first
  std::string_view distribution_parameter_;
  FsConfig config_;
  std::optional<Error> problem_;
};

FsConfigReading Reader::read(std::string_view text) {
  while (!text.empty()) {
    ++line_number_;
    const std::string_view whole = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(whole.size() + 1, text.size()));
    if (const std::string_view content = trim(whole.substr(0, whole.find('#'))); !content.empty()) {
      line(content);
    }
  }
  if (!sections_.empty()) report(fmt::format("<{}> is not closed", sections_.back()));
  return {.config = std::move(config_), .problem = std::move(problem_)};
}

void Reader::line(std::string_view text) {
  if (text.front() == '<') return section(text);
  const std::string_view key = take_word(&text);
  option(key, text);
}

void Reader::section(std::string_view text) {
  if (text.back() != '>') return report(fmt::format("'{}' has no '>'", text));
  const std::string_view name = trim(text.substr(1, text.size() - 2));
  if (!name.starts_with('/')) {
    sections_.push_back(name);
    if (same(name, "FileSystem")) config_.file_systems.emplace_back();
    return;
  }
  if (!inside(name.substr(1))) return report(fmt::format("<{}> closes nothing", name));
  sections_.pop_back();
}

void Reader::option(std::string_view key, std::string_view value) {
  if (inside("Defaults")) return default_option(key, value);
  if (inside("Aliases") && same(key, "Alias")) return alias(value);
  if (config_.file_systems.empty()) return;
  FsConfig::FileSystem& file_system = config_.file_systems.back();
  if (inside("FileSystem")) file_system_option(key, value);
  if (inside("Distribution")) distribution_option(key, value);
  if (inside("MetaHandleRanges") && same(key, "Range")) range(value, &file_system.meta);
  if (inside("DataHandleRanges") && same(key, "Range")) range(value, &file_system.data);
}

void Reader::default_option(std::string_view key, std::string_view value) {
  using std::chrono::milliseconds;
  using std::chrono::seconds;
  if (same(key, "ClientJobBMITimeoutSecs")) {
    duration<seconds>(key, value, &config_.client_job_timeout);
  } else if (same(key, "ClientJobFlowTimeoutSecs")) {
    duration<seconds>(key, value, &config_.client_flow_timeout);
  } else if (same(key, "ClientRetryDelayMilliSecs")) {
    duration<milliseconds>(key, value, &config_.client_retry_delay);
  } else if (same(key, "ClientRetryLimit")) {
    if (const auto limit = number<std::uint32_t>(key, value)) config_.client_retry_limit = limit;
  }
}

void Reader::file_system_option(std::string_view key, std::string_view value) {
  FsConfig::FileSystem& file_system = config_.file_systems.back();
  if (same(key, "Name")) {
    file_system.name = value;
  } else if (same(key, "ID")) {
    // A signed or an unsigned number of 32 bits.
    if (const auto id = number<std::int64_t>(key, value)) {
      file_system.id = static_cast<FsId>(static_cast<std::uint32_t>(*id));
    }
  } else if (same(key, "RootHandle")) {
    file_system.root = number<Handle>(key, value).value_or(file_system.root);
  } else if (same(key, "DefaultNumDFiles")) {
    file_system.default_datafiles =
        number<std::uint32_t>(key, value).value_or(file_system.default_datafiles);
  } else if (same(key, "FlowBufferSizeBytes")) {
    const auto size = number<std::uint64_t>(key, value);
    if (size && (*size == 0 || *size > kMaxMessageSize)) {
      report("FlowBufferSizeBytes must be from 1 to 16777216");
    } else if (size) {
      file_system.flow_buffer_size = *size;
    }
  }
}

void Reader::distribution_option(std::string_view key, std::string_view value) {
  if (same(key, "Param")) distribution_parameter_ = value;
  if (!same(key, "Value") || distribution_parameter_ != "strip_size") return;
  const auto size = number<std::int64_t>(key, value);
  if (size && *size <= 0) {
    report("strip_size must be positive");
  } else if (size) {
    config_.file_systems.back().strip_size = *size;
  }
}

// "s0 tcp://host:port,tcp-px://host:port".
void Reader::alias(std::string_view value) {
  FsConfig::Alias alias;
  alias.name = take_word(&value);
  for_each_part(value, [&](std::string_view part) { alias.addresses.emplace_back(part); });
  while (!value.empty()) {
    if (!alias.text.empty()) alias.text += ',';  // "a, b" has two then: "a,,b"
    alias.text += take_word(&value);
  }
  if (alias.addresses.empty()) return report("Alias needs a name and an address");
  config_.aliases.push_back(std::move(alias));
}

// "s0 3-100,200-300".
void Reader::range(std::string_view value, std::vector<FsConfig::Range>* into) {
  FsConfig::Range range;
  range.alias = take_word(&value);
  for_each_part(value, [&](std::string_view part) {
    if (const std::optional<HandleExtent> extent = parse_extent(part)) {
      range.extents.push_back(*extent);
    } else {
      report(fmt::format("'{}' is not a range of handles", part));
    }
  });
  if (range.extents.empty()) return report("Range needs an alias and handles");
  into->push_back(std::move(range));
}

template <typename Number>
std::optional<Number> Reader::number(std::string_view key, std::string_view text) {
  const std::optional<Number> value = parse_number<Number>(text);
  if (!value) report(fmt::format("{}: '{}' is not a number in its range", key, text));
  return value;
}

template <typename Unit>
void Reader::duration(std::string_view key, std::string_view text, std::optional<Duration>* value) {
  if (const auto count = number<std::uint32_t>(key, text)) *value = Unit(*count);
}

}  // namespace

FsConfigReading read_fs_config(std::string_view text) {
  if (text.size() <= kMostFsConfigSize) return Reader().read(text);
  return {.config = {},
          .problem = Error{.message = fmt::format("line 1: a text of {} bytes; at most {} are read",
                                                  text.size(), kMostFsConfigSize)}};
}

}  // namespace vpfs::orangefs
