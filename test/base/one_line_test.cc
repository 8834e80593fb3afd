#include "base/one_line.h"

#include <string>

#include <gtest/gtest.h>

namespace vpfs {
namespace {

TEST(OneLine, ControlCharactersAreEscaped) {
  EXPECT_EQ(one_line("a\nb\r\x1b[1m\x7f"), "a\\nb\\x0d\\x1b[1m\\x7f");
  EXPECT_EQ(one_line("Grüße"), "Grüße");
  EXPECT_EQ(one_line(""), "");
}

TEST(OneShortLine, WhatIsLongEndsAfterAWholeCharacter) {
  EXPECT_EQ(one_short_line("abcd", 4), "abcd");
  EXPECT_EQ(one_short_line("abcde", 4), "abcd...");
  EXPECT_EQ(one_short_line("abcü", 4), "abc...");
  EXPECT_EQ(one_short_line("\n\n\n", 2), "\\n\\n...");
  EXPECT_EQ(one_short_line(std::string(5000, '\x80')), "...") << "no character of UTF-8 ends";
}

}  // namespace
}  // namespace vpfs
