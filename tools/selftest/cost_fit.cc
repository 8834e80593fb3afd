#include "tools/selftest/cost_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace vpfs::selftest {
namespace {

// The unknown times: of a request, of a byte that is read, of a byte that is written.
using Times = std::array<double, 3>;

// A request's time divided by the measured one is the product of this with the unknown times.
Times parts_of(const CostPoint& point) {
  const double rate = point.requests_per_second;
  const double bytes = static_cast<double>(point.size.count) * rate;
  return {rate, point.reads ? bytes : 0, point.reads ? 0 : bytes};
}

// Least squares of the unknown times from `first` on; those before are 0.
std::optional<Times> solve(std::span<const CostPoint> points, std::size_t first) {
  std::array<std::array<double, 4>, 3> rows = {};
  for (const CostPoint& point : points) {
    const Times parts = parts_of(point);
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t j = 0; j < 3; ++j) rows[i][j] += parts[i] * parts[j];
      rows[i][3] += parts[i];
    }
  }
  for (std::size_t i = first; i < 3; ++i) {
    const double scale = rows[i][i];
    for (std::size_t below = i + 1; below < 3; ++below) {
      if (scale <= 0) return std::nullopt;
      const double factor = rows[below][i] / scale;
      // What is left after the subtraction of equal numbers is their rounding.
      const double before = rows[below][below];
      for (std::size_t j = i; j < 4; ++j) rows[below][j] -= factor * rows[i][j];
      if (rows[below][below] < before * 1e-9) rows[below][below] = 0;
    }
  }
  Times times = {};
  for (std::size_t i = 3; i-- > first;) {
    if (rows[i][i] <= 0) return std::nullopt;
    double rest = rows[i][3];
    for (std::size_t j = i + 1; j < 3; ++j) rest -= rows[i][j] * times[j];
    times[i] = rest / rows[i][i];
  }
  return times;
}

double worst_error(std::span<const CostPoint> points, const Times& times) {
  double worst = 0;
  for (const CostPoint& point : points) {
    const Times parts = parts_of(point);
    double sum = 0;
    for (std::size_t i = 0; i < 3; ++i) sum += parts[i] * times[i];
    worst = std::max(worst, std::abs(sum - 1));
  }
  return worst;
}

}  // namespace

std::optional<CostFit> fit_costs(std::span<const CostPoint> all) {
  std::vector<CostPoint> points;
  for (const CostPoint& each : all) {
    if (each.requests_per_second > 0 && each.size.count > 0) points.push_back(each);
  }
  std::optional<Times> times = solve(points, 0);
  if (times && (*times)[0] < 0) times = solve(points, 1);
  if (!times) return std::nullopt;
  const auto [request, read, write] = *times;
  if (read <= 0 || write <= 0) return std::nullopt;
  return CostFit{.per_request = request / read,
                 .write_factor = write / read,
                 .worst_error = worst_error(points, *times)};
}

}  // namespace vpfs::selftest
