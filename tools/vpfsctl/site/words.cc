#include "tools/vpfsctl/site/words.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"
#include "base/units.h"

namespace vpfs::ctl {
namespace {

// Those of stage/config/rule_words.cc in either spelling, and AdapTBF's own. A stage decides what
// it takes.
constexpr std::array kRuleWords = std::to_array<std::string_view>(
    {"weight",     "rate",   "iops",     "operations", "total_rate",       "total_operations",
     "total_iops", "min",    "burst",    "burst_iops", "burst_operations", "latency",
     "finish",     "rank",   "realtime", "vpfs",       "virtual_pfs",      "class",
     "mode",       "exempt", "for",      "nodes"});

bool is_rule_word(std::string_view word) {
  return std::ranges::find(kRuleWords, word.substr(0, word.find('='))) != kRuleWords.end();
}

int open_braces(std::string_view text) {
  return static_cast<int>(std::ranges::count(text, '{') - std::ranges::count(text, '}'));
}

bool is_and(char letter) {
  return letter == '&' || letter == ',';
}

bool goes_on(std::string_view condition, std::string_view next) {
  return open_braces(condition) > 0 || is_and(condition.back()) ||
         (!next.empty() && is_and(next.front()));
}

std::optional<std::uint64_t> part_of_time(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value > 1'000'000) return {};
  return value;
}

// "[D-]HH[:MM[:SS]]", and without days "MM:SS".
std::optional<std::uint64_t> slurm_time(std::string_view text) {
  std::uint64_t days = 0;
  const std::size_t dash = text.find('-');
  const bool has_days = dash != std::string_view::npos;
  if (has_days) {
    const auto value = part_of_time(text.substr(0, dash));
    if (!value) return std::nullopt;
    days = *value;
    text.remove_prefix(dash + 1);
  }
  std::vector<std::uint64_t> parts;
  for (;;) {
    const std::size_t colon = text.find(':');
    const auto value = part_of_time(text.substr(0, colon));
    if (!value) return std::nullopt;
    parts.push_back(*value);
    if (colon == std::string_view::npos) break;
    text.remove_prefix(colon + 1);
  }
  if (parts.size() > 3 || (parts.size() == 1 && !has_days)) return std::nullopt;
  if (parts.size() == 2 && !has_days) parts.insert(parts.begin(), 0);
  parts.resize(3, 0);
  return ((days * 24 + parts[0]) * 60 + parts[1]) * 60 + parts[2];
}

// At spaces outside braces.
std::vector<std::string> split_at_spaces(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  int depth = 0;
  for (const char letter : text) {
    if (letter == '{') ++depth;
    if (letter == '}') --depth;
    if (letter == ' ' && depth <= 0) {
      if (!word.empty()) words.push_back(std::exchange(word, {}));
    } else {
      word += letter;
    }
  }
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

}  // namespace

Result<ConditionAndWords> split_condition(const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments[0].empty()) {
    return fail("the condition is missing: expected one such as \"jobid={dd.*}\"");
  }
  if (is_rule_word(arguments[0])) {
    return fail(
        fmt::format("the condition is missing before \"{}\": rule start NAME \"jobid={{dd.*}}\" {}",
                    arguments[0], arguments[0]));
  }
  ConditionAndWords split{.condition = arguments[0], .words = {}};
  std::size_t used = 1;
  while (used < arguments.size() && goes_on(split.condition, arguments[used])) {
    split.condition += " " + arguments[used++];
  }
  if (open_braces(split.condition) > 0) {
    return fail(
        fmt::format("the condition \"{}\" has a brace that is not closed; put the condition "
                    "into quotes",
                    split.condition));
  }
  split.words.assign(std::next(arguments.begin(), static_cast<std::ptrdiff_t>(used)),
                     arguments.end());
  return split;
}

Result<std::vector<std::string>> split_clients(std::string_view list) {
  std::vector<std::string> clients(1);
  int depth = 0;
  for (const char letter : list) {
    if (letter == '[') ++depth;
    if (letter == ']') --depth;
    if (depth < 0 || depth > 1) break;
    if (letter == ',' && depth == 0) {
      clients.emplace_back();
    } else {
      clients.back() += letter;
    }
  }
  if (depth != 0) return fail(fmt::format("\"{}\": the brackets do not pair up", list));
  if (std::ranges::any_of(clients, [](const std::string& each) { return each.empty(); })) {
    return fail(
        fmt::format("\"{}\" has an empty entry: expected a list such as \"n[1-4],n7\"", list));
  }
  return clients;
}

Result<std::uint64_t> parse_seconds(std::string_view text) {
  const Result<Duration> duration = parse_duration(text);
  VPFS_TRY(duration);
  return static_cast<std::uint64_t>(std::chrono::ceil<std::chrono::seconds>(*duration).count());
}

Result<std::uint64_t> parse_time_limit(std::string_view text) {
  if (text == "UNLIMITED" || text == "INFINITE" || text == "NOT_SET") return 0;
  if (const auto seconds = slurm_time(text)) return *seconds;
  return parse_seconds(text);
}

std::vector<std::string> split_quoted_rule(std::vector<std::string> arguments) {
  const auto rule = std::ranges::find(arguments, "rule");
  if (rule == arguments.end() || std::next(rule) == arguments.end()) return arguments;
  const auto quoted = std::next(rule);
  const std::vector<std::string> words = split_at_spaces(*quoted);
  if (words.size() < 2 || (words[0] != "start" && words[0] != "change" && words[0] != "stop")) {
    return arguments;
  }
  const auto place = arguments.erase(quoted);
  arguments.insert(place, words.begin(), words.end());
  return arguments;
}

}  // namespace vpfs::ctl
