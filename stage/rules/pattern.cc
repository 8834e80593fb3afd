#include "stage/rules/pattern.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fnmatch.h>

namespace vpfs::stage {
namespace {

constexpr std::string_view kSpecial = "*?[\\";

// The position after the bracket expression that opens at `open`, if the expression is plain:
// without brackets or backslashes inside. Other expressions would need all rules of brackets.
std::size_t end_of_plain_bracket(std::string_view pattern, std::size_t open) {
  std::size_t at = open + 1;
  if (at < pattern.size() && (pattern[at] == '!' || pattern[at] == '^')) ++at;
  const std::size_t close = pattern.find_first_of("[]\\", at);
  const bool is_plain = close != std::string_view::npos && close > at && pattern[close] == ']';
  return is_plain ? close + 1 : std::string_view::npos;
}

bool has_brackets(std::string_view pattern) {
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] == '[') return true;
    if (pattern[at] == '\\') ++at;
  }
  return false;
}

}  // namespace

Pattern::Pattern(std::string_view pattern) {
  pattern = visible(pattern);
  find_literals(pattern);
  if (has_brackets(pattern)) {
    kind_ = Kind::brackets;
    source_ = pattern;
  } else {
    read(pattern);
  }
}

bool Pattern::Piece::stands_at_start_of(std::string_view text) const {
  if (text.size() < bytes.size() || !text.starts_with(head())) return false;
  for (std::size_t i = head_size; i < bytes.size(); ++i) {
    if (any[i] == 0 && bytes[i] != text[i]) return false;
  }
  return true;
}

std::size_t Pattern::Piece::find_in(std::string_view text) const {
  std::size_t at = text.find(head());
  while (at != std::string_view::npos && !stands_at_start_of(text.substr(at))) {
    at = text.find(head(), at + 1);
  }
  return at;
}

void Pattern::read(std::string_view pattern) {
  pieces_.emplace_back();
  const auto add = [&](char byte, bool any) {
    Piece& piece = pieces_.back();
    piece.bytes += byte;
    piece.any += any ? '\1' : '\0';
    if (!any && piece.head_size + 1 == piece.bytes.size()) ++piece.head_size;
    ++least_size_;
  };
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] == '*') {
      pieces_.emplace_back();
    } else if (pattern[at] == '?') {
      add('?', true);
    } else {
      if (pattern[at] == '\\') ++at;
      if (at == pattern.size()) {
        kind_ = Kind::never;  // the last backslash has no character after it
        return;
      }
      add(pattern[at], false);
    }
  }
  const bool is_literal =
      pieces_.size() == 1 && pieces_.front().head_size == pieces_.front().bytes.size();
  kind_ = is_literal ? Kind::literal : Kind::stars;
}

// Goes from left to right as long as it is clear which bytes are literal. Bytes after the last
// special one are always literal.
void Pattern::find_literals(std::string_view pattern) {
  std::string part;
  bool at_start = true;
  const auto end_part = [&] {
    if (std::exchange(at_start, false)) prefix_ = part;
    if (!part.empty()) parts_.push_back(std::exchange(part, {}));
  };
  std::size_t at = 0;
  while (at < pattern.size()) {
    const char byte = pattern[at++];
    if (kSpecial.find(byte) == std::string_view::npos) {
      part += byte;
    } else if (byte == '\\') {
      if (at < pattern.size()) part += pattern[at++];
    } else {
      end_part();
      if (byte != '[') continue;
      at = end_of_plain_bracket(pattern, at - 1);
      if (at == std::string_view::npos) break;
    }
  }
  if (at != std::string_view::npos) {
    suffix_ = part;
    end_part();
    return;
  }
  const std::size_t last = pattern.find_last_of("*?[]\\");
  suffix_ = pattern.substr(last + 1);
  if (!suffix_.empty()) parts_.push_back(suffix_);
}

bool Pattern::matches(std::string_view text) const {
  text = visible(text);
  switch (kind_) {
    case Kind::never:
      return false;
    case Kind::literal:
      return text == prefix_;
    case Kind::stars:
      return matches_pieces(text);
    case Kind::brackets:
      break;
  }
  if (!text.starts_with(prefix_) || !text.ends_with(suffix_)) return false;
  std::array<char, 256> copy;  // with a NUL byte at the end, which a view may lack
  if (text.size() >= copy.size()) {
    return ::fnmatch(source_.c_str(), std::string(text).c_str(), 0) == 0;
  }
  *std::ranges::copy(text, copy.begin()).out = '\0';
  return ::fnmatch(source_.c_str(), copy.data(), 0) == 0;
}

// The first piece must match at the start and the last one at the end. Each of the others matches
// as early as it can.
bool Pattern::matches_pieces(std::string_view text) const {
  const Piece& first = pieces_.front();
  const Piece& last = pieces_.back();
  if (text.size() < least_size_ || !first.stands_at_start_of(text)) return false;
  if (pieces_.size() == 1) return text.size() == least_size_;
  if (!last.stands_at_start_of(text.substr(text.size() - last.bytes.size()))) return false;
  std::string_view left = text.substr(first.bytes.size());
  left.remove_suffix(last.bytes.size());
  for (std::size_t i = 1; i + 1 < pieces_.size(); ++i) {
    const std::size_t at = pieces_[i].find_in(left);
    if (at == std::string_view::npos) return false;
    left.remove_prefix(at + pieces_[i].bytes.size());
  }
  return true;
}

}  // namespace vpfs::stage
