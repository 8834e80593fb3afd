#include "schedulers/cost_model.h"

#include <gtest/gtest.h>

namespace vpfs {
namespace {

TEST(CostModel, AddsTheFixedPartToTheBytesTimesTheirFactor) {
  const CostModel model({.per_request = {4096},
                         .read_factor_permille = 500,
                         .write_factor_permille = 2500,
                         .metadata = {300}});
  EXPECT_EQ(model.cost(IoKind::read, Bytes{1000}), 4096U + 500);
  EXPECT_EQ(model.cost(IoKind::write, Bytes{1000}), 4096U + 2500);
  EXPECT_EQ(model.cost(IoKind::metadata, Bytes{0}), 4096U + 300);
  EXPECT_EQ(model.cost(IoKind::write, Bytes{3}), 4096U + 7) << "rounds down";
}

TEST(CostModel, NothingIsFree) {
  const CostModel model({.read_factor_permille = 1});
  EXPECT_EQ(model.cost(IoKind::read, Bytes{0}), 1U);
  EXPECT_EQ(model.cost(IoKind::read, Bytes{999}), 1U);
}

TEST(CostModel, NoSizeOrFactorPassesTheLargestCost) {
  const CostModel dear(
      {.per_request = {UINT64_MAX}, .read_factor_permille = 1'000'000, .write_factor_permille = 1});
  EXPECT_EQ(dear.cost(IoKind::read, Bytes{UINT64_MAX}), kMaxCost);
  EXPECT_EQ(dear.cost(IoKind::write, Bytes{0}), kMaxCost);
  const CostModel factors({.read_factor_permille = 1'000'000, .write_factor_permille = 1});
  EXPECT_EQ(factors.cost(IoKind::read, Bytes{1}), 1000U);
  EXPECT_EQ(factors.cost(IoKind::read, Bytes{kMaxCost / 1000}), kMaxCost / 1000 * 1000);
  EXPECT_EQ(factors.cost(IoKind::read, Bytes{kMaxCost}), kMaxCost);
  EXPECT_EQ(factors.cost(IoKind::write, Bytes{UINT64_MAX}), kMaxCost);
  EXPECT_EQ(factors.cost(IoKind::write, Bytes{kMaxCost}), kMaxCost / 1000);
}

}  // namespace
}  // namespace vpfs
