#include "base/nearest_word.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace vpfs {
namespace {

std::string nearest(std::string_view text, const std::vector<std::string>& known) {
  const std::string* const found = nearest_word(text, known);
  return found == nullptr ? "" : *found;
}

TEST(NearestWord, ATypingErrorFindsTheWord) {
  const std::vector<std::string> known = {"weekly", "backup", "default"};
  EXPECT_EQ(nearest("weekyl", known), "weekly");
  EXPECT_EQ(nearest("backpu", known), "backup");
  EXPECT_EQ(nearest("defalt", known), "default");
}

TEST(NearestWord, AnotherWordFindsNone) {
  EXPECT_EQ(nearest("climate", {"weekly", "backup"}), "");
  EXPECT_EQ(nearest("ab", {"x"}), "") << "a word that is all changed is not near";
  EXPECT_EQ(nearest("", {}), "");
}

}  // namespace
}  // namespace vpfs
