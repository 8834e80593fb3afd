#include "stage/rules/pattern.h"

#include <random>
#include <string>

#include <fnmatch.h>
#include <gtest/gtest.h>

namespace vpfs::stage {
namespace {

bool fnmatches(const std::string& pattern, const std::string& text) {
  return ::fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

std::string random_text(std::mt19937& random, std::string_view alphabet, std::size_t most) {
  std::string text(random() % (most + 1), ' ');
  for (char& each : text) each = alphabet[random() % alphabet.size()];
  return text;
}

TEST(Pattern, MatchesWhatFnmatchMatches) {
  std::mt19937 random(1);
  constexpr std::string_view kPatterns("aab-*?*?[]!^\\z:.\0\xe9", 18);
  constexpr std::string_view kTexts("aab-*[]!\\z:\0\xe9", 13);
  std::size_t matched = 0;
  for (int i = 0; i < 50'000; ++i) {
    const std::string pattern = random_text(random, kPatterns, 9);
    const std::string text = random_text(random, kTexts, 7);
    const bool expected = fnmatches(pattern, text);
    matched += expected ? 1 : 0;
    ASSERT_EQ(Pattern(pattern).matches(text), expected)
        << testing::PrintToString(pattern) << " and " << testing::PrintToString(text);
  }
  EXPECT_GT(matched, 1'000);
}

// Every matching text has the literal parts; otherwise an index by them would miss it.
TEST(Pattern, ItsLiteralPartsAreInEachTextThatMatches) {
  std::mt19937 random(2);
  std::size_t with_parts = 0;
  for (int i = 0; i < 50'000; ++i) {
    const Pattern pattern(random_text(random, "aaabbc***?[]!-\\:", 9));
    const std::string text = random_text(random, "aabbc[]-", 7);
    if (!pattern.matches(text)) continue;
    EXPECT_FALSE(pattern.is_never());
    EXPECT_TRUE(text.starts_with(pattern.prefix()));
    EXPECT_TRUE(text.ends_with(pattern.suffix()));
    EXPECT_TRUE(!pattern.is_literal() || text == pattern.prefix());
    for (const std::string& part : pattern.parts()) {
      EXPECT_NE(text.find(part), std::string::npos) << text << " has no " << part;
    }
    with_parts += pattern.parts().empty() ? 0 : 1;
  }
  EXPECT_GT(with_parts, 300);
}

TEST(Pattern, TellsItsLiteralParts) {
  const Pattern pattern("a\\*b*cd?[x-z]efg[!q]*hi");
  EXPECT_EQ(pattern.prefix(), "a*b");
  EXPECT_EQ(pattern.suffix(), "hi");
  EXPECT_EQ(pattern.parts(), (std::vector<std::string>{"a*b", "cd", "efg", "hi"}));
  EXPECT_TRUE(Pattern("job-7").is_literal());
  EXPECT_TRUE(Pattern("job\\?").is_literal());
  EXPECT_TRUE(Pattern("").is_literal());
  EXPECT_TRUE(Pattern("job\\").is_never());
  EXPECT_EQ(Pattern("[[:alpha:]x]yz").suffix(), "yz");
  EXPECT_EQ(Pattern("*").parts().size(), 0);
}

TEST(Pattern, EndsAtANulByteAsATextDoes) {
  const std::string with_nul("ab\0c", 4);
  EXPECT_TRUE(Pattern("ab").matches(with_nul));
  EXPECT_TRUE(Pattern(with_nul).matches("ab"));
  EXPECT_FALSE(Pattern("ab?c").matches(with_nul));
  EXPECT_FALSE(Pattern("*c").matches(with_nul));
  EXPECT_TRUE(Pattern("[a]b").matches(with_nul));
  EXPECT_TRUE(Pattern("").matches(std::string(1, '\0')));
}

TEST(Pattern, MatchesLongTexts) {
  const std::string text = std::string(32'000, 'a') + "b";
  for (const char* each : {"*b", "a*", "*aab", "*a*a*a*a*b", "[a]*[b]", "*"}) {
    EXPECT_TRUE(Pattern(each).matches(text)) << each;
  }
  for (const char* each : {"*c*", "*ba*", "*a*b*a*b", "?", "[b]*"}) {
    EXPECT_FALSE(Pattern(each).matches(text)) << each;
  }
}

}  // namespace
}  // namespace vpfs::stage
