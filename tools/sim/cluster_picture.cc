// The part of the report on clusters that draws. All numbers are integers, so that every machine
// draws the same.
#include <algorithm>
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "base/wide.h"
#include "tools/sim/cluster_report.h"
#include "tools/sim/svg.h"

namespace vpfs::sim_tool {
namespace {

constexpr int kBarsWidth = 760;
constexpr int kBarsLeft = 150;
constexpr int kBarsTop = 34;
constexpr int kBottom = 40;
constexpr int kBarsPlotWidth = 570;
constexpr int kRow = 16;
constexpr std::size_t kMostRows = 100;
constexpr std::string_view kWaits = "#cccccc";

int rows_of(const FinishedCluster& run) {
  return static_cast<int>(std::min(run.result.applications.size(), kMostRows));
}

int height_of(const FinishedCluster& run) {
  return kBarsTop + kRow * rows_of(run) + kBottom;
}

// The position of a time, in pixels from the left of the plot.
int place_of(Duration time, Duration all) {
  if (all == Duration::zero()) return 0;
  return static_cast<int>(SignedWide{time.count()} * kBarsPlotWidth / all.count());
}

void draw_bar(int from, int to, int y, std::string_view colour, std::string& svg) {
  svg += fmt::format("<rect x='{}' y='{}' width='{}' height='{}' fill='{}'/>\n", kBarsLeft + from,
                     y, std::max(to - from, 1), kRow - 5, colour);
}

void draw(const FinishedCluster& run, int top, std::string& svg) {
  const sim::ClusterResult& result = run.result;
  Duration end = {};
  for (const auto& each : result.applications) end = std::max(end, each.ended - TimePoint());
  svg += fmt::format("<text x='{}' y='{}' font-weight='bold'>{}: {}</text>\n", kBarsLeft, top - 12,
                     escaped(run.name), escaped(run.scenario.network.description));
  for (int row = 0; row < rows_of(run); ++row) {
    const sim::ClusterApplicationResult& each = result.applications[static_cast<std::size_t>(row)];
    const int y = top + kRow * row;
    const auto place = [end](TimePoint time) { return place_of(time - TimePoint(), end); };
    svg += fmt::format("<text x='{}' y='{}' text-anchor='end'>{}</text>\n", kBarsLeft - 6, y + 10,
                       escaped(each.name));
    if (each.waiting() > Duration::zero()) {
      draw_bar(place(each.arrived), place(each.started), y, kWaits, svg);
    }
    draw_bar(place(each.started), place(each.ended), y, kColours.front(), svg);
  }
  const int base = top + kRow * rows_of(run);
  svg += fmt::format("<line x1='{}' y1='{}' x2='{}' y2='{}' stroke='#888'/>\n", kBarsLeft, base,
                     kBarsLeft + kBarsPlotWidth, base);
  svg += fmt::format("<text x='{}' y='{}'>0 s</text>\n", kBarsLeft, base + 16);
  svg += fmt::format("<text x='{}' y='{}' text-anchor='end'>{}.{:03} s</text>\n",
                     kBarsLeft + kBarsPlotWidth, base + 16, end / std::chrono::seconds(1),
                     end % std::chrono::seconds(1) / std::chrono::milliseconds(1));
}

}  // namespace

std::string to_svg(std::span<const FinishedCluster> runs) {
  std::string drawn;
  int height = 0;
  for (const FinishedCluster& run : runs) {
    draw(run, height + kBarsTop, drawn);
    height += height_of(run);
  }
  return svg_document(kBarsWidth, height, drawn);
}

}  // namespace vpfs::sim_tool
