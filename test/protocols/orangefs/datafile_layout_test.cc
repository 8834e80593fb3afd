#include "protocols/orangefs/datafile_layout.h"

#include <random>

#include <gtest/gtest.h>

#include "test/protocols/orangefs/striping_model.h"

namespace vpfs::orangefs {
namespace {

using test::random_striping;
using test::StripingModel;

TEST(DatafileLayout, GivesTheOffsetsThatCountingGives) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    const StripingModel model = random_striping(random);
    for (std::uint32_t server = 0; server < model.servers; ++server) {
      const auto layout =
          DatafileLayout::of(model.distribution, {.server_nr = server, .server_ct = model.servers});
      ASSERT_TRUE(layout);
      const std::vector<std::int64_t> offsets = model.offsets(server, 400);
      for (std::size_t at = 0; at < offsets.size(); ++at) {
        ASSERT_EQ(layout->below(static_cast<std::int64_t>(at)), offsets[at]) << round << " " << at;
      }
      for (std::size_t at = 0; at + 1 < offsets.size(); ++at) {
        if (offsets[at + 1] == offsets[at]) continue;
        ASSERT_EQ(layout->logical_end(offsets[at + 1]), static_cast<std::int64_t>(at + 1));
      }
    }
  }
}

TEST(DatafileLayout, ManyRunsAreCountedAsOneByOne) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 200; ++round) {
    const StripingModel model = random_striping(random);
    const auto server = static_cast<std::uint32_t>(random() % model.servers);
    const auto layout =
        DatafileLayout::of(model.distribution, {.server_nr = server, .server_ct = model.servers});
    const Runs runs{.begin = static_cast<std::int64_t>(random() >> (4 + random() % 59)),
                    .stride = static_cast<std::int64_t>(1 + (random() >> (20 + random() % 43))),
                    .count = static_cast<std::int64_t>(random() % 20000),
                    .size = static_cast<std::int64_t>(random() % 100)};
    std::int64_t counted = 0;
    for (std::int64_t i = 0; i < runs.count; ++i) {
      const std::int64_t begin = runs.begin + i * runs.stride;
      counted += layout->below(begin + runs.size) - layout->below(begin);
    }
    ASSERT_EQ(layout->in_runs(runs), counted) << round;
  }
}

TEST(DatafileLayout, AMillionMillionRunsTakeAsLongAsAThousand) {
  const auto layout =
      DatafileLayout::of(SimpleStripe{.strip_size = 65536}, {.server_nr = 1, .server_ct = 3});
  const Runs runs{.begin = 7, .stride = 65537, .count = std::int64_t{1} << 40, .size = 1};
  EXPECT_LE(layout->steps(runs), 1000);
  // Every offset in the stripe comes equally often, except in the last round of 196608.
  const std::int64_t found = layout->in_runs(runs);
  EXPECT_GE(found, runs.count / 196608 * 65536);
  EXPECT_LE(found, (runs.count / 196608 + 1) * 65536);
}

TEST(DatafileLayout, ParametersThatNoServerCanWorkWithAreNotKnown) {
  const Placement placement{.server_nr = 0, .server_ct = 2};
  const std::vector<Distribution> bad = {
      SimpleStripe{.strip_size = 0},
      SimpleStripe{.strip_size = -4096},
      SimpleStripe{.strip_size = std::int64_t{1} << 62},
      TwoDStripe{.groups = 0},
      TwoDStripe{.groups = 3},
      TwoDStripe{.groups = 2, .strip_size = 0},
      TwoDStripe{.groups = 2, .strip_size = 65536, .factor = 0},
      TwoDStripe{.groups = 2, .strip_size = 65536, .factor = 1U << 31},
      TwoDStripe{.groups = 2, .strip_size = std::int64_t{1} << 60, .factor = 4},
      VarStrip{.strips = ""},
      VarStrip{.strips = "0"},
      VarStrip{.strips = "0:"},
      VarStrip{.strips = "0:0;1:5"},
      VarStrip{.strips = "0:-5;1:5"},
      VarStrip{.strips = "-1:5"},
      VarStrip{.strips = "0: 5"},
      VarStrip{.strips = "0:5,1:5"},
      VarStrip{.strips = "0:5;;1:5"},
      VarStrip{.strips = "0:9999999999G"},
      VarStrip{.strips = "0:99999999999999999999"},
      VarStrip{.strips = std::string(2000, '1')}};
  for (const Distribution& distribution : bad) {
    EXPECT_FALSE(DatafileLayout::of(distribution, placement)) << distribution.index();
  }
  EXPECT_FALSE(DatafileLayout::of(BasicDistribution{}, {.server_nr = 2, .server_ct = 2}));
  EXPECT_FALSE(DatafileLayout::of(BasicDistribution{}, {.server_nr = 0, .server_ct = 0}));
  EXPECT_FALSE(DatafileLayout::of(VarStrip{"0:5;1:5"}, {.server_nr = 0, .server_ct = 1}));
}

TEST(DatafileLayout, OneDatafileOfATwoDimensionalFileHasEverything) {
  const auto layout = DatafileLayout::of(TwoDStripe{}, {.server_nr = 0, .server_ct = 1});
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->below(123456789), 123456789);
}

TEST(DatafileLayout, UnitsAndADatafileWithoutStripsAreUnderstood) {
  const VarStrip strips{.strips = "0:1K;1:2m;0:1G;"};
  const auto zero = DatafileLayout::of(strips, {.server_nr = 0, .server_ct = 3});
  ASSERT_TRUE(zero);
  EXPECT_EQ(zero->below((1 << 10) + (2 << 20) + (1 << 30)), (1 << 10) + (1 << 30));
  const auto two = DatafileLayout::of(strips, {.server_nr = 2, .server_ct = 3});
  ASSERT_TRUE(two);
  EXPECT_EQ(two->below(1 << 30), 0);
  EXPECT_EQ(two->logical_end(1), two->limit());
}

TEST(DatafileLayout, TooManyIrregularStripsAreNotKnown) {
  std::string strips;
  for (int i = 1; i <= 40; ++i) strips += "0:" + std::to_string(i) + ";1:1;";
  EXPECT_FALSE(DatafileLayout::of(VarStrip{strips}, {.server_nr = 0, .server_ct = 2}));
  EXPECT_FALSE(DatafileLayout::of(VarStrip{strips}, {.server_nr = 1, .server_ct = 2}));
  std::string even;
  for (int i = 1; i <= 40; ++i) even += "0:7;1:3;";
  EXPECT_TRUE(DatafileLayout::of(VarStrip{even}, {.server_nr = 1, .server_ct = 2}));
}

}  // namespace
}  // namespace vpfs::orangefs
