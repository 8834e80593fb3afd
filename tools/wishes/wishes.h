#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// What users may ask for their jobs when they submit them, within bounds that an administrator
// sets. The commands that submit a job and the program that registers it judge by the same code.
namespace vpfs::wishes {

enum class Wish { weight, rate, deadline };

inline constexpr std::array kWishes = {Wish::weight, Wish::rate, Wish::deadline};

// "weight", "rate", "deadline".
[[nodiscard]] std::string_view name_of(Wish wish);
[[nodiscard]] std::optional<Wish> find_wish(std::string_view name);

// What one wish may be, both ends included. An open end is where vpfs itself ends.
struct Bound {
  std::string word;  // of the rule that a job gets: "weight", "rate", "total_rate", "latency"
  std::uint64_t least = 0;  // a weight, bytes each second, or nanoseconds
  std::uint64_t most = 0;
  std::string least_text;  // as it was written; empty for an open end
  std::string most_text;
};

class Bounds {
 public:
  // Words such as "weight=1..8", "rate=..500MiB/s", "deadline=5ms..". `total_rate` in place of
  // `rate` makes the wished rate count for the whole site instead of each data server. What has no
  // bound may not be asked for. An error names the word.
  [[nodiscard]] static Result<Bounds> parse(const std::vector<std::string_view>& words);
  // The same, with blanks between the words.
  [[nodiscard]] static Result<Bounds> parse(std::string_view text);

  // Null: it may not be asked for.
  [[nodiscard]] const Bound* find(Wish wish) const;

  // The word of a rule that grants the wish: "latency=20ms". An error says what was expected.
  [[nodiscard]] Result<std::string> grant(Wish wish, std::string_view value) const;

 private:
  std::array<std::optional<Bound>, kWishes.size()> bounds_;
};

// "a whole number from 1 to 8", "a rate of at most 500MiB/s, such as 50MiB/s".
[[nodiscard]] std::string expectation(Wish wish, const Bound& bound);

// Texts between blanks and line ends.
[[nodiscard]] std::vector<std::string_view> split_words(std::string_view text);

}  // namespace vpfs::wishes
