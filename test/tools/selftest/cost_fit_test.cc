#include "tools/selftest/cost_fit.h"

#include <vector>

#include <gtest/gtest.h>

namespace vpfs::selftest {
namespace {

// What a server does whose requests take this long, in seconds.
struct Server {
  double request = 0;
  double read_byte = 0;
  double write_byte = 0;

  [[nodiscard]] CostPoint point(bool reads, std::uint64_t size) const {
    const double time = request + static_cast<double>(size) * (reads ? read_byte : write_byte);
    return {.reads = reads, .size = {size}, .requests_per_second = 1 / time};
  }
  [[nodiscard]] std::vector<CostPoint> points() const {
    std::vector<CostPoint> points;
    for (const std::uint64_t size : {4 * kKiB, 64 * kKiB, kMiB}) {
      points.push_back(point(true, size));
      points.push_back(point(false, size));
    }
    return points;
  }
};

TEST(CostFit, FindsTheCostsOfAServerThatFollowsTheModel) {
  const Server server = {.request = 96.0 * kKiB * 1e-9, .read_byte = 1e-9, .write_byte = 1.5e-9};
  const auto fit = fit_costs(server.points());
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->per_request, 96.0 * kKiB, 1);
  EXPECT_NEAR(fit->write_factor, 1.5, 1e-6);
  EXPECT_LT(fit->worst_error, 1e-6);
}

TEST(CostFit, SaysHowFarTheServerIsFromTheModel) {
  std::vector<CostPoint> points = Server{1e-4, 1e-9, 1e-9}.points();
  points[2].requests_per_second /= 2;
  const auto fit = fit_costs(points);
  ASSERT_TRUE(fit);
  EXPECT_GT(fit->worst_error, 0.2);
}

TEST(CostFit, ARequestThatCostsNothingHasNoNegativeCost) {
  // Large requests are less efficient, so a line through the points would begin below zero.
  std::vector<CostPoint> points = Server{0, 1e-9, 1e-9}.points();
  for (const std::size_t i : {4U, 5U}) points[i].requests_per_second /= 1.3;
  const auto fit = fit_costs(points);
  ASSERT_TRUE(fit);
  EXPECT_EQ(fit->per_request, 0);
  EXPECT_NEAR(fit->write_factor, 1, 1e-6);
}

TEST(CostFit, OneSizeAloneTellsNothing) {
  const Server server = {1e-4, 1e-9, 1e-9};
  EXPECT_FALSE(fit_costs(std::vector{server.point(true, kMiB), server.point(false, kMiB)}));
  EXPECT_FALSE(fit_costs({}));
}

TEST(CostFit, ReadsAloneTellNothingOfWrites) {
  const Server server = {1e-4, 1e-9, 1e-9};
  EXPECT_FALSE(fit_costs(std::vector{server.point(true, kMiB), server.point(true, 4 * kKiB)}));
}

TEST(CostFit, LargerRequestsThatTakeNoLongerTellNothing) {
  EXPECT_FALSE(fit_costs(Server{1e-4, -1e-11, -1e-11}.points()));
}

TEST(CostFit, APointWhereNothingEndedIsLeftOut) {
  std::vector<CostPoint> points = Server{1e-4, 1e-9, 1e-9}.points();
  points.push_back({.reads = true, .size = {kMiB}, .requests_per_second = 0});
  const auto fit = fit_costs(points);
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->per_request, 1e5, 1);
}

}  // namespace
}  // namespace vpfs::selftest
