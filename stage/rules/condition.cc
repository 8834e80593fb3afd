#include "stage/rules/condition.h"

#include <algorithm>
#include <array>
#include <optional>
#include <ranges>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/joined.h"
#include "base/nearest_word.h"
#include "stage/rules/match_words.h"

namespace vpfs::stage {
namespace {

constexpr std::array<std::string_view, 12> kKeys = {"jobid", "uid",     "gid",    "client",
                                                    "op",    "fs",      "dir",    "owner",
                                                    "node",  "account", "target", "hint.NAME"};
// Other words for some of them.
constexpr ConfigWord kOther[] = {
    {"nid", "client"}, {"opcode", "op"}, {"operation", "op"}, {"file_system", "fs"}};

bool is_blank(char byte) {
  return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

bool ends_value(char byte) {
  return is_blank(byte) || byte == '{' || byte == '}' || byte == '&' || byte == ',' || byte == '"';
}

// The size of the value without quotes at the start of `text`. A comma in brackets belongs to it:
// n[1-3,7].
std::size_t bare_size(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && !ends_value(text[at])) {
    if (text[at] == '[') {
      std::size_t close = at + 1;
      while (close < text.size() && text[close] != ']' &&
             (text[close] == ',' || !ends_value(text[close]))) {
        ++close;
      }
      if (close < text.size() && text[close] == ']') at = close;
    }
    ++at;
  }
  return at;
}

std::size_t key_size(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && !ends_value(text[at]) && text[at] != '=') ++at;
  return at;
}

std::string in_quotes(std::string_view value) {
  std::string text = "\"";
  for (const char byte : value) text.append(byte == '"' ? 2 : 1, byte);
  return text + "\"";
}
std::string printed(std::string_view value) {
  // An open bracket would take in what follows.
  const std::size_t open = value.rfind('[');
  const bool is_closed =
      open == std::string_view::npos || value.find(']', open) != std::string_view::npos;
  const bool is_bare = !value.empty() && is_closed && bare_size(value) == value.size();
  return is_bare ? std::string(value) : in_quotes(value);
}
std::string printed_key(std::string_view key) {
  if (!key.starts_with(kHint)) return std::string(key);
  const std::string_view name = key.substr(kHint.size());
  if (!name.empty() && key_size(name) == name.size()) return std::string(key);
  return fmt::format("{}{}", kHint, in_quotes(name));
}

// A function that returns false or nothing has set `error_`.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::expected<ConditionText, ConditionError> run() {
    if (text_.size() > kLongestCondition) {
      return std::unexpected(
          ConditionError{.at = kLongestCondition,
                         .text = fmt::format("has more than {} bytes", kLongestCondition)});
    }
    skip_blanks();
    if (at_ == text_.size()) return condition_;
    if (text_[at_] == '*') {
      const std::size_t star = at_++;
      skip_blanks();
      if (at_ == text_.size()) return condition_;
      at_ = star;
    }
    do {
      condition_.emplace_back();
      do {
        if (!read_term()) return std::unexpected(*error_);
      } while (take('&'));
    } while (take(','));
    if (at_ == text_.size()) return condition_;
    (void)fail(at_, text_[at_] == '}' ? "there is no { before this }"
                                      : "expected & (and) or , (or) between conditions");
    return std::unexpected(*error_);
  }

 private:
  bool fail(std::size_t at, std::string text) {
    error_ = {.at = at, .text = std::move(text)};
    return false;
  }
  void skip_blanks() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }
  bool take(char wanted) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    skip_blanks();
    return true;
  }

  bool read_term() {
    const std::size_t start = at_;
    at_ += key_size(text_.substr(at_));
    const std::string_view word = text_.substr(start, at_ - start);
    if (word.empty()) return fail(start, "expected a condition here, such as jobid={a b}");
    ConditionTerm term = {.key = canonical_key(word), .values = {}, .key_at = start};
    const bool is_hint = term.key.starts_with(kHint);
    if (term.key == kHint && at_ < text_.size() && text_[at_] == '"') {
      const std::optional<std::string> name = read_quoted();
      if (!name) return fail(start + kHint.size(), "this quote is never closed");
      term.key += *name;
    } else if (term.key == kHint) {
      return fail(at_, "the hint has no name: expected one such as hint.user=ann");
    }
    if (!is_hint && std::ranges::find(kKeys, term.key) == kKeys.end()) return unknown(start, word);
    if (has_term(condition_.back(), term.key)) {
      return fail(start, fmt::format("{0} is given twice; {0}={{a b}} takes either", term.key));
    }
    if (!take('=')) {
      return fail(at_, fmt::format("{0} needs a value, such as {0}=a or {0}={{a b}}", term.key));
    }
    if (!read_values(term)) return false;
    condition_.back().push_back(std::move(term));
    return true;
  }

  bool unknown(std::size_t at, std::string_view word) {
    if (const auto instead = suggested_match_word(word)) {
      return fail(at, fmt::format("unknown condition; did you mean \"{}\"?", *instead));
    }
    const std::vector<std::string> keys(kKeys.begin(), kKeys.end());
    if (const auto nearest = nearest_word(word, keys)) {
      return fail(at, fmt::format("unknown condition; did you mean \"{}\"?", *nearest));
    }
    return fail(at, fmt::format("unknown condition (known: {})", fmt::join(kKeys, ", ")));
  }

  bool read_values(ConditionTerm& term) {
    const std::size_t open = at_;
    if (!take('{')) return read_value(term);
    while (!take('}')) {
      if (at_ == text_.size()) return fail(open, "this { is never closed");
      if (!term.values.empty() && !is_blank(text_[at_ - 1])) {
        return fail(at_, "expected a blank between the values of a list");
      }
      if (!read_value(term)) return false;
    }
    if (term.values.empty()) return fail(open, "an empty list matches nothing");
    return true;
  }

  bool read_value(ConditionTerm& term) {
    const std::size_t start = at_;
    std::optional<std::string> value;
    if (at_ < text_.size() && text_[at_] == '"') {
      value = read_quoted();
      if (!value) return fail(start, "this quote is never closed");
    } else {
      const std::size_t size = bare_size(text_.substr(at_));
      value = text_.substr(at_, size);
      at_ += size;
      if (value->empty()) {
        return fail(start, at_ < text_.size() && text_[at_] == ','
                               ? "expected a blank, not a comma, between the values of a list"
                               : "a value is missing here");
      }
    }
    term.values.push_back(canonical_value(term.key, *value));
    term.value_at.push_back(start);
    return true;
  }

  // Nothing: the text ends first.
  std::optional<std::string> read_quoted() {
    std::string value;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '"') {
        ++at_;
        const bool is_doubled = at_ < text_.size() && text_[at_] == '"';
        if (!is_doubled) return value;
      }
      value += text_[at_];
    }
    return std::nullopt;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  ConditionText condition_;
  std::optional<ConditionError> error_;
};

std::string printed_term(const ConditionTerm& term) {
  const std::string values = joined(std::views::transform(term.values, printed), " ");
  const std::string key = printed_key(term.key);
  return term.values.size() == 1 ? fmt::format("{}={}", key, values)
                                 : fmt::format("{}={{{}}}", key, values);
}

}  // namespace

std::expected<ConditionText, ConditionError> parse_condition(std::string_view text) {
  return Parser(text).run();
}

std::string to_string(const ConditionText& condition) {
  const auto printed_terms = [](const ConditionTerms& terms) {
    return joined(std::views::transform(terms, printed_term), "&");
  };
  return joined(std::views::transform(condition, printed_terms), ",");
}

bool has_term(const ConditionTerms& terms, std::string_view key) {
  return std::ranges::find(terms, key, &ConditionTerm::key) != terms.end();
}

std::string canonical_key(std::string_view key) {
  for (const ConfigWord& each : kOther) {
    if (each.other == key) return std::string(each.instead);
  }
  return std::string(key);
}

bool is_condition_word(std::string_view word) {
  return std::ranges::find(kKeys, canonical_key(word)) != kKeys.end() || word.starts_with(kHint);
}

std::string canonical_value(std::string_view key, std::string_view value) {
  if (key == "op") {
    if (value == "ost_read") return "read";
    if (value == "ost_write") return "write";
  }
  if (key == "client") return std::string(value.substr(0, value.find('@')));
  return std::string(value);
}

}  // namespace vpfs::stage
