#include "base/flat_table.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <random>

#include <gtest/gtest.h>

namespace vpfs {
namespace {

TEST(FlatTable, HoldsWhatAMapHolds) {
  std::mt19937_64 random(3);
  FlatTable<std::uint64_t> table(17);
  std::map<std::uint64_t, std::uint64_t> expected;
  for (int step = 0; step < 100'000; ++step) {
    const std::uint64_t key = (random() % 500) << (random() % 3 * 20);
    if (table.find(key) == nullptr) {
      table.insert(key, random());
      expected[key] = *table.find(key);
    } else {
      ASSERT_EQ(*table.find(key), expected.at(key));
      table.erase(key);
      expected.erase(key);
    }
    ASSERT_EQ(table.size(), expected.size());
  }
  table.for_each([&](std::uint64_t key, std::uint64_t value) {
    EXPECT_EQ(value, expected.at(key));
    expected.erase(key);
  });
  EXPECT_TRUE(expected.empty());
}

struct Counted {
  Counted() { ++alive; }
  Counted(const Counted&) { ++alive; }
  ~Counted() { --alive; }
  Counted& operator=(const Counted&) = default;
  static inline std::size_t alive = 0;
};

TEST(FlatTable, GivesTheMemoryOfABurstBackOnceItIsEmpty) {
  FlatTable<Counted> table;
  for (int round = 0; round < 3; ++round) {
    for (std::uint64_t key = 0; key < 10'000; ++key) table.insert(key, {});
    EXPECT_GE(Counted::alive, 10'000U);
    for (std::uint64_t key = 0; key < 10'000; ++key) table.erase(key);
    EXPECT_LE(Counted::alive, 256U);
    EXPECT_EQ(table.find(5), nullptr);
  }
}

// This would take minutes if low bits chose the places.
TEST(FlatTable, KeysOfTheSameLowBitsAreAsFastAsOthers) {
  constexpr std::uint64_t kKeys = 200'000;
  for (const int shift : {0, 20, 40}) {
    FlatTable<int> table;
    for (std::uint64_t key = 0; key < kKeys; ++key) table.insert(key << shift, 1);
    for (std::uint64_t key = 0; key < kKeys; ++key) table.erase(key << shift);
    EXPECT_EQ(table.size(), 0U);
  }
}

}  // namespace
}  // namespace vpfs
