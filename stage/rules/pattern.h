#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vpfs::stage {

// A shell pattern, as of fnmatch(3) without flags in the C locale: `*`, `?`, `[...]`, and `\`
// before a literal character. A pattern and a text end at their first NUL byte, if any.
class Pattern {
 public:
  explicit Pattern(std::string_view pattern);

  [[nodiscard]] bool matches(std::string_view text) const;

  // Up to the first NUL byte.
  [[nodiscard]] static std::string_view visible(std::string_view text) {
    return text.substr(0, text.find('\0'));
  }

  // It matches nothing at all.
  [[nodiscard]] bool is_never() const { return kind_ == Kind::never; }
  // It matches prefix() and nothing else.
  [[nodiscard]] bool is_literal() const { return kind_ == Kind::literal; }
  // Every matching text begins with, ends with and contains these.
  [[nodiscard]] std::string_view prefix() const { return prefix_; }
  [[nodiscard]] std::string_view suffix() const { return suffix_; }
  [[nodiscard]] const std::vector<std::string>& parts() const { return parts_; }

 private:
  enum class Kind : std::uint8_t { literal, stars, brackets, never };
  // The part between two stars.
  struct Piece {
    std::string bytes;
    std::string any;            // as long as `bytes`; not zero: any byte matches there
    std::size_t head_size = 0;  // before the first of them

    [[nodiscard]] std::string_view head() const {
      return std::string_view(bytes).substr(0, head_size);
    }
    [[nodiscard]] bool stands_at_start_of(std::string_view text) const;
    [[nodiscard]] std::size_t find_in(std::string_view text) const;
  };

  void read(std::string_view pattern);
  void find_literals(std::string_view pattern);
  [[nodiscard]] bool matches_pieces(std::string_view text) const;

  Kind kind_ = Kind::literal;
  std::string prefix_;
  std::string suffix_;
  std::vector<std::string> parts_;
  std::vector<Piece> pieces_;   // without brackets
  std::size_t least_size_ = 0;  // of them all
  std::string source_;          // with brackets
};

}  // namespace vpfs::stage
