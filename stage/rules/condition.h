#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace vpfs::stage {

// The prefix of keys that name a hint: `hint.NAME`.
inline constexpr std::string_view kHint = "hint.";

// The conditions of a rule as administrators write them, in the words of Lustre:
//
//   jobid={a b}&op=read, client=10.0.[0-3].[1-128]
//
// `&` binds tighter than `,` (or). A value with blanks or other special bytes is put in double
// quotes, where "" is a quote. "" and "*" are every request.
//
// This is the syntax alone; condition_values.h knows what the values mean.

// `key={value value}`: one of the values must hold.
struct ConditionTerm {
  std::string key;  // the canonical word: "jobid", "client", "hint.NAME"
  std::vector<std::string> values;
  // Where the key and each value begin in the text.
  std::size_t key_at = 0;
  std::vector<std::size_t> value_at = {};

  // Compares what it means, not its position.
  bool operator==(const ConditionTerm& other) const {
    return key == other.key && values == other.values;
  }
};

using ConditionTerms = std::vector<ConditionTerm>;  // all must hold
// One must hold; none: every request.
using ConditionText = std::vector<ConditionTerms>;

[[nodiscard]] bool has_term(const ConditionTerms& terms, std::string_view key);

struct ConditionError {
  std::size_t at;  // a byte of the text
  std::string text;

  bool operator==(const ConditionError&) const = default;
};

// In bytes.
inline constexpr std::size_t kLongestCondition = 64UL * 1024;

[[nodiscard]] std::expected<ConditionText, ConditionError> parse_condition(std::string_view text);

// The shortest text with this meaning: parse_condition() gives the same again.
[[nodiscard]] std::string to_string(const ConditionText& condition);

// The canonical form of a word and of a value: words of Lustre become ours ("nid" is "client",
// "ost_read" is "read"), and the network of a Lustre NID goes ("10.0.0.1@tcp").
[[nodiscard]] std::string canonical_key(std::string_view key);
[[nodiscard]] std::string canonical_value(std::string_view key, std::string_view value);

// Whether a condition begins with this word, canonical or not.
[[nodiscard]] bool is_condition_word(std::string_view word);

}  // namespace vpfs::stage
