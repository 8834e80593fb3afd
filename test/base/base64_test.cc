#include "base/base64.h"

#include <cstddef>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace vpfs {
namespace {

TEST(Base64, GivesTheExamplesOfTheStandard) {
  const std::vector<std::pair<std::string, std::string>> examples = {{"", ""},
                                                                     {"f", "Zg=="},
                                                                     {"fo", "Zm8="},
                                                                     {"foo", "Zm9v"},
                                                                     {"foob", "Zm9vYg=="},
                                                                     {"fooba", "Zm9vYmE="},
                                                                     {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : examples) {
    EXPECT_EQ(to_base64(bytes), text);
    EXPECT_EQ(from_base64(text), bytes);
  }
}

TEST(Base64, TakesEachByte) {
  const std::string bytes("\x00\x10\x83\x10\x51\x87\x20\x92\x8b\xff\xfb\xf0\n", 13);
  EXPECT_EQ(to_base64(bytes), "ABCDEFGHIJKL//vwCg==");
  EXPECT_EQ(from_base64("ABCDEFGHIJKL//vwCg=="), bytes);
}

TEST(Base64, WhatWasEncodedIsDecoded) {
  std::mt19937_64 random(3);
  for (std::size_t size = 0; size < 300; ++size) {
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    const std::string text = to_base64(bytes);
    EXPECT_EQ(text.size(), (size + 2) / 3 * 4);
    EXPECT_EQ(from_base64(text), bytes);
  }
}

TEST(Base64, TakesNothingElse) {
  for (const std::string text :
       {"Z", "Zg", "Zg=", "Zg===", "====", "=", "Z===", "Zg==Zg==", "Zm8=Zm9v", "Zm9v\n", "Zm 9",
        "Zm-_", "Zm9*", "Zh==", "Zm9=", "=m9v", "Z=9v", "Zm=v", "\xff\xff\xff\xff"}) {
    EXPECT_FALSE(from_base64(text)) << text;
  }
  EXPECT_FALSE(from_base64(std::string("Zm9\0", 4)));
}

}  // namespace
}  // namespace vpfs
