#include "sim/proxies/whatif/entitlement.h"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "schedulers/policies/registry.h"

namespace vpfs::sim {
namespace {

using namespace std::chrono_literals;

std::vector<std::uint64_t> divided(const std::vector<Promise>& promises, std::uint64_t moved) {
  std::vector<std::uint64_t> counts;
  for (const Bytes each : entitled(promises, {moved}, 1s)) counts.push_back(each.count);
  return counts;
}

Promise promised(const char* policy, const Share& share, std::uint64_t servers = 1) {
  return promise_of(*find_policy(policy), share, servers);
}

using Counts = std::vector<std::uint64_t>;

TEST(Entitlement, WithoutRatesItFollowsWeights) {
  EXPECT_EQ(divided({{.weight = 3}, {.weight = 1}}, 400), (Counts{300, 100}));
  EXPECT_EQ(divided({{.weight = 5}}, 7), (Counts{7}));
  EXPECT_EQ(divided({}, 7), Counts());
}

TEST(Entitlement, WhatALimitLeavesGoesToTheOthersByWeight) {
  const std::vector<Promise> promises = {
      {.weight = 6, .most = BytesPerSecond{100}}, {.weight = 2}, {.weight = 1}};
  EXPECT_EQ(divided(promises, 400), (Counts{100, 200, 100}));
  EXPECT_EQ(divided({{.most = BytesPerSecond{100}}}, 400), (Counts{100}));
}

TEST(Entitlement, AMinimumComesFirst) {
  EXPECT_EQ(divided({{.weight = 1, .least = {200}}, {.weight = 3}}, 400), (Counts{200, 200}));
  EXPECT_EQ(divided({{.weight = 3, .least = {200}}, {.weight = 1}}, 400), (Counts{300, 100}));
}

TEST(Entitlement, BothBoundsHoldAtOnce) {
  // By weight alone the first would have 40 and the second 360.
  const std::vector<Promise> promises = {
      {.weight = 1, .least = {100}}, {.weight = 9, .most = BytesPerSecond{250}}, {.weight = 1}};
  EXPECT_EQ(divided(promises, 440), (Counts{100, 250, 90}));
}

TEST(Entitlement, TooLittleForAllMinimumsGoesByRank) {
  EXPECT_EQ(divided({{.rank = 1, .least = {300}},
                     {.rank = 1, .least = {100}},
                     {.rank = 0, .least = {200}},
                     {}},
                    400),
            (Counts{150, 50, 200, 0}));
}

TEST(Entitlement, LargeRatesAndTimesDoNotOverflow) {
  const std::uint64_t most = Share::kMaxRate;
  const std::vector<Bytes> result =
      entitled(std::vector<Promise>{promised("sfq", {.rate = {most}}, 1'000'000), {}}, {most},
               std::chrono::hours(24));
  EXPECT_EQ(result[0].count, most / 2);
}

TEST(Entitlement, AdapTbfDividesByNodes) {
  const Share simulation{.weight = 7, .own = {{.word = "nodes", .value = 3}}};
  EXPECT_EQ(promised("adaptbf", simulation), (Promise{.weight = 3}));
  // Without the word the weight stands for it.
  EXPECT_EQ(promised("adaptbf", {.weight = 7}), (Promise{.weight = 7}));
  EXPECT_EQ(promised("sfq", simulation), (Promise{.weight = 7}));
}

TEST(Entitlement, ARateOfTbfIsAllThatAClassHasAndWeightsMeanNothing) {
  const Promise rated = promised("tbf", {.weight = 5, .rate = {100}, .rank = 2}, 3);
  EXPECT_EQ(rated, (Promise{.weight = 1, .rank = 2, .least = {300}, .most = BytesPerSecond{300}}));
  EXPECT_EQ(divided({rated, promised("tbf", {.weight = 9}), promised("tbf", {})}, 500),
            (Counts{300, 100, 100}));
}

TEST(Entitlement, SfqHasMinimumsAndLimitsOnEachServer) {
  EXPECT_EQ(promised("sfq", {.weight = 2, .rate = {100}, .min = {150}}, 2),
            (Promise{.weight = 2, .least = {200}, .most = BytesPerSecond{200}}));
  EXPECT_EQ(promised("fifo", {.weight = 2, .rate = {100}}, 2), (Promise{.weight = 2}));
}

TEST(Entitlement, EdfPromisesARateWithATarget) {
  EXPECT_EQ(promised("edf", {.rate = {100}, .latency = 10ms}), (Promise{.least = {100}}));
  EXPECT_EQ(promised("edf", {.rate = {100}}), Promise());
}

}  // namespace
}  // namespace vpfs::sim
