// The part of the report that draws.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "tools/sim/entitlements.h"
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
constexpr std::size_t kMostNames = 10;

double rate(const FinishedRun& run, Bytes moved, std::size_t interval) {
  return static_cast<double>(moved.count) / static_cast<double>(kMiB) /
         std::chrono::duration<double>(interval_length(run, interval)).count();
}

// Places are whole tenths: sums of products of doubles would be rounded once or twice, as the
// machine likes it.
std::string tenths(std::size_t place) {
  return fmt::format("{}.{}", place / 10, place % 10);
}

std::size_t across(std::size_t part, std::size_t parts) {
  return std::size_t{10} * kLeft + std::size_t{10} * kPlotWidth * part / parts;
}

std::size_t up(int top, double value, double most) {
  return static_cast<std::size_t>(10 * (top + kPlotHeight) -
                                  static_cast<int>(10 * kPlotHeight * (value / most)));
}

double most_of(const FinishedRun& run, const Entitlements& entitlements) {
  double most = 0.001;
  for (std::size_t a = 0; a < run.result.applications.size(); ++a) {
    const sim::ApplicationResult& each = run.result.applications[a];
    for (std::size_t i = 0; i < each.course.size(); ++i) {
      most = std::max(most, rate(run, each.course[i], i));
      most = std::max(most, rate(run, entitlements.in(a, i).value_or(Bytes{}), i));
    }
  }
  return most;
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

// When the coordinator is away, of the measured time.
void draw_absence(const FinishedRun& run, int top, std::string& svg) {
  if (!run.scenario.coordinator || !run.scenario.coordinator->away) return;
  const sim::Absence& away = *run.scenario.coordinator->away;
  const auto place = [&](Duration time) {
    const Duration measured =
        std::clamp(time - run.scenario.warm_up, Duration::zero(), run.scenario.duration);
    return across(static_cast<std::size_t>(measured.count() / 1000),
                  static_cast<std::size_t>(run.scenario.duration.count() / 1000));
  };
  const std::size_t from = place(away.from);
  const std::size_t until = place(away.until);
  if (from >= until) return;
  svg += fmt::format("<rect x='{}' y='{}' width='{}' height='{}' fill='#eee'/>\n", tenths(from),
                     top, tenths(until - from), kPlotHeight);
  svg += fmt::format("<text x='{}' y='{}' fill='#666'>coordinator away</text>\n", tenths(from + 40),
                     top + 12);
}

void draw_rates(const FinishedRun& run, const Entitlements& entitlements, std::size_t number,
                int top, double most, std::string& svg) {
  const sim::ApplicationResult& application = run.result.applications[number];
  const std::string_view colour = kColours[number % kColours.size()];
  const std::size_t count = application.course.size();
  std::string points;
  std::string entitled;
  for (std::size_t i = 0; i < count; ++i) {
    // At the middle of its interval.
    const double moved = rate(run, application.course[i], i);
    points +=
        fmt::format("{},{} ", tenths(across(2 * i + 1, 2 * count)), tenths(up(top, moved, most)));
    const std::optional<Bytes> promised = entitlements.in(number, i);
    if (!promised) continue;
    entitled +=
        fmt::format("M{},{}H{} ", tenths(across(i, count)),
                    tenths(up(top, rate(run, *promised, i), most)), tenths(across(i + 1, count)));
  }
  svg += fmt::format("<polyline points='{}' fill='none' stroke='{}' stroke-width='2'/>\n", points,
                     colour);
  if (entitled.empty()) return;
  svg += fmt::format(
      "<path d='{}' fill='none' stroke='{}' stroke-width='1.2' stroke-dasharray='5 3'/>\n",
      entitled, colour);
}

void draw(const FinishedRun& run, int top, std::string& svg) {
  const Entitlements entitlements(run);
  const double most = round_up(most_of(run, entitlements));
  draw_absence(run, top, svg);
  draw_axes(run, most, top, svg);
  const auto legend_at = [top](std::size_t line) { return top + 8 + static_cast<int>(line) * 17; };
  const std::size_t all = run.result.applications.size();
  for (std::size_t a = 0; a < all; ++a) {
    const sim::ApplicationResult& application = run.result.applications[a];
    draw_rates(run, entitlements, a, top, most, svg);
    if (a >= kMostNames) continue;
    const int y = legend_at(a);
    svg += fmt::format("<rect x='{}' y='{}' width='12' height='4' fill='{}'/>\n",
                       kLeft + kPlotWidth + 30, y, kColours[a % kColours.size()]);
    svg += fmt::format("<text x='{}' y='{}'>{}</text>\n", kLeft + kPlotWidth + 48, y + 6,
                       escaped(application.name));
  }
  const int y = legend_at(std::min<std::size_t>(all, kMostNames));
  svg +=
      fmt::format("<line x1='{}' y1='{}' x2='{}' y2='{}' stroke='#000' stroke-dasharray='5 3'/>\n",
                  kLeft + kPlotWidth + 28, y + 2, kLeft + kPlotWidth + 44, y + 2);
  svg += fmt::format("<text x='{}' y='{}'>entitled</text>\n", kLeft + kPlotWidth + 48, y + 6);
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
