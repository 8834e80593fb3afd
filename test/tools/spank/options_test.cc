#include "tools/spank/options.h"

#include <optional>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vpfs::spank {
namespace {

using testing::HasSubstr;
using wishes::Wish;

std::string answer(Options& options, Wish wish, std::string_view value) {
  const Result<void> taken = options.take(wish, value);
  return taken ? "taken" : taken.error().message;
}

TEST(SpankOptions, WhatHasABoundIsOffered) {
  const Options options({"weight=1..8", "deadline=5ms.."});
  EXPECT_TRUE(options.offers(Wish::weight));
  EXPECT_FALSE(options.offers(Wish::rate));
  EXPECT_TRUE(options.offers(Wish::deadline));
  EXPECT_THAT(options.usage(Wish::weight), HasSubstr("(a whole number from 1 to 8)"));
}

TEST(SpankOptions, TheLastValueCountsAndARefusedOneChangesNothing) {
  Options options({"weight=1..8"});
  EXPECT_EQ(options.taken(Wish::weight), std::nullopt);
  EXPECT_EQ(answer(options, Wish::weight, "4"), "taken");
  EXPECT_EQ(answer(options, Wish::weight, "2"), "taken");
  EXPECT_THAT(answer(options, Wish::weight, "9"),
              HasSubstr("--vpfs-weight: \"9\" is out of bounds: expected a whole number from 1"));
  EXPECT_EQ(options.taken(Wish::weight), "2");
}

TEST(SpankOptions, WithMistypedBoundsEachIsRefusedAndSaysSo) {
  Options options({"weight=1-8", "rate=..1GiB/s"});
  EXPECT_TRUE(options.mistake().has_value());
  for (const Wish wish : wishes::kWishes) {
    EXPECT_TRUE(options.offers(wish));
    EXPECT_FALSE(options.usage(wish).empty());
    EXPECT_THAT(answer(options, wish, "4"), HasSubstr("mistyped"));
    EXPECT_THAT(answer(options, wish, "4"), HasSubstr("weight: \"1-8\" is not a range"));
    EXPECT_EQ(options.taken(wish), std::nullopt);
  }
}

TEST(SpankOptions, HaveTheNamesThatScriptsExpect) {
  EXPECT_EQ(option_name(Wish::deadline), "vpfs-deadline");
  EXPECT_EQ(variable_name(Wish::deadline), "VPFS_DEADLINE");
  EXPECT_EQ(inherited_name(Wish::weight), "SLURM_SPANK__SLURM_SPANK_OPTION_vpfs_vpfs_weight");
}

}  // namespace
}  // namespace vpfs::spank
