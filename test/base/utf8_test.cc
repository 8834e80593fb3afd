#include "base/utf8.h"

#include <array>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace vpfs {
namespace {

TEST(Utf8, ValidTextStaysAsItIs) {
  for (const std::string text :
       {"", "job-42", "\x7F", "\u00FC", "\u0800\uD7FF\uE000\uFFFF", "\U00010000\U0010FFFF"}) {
    EXPECT_EQ(valid_utf8(text), text);
  }
  EXPECT_EQ(valid_utf8(std::string("a\0b", 3)), std::string("a\0b", 3));
}

TEST(Utf8, EveryByteThatIsNotPartOfACharacterIsReplaced) {
  const std::string bad = "\uFFFD";
  EXPECT_EQ(valid_utf8("job-\xFF\x80x"), "job-" + bad + bad + "x");
  EXPECT_EQ(valid_utf8("\xC3"), bad) << "cut";
  EXPECT_EQ(valid_utf8("\xC3z"), bad + "z");
  EXPECT_EQ(valid_utf8("\xE2\x82"), bad + bad) << "cut";
  EXPECT_EQ(valid_utf8("\xC0\xAF"), bad + bad) << "overlong";
  EXPECT_EQ(valid_utf8("\xE0\x9F\xBF"), bad + bad + bad) << "overlong";
  EXPECT_EQ(valid_utf8("\xED\xA0\x80"), bad + bad + bad) << "a surrogate";
  EXPECT_EQ(valid_utf8("\xF4\x90\x80\x80"), bad + bad + bad + bad) << "above U+10FFFF";
}

TEST(Utf8, APrefixEndsBetweenCharacters) {
  EXPECT_EQ(utf8_prefix("abc", 3), "abc");
  EXPECT_EQ(utf8_prefix("abc", 2), "ab");
  EXPECT_EQ(utf8_prefix("a\u00FCb", 2), "a");
  EXPECT_EQ(utf8_prefix("a\u00FCb", 3), "a\u00FC");
  EXPECT_EQ(utf8_prefix("\x80\x80\x80", 2), "");
}

TEST(Utf8, JsonTakesAllThatItReturns) {
  constexpr std::array kEdges = {0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF};
  for (int first = 0; first < 256; ++first) {
    for (const int second : kEdges) {
      const std::string text = {static_cast<char>(first), static_cast<char>(second), '\x80'};
      EXPECT_NO_THROW((void)nlohmann::json(valid_utf8(text)).dump()) << first << ' ' << second;
    }
  }
}

}  // namespace
}  // namespace vpfs
