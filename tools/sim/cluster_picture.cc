// The part of the report on clusters that draws. All numbers are integers, so that every machine
// draws the same.
#include <algorithm>
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "tools/sim/cluster_report.h"
#include "tools/sim/svg.h"

namespace vpfs::sim_tool {
namespace {

constexpr int kWidth = 760;
constexpr int kLeft = 150;
constexpr int kTop = 34;
constexpr int kBottom = 40;
constexpr int kPlotWidth = 570;
constexpr int kRow = 16;
constexpr std::size_t kMostRows = 100;
constexpr std::string_view kWaits = "#cccccc";

int rows_of(const FinishedCluster& run) {
  return static_cast<int>(std::min(run.result.applications.size(), kMostRows));
}

int height_of(const FinishedCluster& run) {
  return kTop + kRow * rows_of(run) + kBottom;
}

// Where a time stands, in pixels from the left of the plot.
int place_of(Duration time, Duration all) {
  __extension__ using Wide = __int128;
  if (all == Duration::zero()) return 0;
  return static_cast<int>(Wide{time.count()} * kPlotWidth / all.count());
}

void draw_bar(int from, int to, int y, std::string_view colour, std::string& svg) {
  svg += fmt::format("<rect x='{}' y='{}' width='{}' height='{}' fill='{}'/>\n", kLeft + from, y,
                     std::max(to - from, 1), kRow - 5, colour);
}

void draw(const FinishedCluster& run, int top, std::string& svg) {
  const sim::ClusterResult& result = run.result;
  Duration end = {};
  for (const auto& each : result.applications) end = std::max(end, each.ended - TimePoint());
  svg += fmt::format("<text x='{}' y='{}' font-weight='bold'>{}: {}</text>\n", kLeft, top - 12,
                     escaped(run.name), escaped(run.scenario.network.description));
  for (int row = 0; row < rows_of(run); ++row) {
    const sim::ClusterApplicationResult& each = result.applications[static_cast<std::size_t>(row)];
    const int y = top + kRow * row;
    const auto place = [end](TimePoint time) { return place_of(time - TimePoint(), end); };
    svg += fmt::format("<text x='{}' y='{}' text-anchor='end'>{}</text>\n", kLeft - 6, y + 10,
                       escaped(each.name));
    if (each.waiting() > Duration::zero()) {
      draw_bar(place(each.arrived), place(each.started), y, kWaits, svg);
    }
    draw_bar(place(each.started), place(each.ended), y, kColours.front(), svg);
  }
  const int base = top + kRow * rows_of(run);
  svg += fmt::format("<line x1='{}' y1='{}' x2='{}' y2='{}' stroke='#888'/>\n", kLeft, base,
                     kLeft + kPlotWidth, base);
  svg += fmt::format("<text x='{}' y='{}'>0 s</text>\n", kLeft, base + 16);
  svg += fmt::format("<text x='{}' y='{}' text-anchor='end'>{}.{:03} s</text>\n",
                     kLeft + kPlotWidth, base + 16, end / std::chrono::seconds(1),
                     end % std::chrono::seconds(1) / std::chrono::milliseconds(1));
}

}  // namespace

std::string to_svg(std::span<const FinishedCluster> runs) {
  std::string drawn;
  int height = 0;
  for (const FinishedCluster& run : runs) {
    draw(run, height + kTop, drawn);
    height += height_of(run);
  }
  return svg_document(kWidth, height, drawn);
}

}  // namespace vpfs::sim_tool
