#include "stage/rules/known_identities.h"

#include <map>
#include <random>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "test/support/allocation_count.h"

namespace vpfs::stage {
namespace {

using Known = KnownIdentities<int>;

std::string key_of(int number) {
  return fmt::format("\x01\x02 of node 10.1.2.3 and directory {}", number);
}

// Uses the cache as its owner does; returns whether the key was known.
bool visit(Known& known, int number) {
  const std::string key = key_of(number);
  if (const int* const value = known.find(key)) {
    EXPECT_EQ(*value, number);
    return true;
  }
  known.insert(key, number);
  return false;
}

TEST(KnownIdentities, TellsKeysApartByAllOfTheirBytes) {
  Known known(1);
  EXPECT_EQ(known.find(""), nullptr);
  known.insert("", 1);
  known.insert(std::string(1, '\0'), 2);
  known.insert(std::string(2, '\0'), 3);
  known.insert("abcdefghijklmnopq", 4);
  known.insert("abcdefghijklmnopr", 5);
  EXPECT_EQ(*known.find(""), 1);
  EXPECT_EQ(*known.find(std::string(1, '\0')), 2);
  EXPECT_EQ(*known.find(std::string(2, '\0')), 3);
  EXPECT_EQ(*known.find("abcdefghijklmnopq"), 4);
  EXPECT_EQ(*known.find("abcdefghijklmnopr"), 5);
  EXPECT_EQ(known.find("abcdefghijklmnop"), nullptr);
}

TEST(KnownIdentities, HoldsTenThousandThatComeRoundAgain) {
  Known known(2);
  for (int i = 0; i < 10'000; ++i) EXPECT_FALSE(visit(known, i));
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 10'000; ++i) ASSERT_TRUE(visit(known, i)) << i;
  }
}

TEST(KnownIdentities, KeepsWhatIsUsedThroughAFloodOfOthers) {
  Known known(3, {.entries = 1000, .bytes = 1'000'000});
  for (int i = 0; i < 100; ++i) visit(known, i);
  for (int flood = 0; flood < 50'000; ++flood) {
    visit(known, 1'000'000 + flood);
    ASSERT_LE(known.size(), 2000);
    if (flood % 500 != 0) continue;
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(visit(known, i)) << flood;
  }
  EXPECT_FALSE(visit(known, 1'000'000));
}

TEST(KnownIdentities, StopsGrowing) {
  Known known(4, {.entries = 500, .bytes = 8000});
  const auto flood = [&](int from) {
    for (int i = from; i < from + 5000; ++i) {
      const std::string key = key_of(i) + std::string(static_cast<std::size_t>(i % 100), 'x');
      if (known.find(key) == nullptr) known.insert(key, i);
    }
  };
  flood(0);
  EXPECT_LE(known.size(), 2 * 8000 / key_of(0).size());
  const std::string key(60, 'k');
  const std::uint64_t before = allocation_count();
  for (int i = 0; i < 5000; ++i) {
    const std::string_view part = std::string_view(key).substr(0, static_cast<std::size_t>(i % 60));
    if (known.find(part) == nullptr) known.insert(part, i);
  }
  EXPECT_EQ(allocation_count(), before) << "its memory is there already";
  known.insert(std::string(9000, 'x'), 1);
  EXPECT_EQ(known.find(std::string(9000, 'x')), nullptr) << "no room for such a key";
}

TEST(KnownIdentities, ForgetsAllAtOnceAndKeepsItsMemory) {
  Known known(5, {.entries = 100, .bytes = 100'000});
  for (int round = 0; round < 5; ++round) {
    const std::uint64_t before = allocation_count();
    std::string key;
    key.reserve(100);
    const std::uint64_t reserved = allocation_count() - before;
    for (int i = 0; i < 150; ++i) {
      key.assign("key ");
      key += static_cast<char>(i);
      EXPECT_EQ(known.find(key), nullptr) << round;
      known.insert(key, i);
      EXPECT_EQ(*known.find(key), i);
    }
    EXPECT_EQ(allocation_count() - before, reserved);
    EXPECT_EQ(known.size(), 150);
    known.forget_all();
    EXPECT_EQ(known.size(), 0);
    EXPECT_EQ(known.find(key), nullptr);
  }
}

// Compares with a map: found values are right, and all of the last `entries` are found.
TEST(KnownIdentities, FindsWhatWasInsertedAndNothingElse) {
  Known known(6, {.entries = 64, .bytes = 100'000});
  std::mt19937 random(1);
  std::map<std::string, int> inserted;
  for (int i = 0; i < 50'000; ++i) {
    const std::string key(random() % 20, static_cast<char>('a' + random() % 20));
    const int* const found = known.find(key);
    if (found != nullptr) {
      ASSERT_EQ(*found, inserted.at(key));
    } else {
      known.insert(key, i);
      inserted[key] = i;
    }
    if (random() % 2000 == 0) {
      known.forget_all();
      inserted.clear();
    }
  }
}

TEST(TextHash, DiffersByEveryByteAndBySeed) {
  const TextHash hash(1);
  std::map<std::uint64_t, std::string> seen;
  for (std::size_t size = 0; size < 70; ++size) {
    const std::string text(size, '\0');
    EXPECT_TRUE(seen.emplace(hash(text), text).second) << size;
    EXPECT_NE(hash(text), TextHash(2)(text));
    for (std::size_t i = 0; i < size; ++i) {
      std::string other = text;
      other[i] = '\1';
      EXPECT_TRUE(seen.emplace(hash(other), other).second) << size << " and " << i;
    }
  }
}

}  // namespace
}  // namespace vpfs::stage
