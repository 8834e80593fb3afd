#include "stage/book/rule_difference.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "stage/config/live_words.h"

namespace vpfs::stage {
namespace {

using Positions = std::unordered_map<std::string_view, std::size_t>;

std::string_view key_of(const LiveRule& rule) {
  return rule.text.name;
}
std::string_view key_of(const LiveShare& share) {
  return share.virtual_pfs;
}

template <typename T>
using Items = std::span<const std::shared_ptr<const T>>;

template <typename T>
Positions positions_of(Items<T> items) {
  Positions positions;
  for (std::size_t at = 0; at < items.size(); ++at) positions.emplace(key_of(*items[at]), at);
  return positions;
}

// Takes off the common beginning and end, which are mostly nearly all. Returns how many that were
// at the beginning.
template <typename T>
std::size_t take_off_common(Items<T>& before, Items<T>& after) {
  const std::size_t most = std::min(before.size(), after.size());
  std::size_t first = 0;
  while (first < most && before[first] == after[first]) ++first;
  std::size_t last = 0;
  while (last < most - first &&
         before[before.size() - 1 - last] == after[after.size() - 1 - last]) {
    ++last;
  }
  before = before.subspan(first, before.size() - first - last);
  after = after.subspan(first, after.size() - first - last);
  return first;
}

// Which of these different numbers are in their longest ascending subsequence.
std::vector<bool> in_order(const std::vector<std::size_t>& numbers) {
  std::vector<std::size_t> ends;  // of the best subsequence of each length
  std::vector<std::size_t> previous(numbers.size());
  for (std::size_t at = 0; at < numbers.size(); ++at) {
    const auto place = std::ranges::lower_bound(ends, numbers[at], {},
                                                [&](std::size_t index) { return numbers[index]; });
    if (place != ends.begin()) previous[at] = *(place - 1);
    if (place == ends.end()) {
      ends.push_back(at);
    } else {
      *place = at;
    }
  }
  std::vector<bool> kept(numbers.size());
  for (std::size_t left = ends.size(), at = ends.empty() ? 0 : ends.back(); left > 0; --left) {
    kept[at] = true;
    at = previous[at];
  }
  return kept;
}

template <typename T>
void compare(Items<T> before, Items<T> after, bool ordered, std::vector<Difference>& found) {
  const std::size_t first = take_off_common(before, after);
  const Positions old_positions = positions_of<T>(before);
  const Positions new_positions = positions_of<T>(after);
  for (const auto& item : before) {
    if (new_positions.contains(key_of(*item))) continue;
    found.push_back({.name = std::string(key_of(*item)),
                     .kind = Difference::Kind::removed,
                     .before = line_of(*item),
                     .after = ""});
  }
  std::vector<std::size_t> common;  // old positions, in the new order
  for (const auto& item : after) {
    const auto old = old_positions.find(key_of(*item));
    if (old != old_positions.end()) common.push_back(old->second);
  }
  const std::vector<bool> kept = in_order(common);
  std::size_t next = 0;
  for (std::size_t at = 0; at < after.size(); ++at) {
    const auto old = old_positions.find(key_of(*after[at]));
    const bool is_new = old == old_positions.end();
    const bool moved = !is_new && !kept[next++] && ordered;
    // Most are the same object in both.
    if (!is_new && !moved && before[old->second] == after[at]) continue;
    Difference difference = {.name = std::string(key_of(*after[at])),
                             .kind = Difference::Kind::added,
                             .before = "",
                             .after = line_of(*after[at])};
    if (!is_new) {
      difference.before = line_of(*before[old->second]);
      if (difference.before != difference.after) {
        difference.kind = Difference::Kind::changed;
      } else if (moved) {
        difference.kind = Difference::Kind::moved;
      } else {
        continue;
      }
      if (moved) {
        difference.before = fmt::format("#{} {}", first + old->second + 1, difference.before);
        difference.after = fmt::format("#{} {}", first + at + 1, difference.after);
      }
    }
    found.push_back(std::move(difference));
  }
}

std::string until_text(const std::optional<WallTime>& until) {
  return until ? fmt::format(", until {:%F %T} UTC", *until) : "";
}

}  // namespace

std::string_view name_of(Difference::Kind kind) {
  switch (kind) {
    case Difference::Kind::added:
      return "added";
    case Difference::Kind::removed:
      return "removed";
    case Difference::Kind::changed:
      return "changed";
    case Difference::Kind::moved:
      return "moved";
  }
  return "";
}

std::string line_of(const LiveRule& rule) {
  return rule_line(rule.text) + until_text(rule.until);
}

std::string line_of(const LiveShare& share) {
  return fmt::format("{}: {}{}", share.virtual_pfs, words_line(share.words),
                     until_text(share.until));
}

std::vector<Difference> differences(const LiveSet& before, const LiveSet& after) {
  std::vector<Difference> found;
  compare<LiveShare>(before.shares, after.shares, false, found);
  compare<LiveRule>(before.rules, after.rules, true, found);
  return found;
}

}  // namespace vpfs::stage
