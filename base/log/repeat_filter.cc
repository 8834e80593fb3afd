#include "base/log/repeat_filter.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/units.h"

namespace vpfs {
namespace {

constexpr std::size_t kLongestExample = 1000;

// FNV-1a.
class Hash {
 public:
  void add(char c) { value_ = (value_ ^ static_cast<unsigned char>(c)) * 0x100000001b3; }
  void add(std::string_view text) {
    for (const char c : text) add(c);
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325;
};

std::uint64_t hash_of(std::string_view text) {
  Hash hash;
  hash.add(text);
  return hash.value();
}

// Equal for texts that differ in words with digits only.
std::uint64_t pattern_of(std::string_view text) {
  Hash hash;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    const bool varies = std::ranges::any_of(word, [](char c) { return c >= '0' && c <= '9'; });
    hash.add(varies ? std::string_view("#") : word);
    text.remove_prefix(word.size());
    const std::size_t spaces = std::min(text.find_first_not_of(' '), text.size());
    if (spaces > 0) hash.add(' ');
    text.remove_prefix(spaces);
  }
  return hash.value();
}

// "1,234,567"
std::string with_commas(std::uint64_t count) {
  std::string digits = std::to_string(count);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

}  // namespace

bool RepeatFilter::admit(int level, std::string_view text, TimePoint now) {
  const std::uint64_t pattern = pattern_of(text);
  const std::uint64_t exact = hash_of(text);
  auto kind = std::ranges::find_if(
      kinds_, [&](const Kind& each) { return each.pattern == pattern && each.level == level; });
  if (kind == kinds_.end()) {
    Kind& made = make_room(now);
    made.pattern = pattern;
    made.level = level;
    made.since = made.last = now;
    made.written.push_back(exact);
    return true;
  }
  if (now - kind->since >= settings_.period) end_period(*kind, now);
  kind->last = now;
  if (std::ranges::find(kind->written, exact) == kind->written.end() &&
      kind->written.size() < settings_.differing) {
    kind->written.push_back(exact);
    return true;
  }
  if (kind->counted == 0) kind->all_same = true;
  if (kind->counted > 0 && kind->counted_text != exact) kind->all_same = false;
  ++kind->counted;
  if (kind->counted == 1 || kind->counted_text != exact) {
    kind->counted_text = exact;
    kind->example = text.substr(0, kLongestExample);
    if (text.size() > kLongestExample) kind->example += "...";
  }
  return false;
}

std::vector<RepeatFilter::Summary> RepeatFilter::take_due(TimePoint now) {
  for (Kind& kind : kinds_) {
    if (now - kind.since >= settings_.period) end_period(kind, now);
  }
  std::erase_if(kinds_, [](const Kind& kind) { return kind.written.empty(); });
  return take();
}

std::vector<RepeatFilter::Summary> RepeatFilter::take_all(TimePoint now) {
  for (const Kind& kind : kinds_) summarize(kind, now);
  kinds_.clear();
  return take();
}

RepeatFilter::Kind& RepeatFilter::make_room(TimePoint now) {
  if (kinds_.size() < settings_.remembered) return kinds_.emplace_back();
  Kind& oldest = *std::ranges::min_element(kinds_, {}, &Kind::last);
  summarize(oldest, now);
  oldest = {};
  return oldest;
}

void RepeatFilter::summarize(const Kind& kind, TimePoint now) {
  if (kind.counted == 0) return;
  // Without the fraction of a second.
  const Duration over = std::max<Duration>(
      std::chrono::round<std::chrono::seconds>(now - kind.since), std::chrono::seconds(1));
  const std::string count = with_commas(kind.counted);
  summaries_.push_back(
      {.level = kind.level,
       .text = kind.all_same ? fmt::format("{} (repeated {} time{} in {})", kind.example, count,
                                           kind.counted == 1 ? "" : "s", to_string(over))
                             : fmt::format("{} (one of {} like it in {})", kind.example, count,
                                           to_string(over))});
}

// The text of the summary counts as written.
void RepeatFilter::end_period(Kind& kind, TimePoint now) {
  summarize(kind, now);
  kind.written.clear();
  if (kind.counted > 0) kind.written.push_back(kind.counted_text);
  kind.counted = 0;
  kind.since = now;
}

std::vector<RepeatFilter::Summary> RepeatFilter::take() {
  return std::exchange(summaries_, {});
}

}  // namespace vpfs
