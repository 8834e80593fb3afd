#include "stage/config/live_words.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <ranges>
#include <utility>

#include <fmt/format.h>

#include "base/joined.h"

namespace vpfs::stage {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kOtherNames = {
    {{"operations", "iops"},
     {"burst_operations", "burst_iops"},
     {"total_iops", "total_operations"},
     {"virtual_pfs", "vpfs"}}};

std::vector<std::string> replaced(std::vector<std::string> words,
                                  const std::vector<std::string>& changes, bool keeps_removals) {
  for (const std::string& change : changes) {
    const std::string_view key = word_key(change);
    const auto same_key = [&](const std::string& word) { return word_key(word) == key; };
    if (takes_away(change) && !keeps_removals) {
      std::erase_if(words, same_key);
      continue;
    }
    const std::string put = takes_away(change) ? fmt::format("{}=none", key) : change;
    const auto found = std::ranges::find_if(words, same_key);
    if (found == words.end()) {
      words.push_back(put);
    } else {
      *found = put;
      words.erase(std::remove_if(std::next(found), words.end(), same_key), words.end());
    }
  }
  return words;
}

std::string shell_word(const std::string& word) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-+=:./,@%").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::ranges::all_of(word, is_plain)) return word;
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

struct Factor {
  std::string_view name;
  std::uint64_t size;
};

constexpr std::array<Factor, 5> kSizes = {
    {{"B", 1}, {"KiB", kKiB}, {"MiB", kMiB}, {"GiB", kGiB}, {"TiB", 1024 * kGiB}}};
constexpr std::array<Factor, 6> kTimes = {{{"ns", 1},
                                           {"us", 1'000},
                                           {"ms", 1'000'000},
                                           {"s", 1'000'000'000},
                                           {"min", 60'000'000'000},
                                           {"h", 3'600'000'000'000}}};

// Exact, in the largest unit without a fraction.
template <std::size_t kCount>
std::string exact(std::uint64_t count, const std::array<Factor, kCount>& units) {
  const Factor* best = &units.front();
  for (const Factor& unit : units) {
    if (count >= unit.size && count % unit.size == 0) best = &unit;
  }
  return fmt::format("{}{}", count / best->size, best->name);
}

std::string exact(Duration duration) {
  return exact(static_cast<std::uint64_t>(duration.count()), kTimes);
}

}  // namespace

std::string_view word_key(std::string_view word) {
  const std::string_view key = word.substr(0, word.find('='));
  const auto other =
      std::ranges::find(kOtherNames, key, [](const auto& pair) { return pair.first; });
  return other == kOtherNames.end() ? key : other->second;
}

std::string_view word_value(std::string_view word) {
  const std::size_t equals = word.find('=');
  return equals == std::string_view::npos ? std::string_view() : word.substr(equals + 1);
}

bool takes_away(std::string_view word) {
  const std::string_view value = word_value(word);
  return word.find('=') != std::string_view::npos && (value.empty() || value == "none");
}

std::optional<std::string_view> value_of(const std::vector<std::string>& words,
                                         std::string_view key) {
  std::optional<std::string_view> value;
  for (const std::string& word : words) {
    if (word_key(word) == key) value = word_value(word);
  }
  return value;
}

void erase_words(std::vector<std::string>& words, std::string_view key) {
  std::erase_if(words, [&](const std::string& word) { return word_key(word) == key; });
}

std::vector<std::string> with_changes(std::vector<std::string> words,
                                      const std::vector<std::string>& changes) {
  return replaced(std::move(words), changes, false);
}

std::vector<std::string> joined_changes(std::vector<std::string> changes,
                                        const std::vector<std::string>& more) {
  return replaced(std::move(changes), more, true);
}

std::string words_line(const std::vector<std::string>& words) {
  return joined(std::views::transform(words, shell_word), " ");
}

std::string rule_line(const RuleText& rule) {
  std::string line = fmt::format("{} {}", shell_word(rule.name), shell_word(rule.condition));
  if (!rule.words.empty()) line += ' ' + words_line(rule.words);
  return line;
}

std::vector<std::string> words_of_share(const VirtualPfsConfig& virtual_pfs) {
  const Share& share = virtual_pfs.share;
  const Share usual;
  std::vector<std::string> words;
  const auto add = [&](bool differs, std::string word) {
    if (differs) words.push_back(std::move(word));
  };
  add(share.weight != usual.weight, fmt::format("weight={}", share.weight));
  add(share.rate != usual.rate, fmt::format("rate={}/s", exact(share.rate.count, kSizes)));
  add(share.operations != usual.operations, fmt::format("iops={}", share.operations));
  add(share.burst != usual.burst, fmt::format("burst={}", exact(share.burst.count, kSizes)));
  add(share.burst_operations != usual.burst_operations,
      fmt::format("burst_iops={}", share.burst_operations));
  add(share.realtime, "realtime");
  add(share.rank.has_value(), fmt::format("rank={}", share.rank.value_or(0)));
  add(share.min != usual.min, fmt::format("min={}/s", exact(share.min.count, kSizes)));
  add(share.latency != usual.latency, fmt::format("latency={}", exact(share.latency)));
  add(share.finish_bytes.count > 0,
      fmt::format("finish={}/{}", exact(share.finish_bytes.count, kSizes),
                  exact(virtual_pfs.finish_within)));
  for (const Share::Own& own : share.own)
    words.push_back(fmt::format("{}={}", own.word, own.value));
  return words;
}

}  // namespace vpfs::stage
