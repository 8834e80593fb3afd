// The part of the report that draws.
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "tools/sim/report.h"
#include "tools/sim/svg.h"

namespace vpfs::sim_tool {
namespace {

constexpr int kWidth = 760;
constexpr int kHeight = 260;  // of one picture
constexpr int kLeft = 70;
constexpr int kTop = 34;
constexpr int kPlotWidth = 480;
constexpr int kPlotHeight = 180;
constexpr int kMostNames = 10;

double rate(const FinishedRun& run, const sim::ApplicationResult& application,
            std::size_t interval) {
  const Duration begin = run.scenario.interval * static_cast<std::int64_t>(interval);
  const Duration length = std::min(run.scenario.interval, run.scenario.duration - begin);
  return static_cast<double>(application.course[interval].count) / static_cast<double>(kMiB) /
         std::chrono::duration<double>(length).count();
}

// The least number 1, 2 or 5 times a power of ten that is not less.
double round_up(double value) {
  double scale = 1;
  while (scale * 10 < value) scale *= 10;
  while (scale > value && scale > 1e-6) scale /= 10;
  for (const double step : {1.0, 2.0, 5.0}) {
    if (scale * step >= value) return scale * step;
  }
  return scale * 10;
}

void draw_axes(const FinishedRun& run, double most, int top, std::string& svg) {
  constexpr int kSteps = 4;
  const double length = std::chrono::duration<double>(run.scenario.duration).count();
  svg += fmt::format("<text x='{}' y='{}' font-weight='bold'>{}: {}</text>\n", kLeft, top - 12,
                     escaped(run.name), escaped(run.policy));
  for (int i = 0; i <= kSteps; ++i) {
    const int y = top + kPlotHeight - kPlotHeight * i / kSteps;
    const int x = kLeft + kPlotWidth * i / kSteps;
    svg += fmt::format("<line x1='{}' y1='{}' x2='{}' y2='{}' stroke='#ddd'/>\n", kLeft, y,
                       kLeft + kPlotWidth, y);
    svg += fmt::format("<text x='{}' y='{}' text-anchor='end'>{:g}</text>\n", kLeft - 6, y + 4,
                       most * i / kSteps);
    svg += fmt::format("<text x='{}' y='{}' text-anchor='middle'>{:g}</text>\n", x,
                       top + kPlotHeight + 16, length * i / kSteps);
  }
  svg += fmt::format("<text x='{}' y='{}' text-anchor='middle'>s</text>\n", kLeft + kPlotWidth + 16,
                     top + kPlotHeight + 16);
  svg += fmt::format("<text x='{}' y='{}'>MiB/s</text>\n", 6, top + 4);
}

void draw(const FinishedRun& run, int top, std::string& svg) {
  double most = 0;
  for (const sim::ApplicationResult& each : run.result.applications) {
    for (std::size_t i = 0; i < each.course.size(); ++i) most = std::max(most, rate(run, each, i));
  }
  most = round_up(std::max(most, 0.001));
  draw_axes(run, most, top, svg);
  for (std::size_t a = 0; a < run.result.applications.size(); ++a) {
    const sim::ApplicationResult& application = run.result.applications[a];
    const std::string_view colour = kColours[a % kColours.size()];
    std::string points;
    const std::size_t count = application.course.size();
    for (std::size_t i = 0; i < count; ++i) {
      // At the middle of its interval. In whole tenths: sums of products of doubles would be
      // rounded once or twice, as the machine likes it.
      const std::size_t x = std::size_t{10 * kLeft} + 10 * kPlotWidth * (2 * i + 1) / (2 * count);
      const auto height = static_cast<int>(10 * kPlotHeight * (rate(run, application, i) / most));
      const int y = 10 * (top + kPlotHeight) - height;
      points += fmt::format("{}.{},{}.{} ", x / 10, x % 10, y / 10, y % 10);
    }
    svg += fmt::format("<polyline points='{}' fill='none' stroke='{}' stroke-width='2'/>\n", points,
                       colour);
    if (a >= kMostNames) continue;
    const int y = top + 8 + static_cast<int>(a) * 17;
    svg += fmt::format("<rect x='{}' y='{}' width='12' height='4' fill='{}'/>\n",
                       kLeft + kPlotWidth + 30, y, colour);
    svg += fmt::format("<text x='{}' y='{}'>{}</text>\n", kLeft + kPlotWidth + 48, y + 6,
                       escaped(application.name));
  }
}

}  // namespace

std::string to_svg(std::span<const FinishedRun> runs) {
  const int height = kHeight * static_cast<int>(runs.size());
  std::string svg;
  int top = kTop;
  for (const FinishedRun& run : runs) {
    draw(run, top, svg);
    top += kHeight;
  }
  return svg_document(kWidth, height, svg);
}

}  // namespace vpfs::sim_tool
