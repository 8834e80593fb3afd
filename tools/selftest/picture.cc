// The part of the report that draws.
#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "tools/selftest/report.h"
#include "tools/sim/svg.h"

namespace vpfs::selftest {
namespace {

constexpr int kWidth = 760;
constexpr int kHeight = 260;  // of one picture
constexpr int kLeft = 70;
constexpr int kTop = 34;
constexpr int kPlotWidth = 480;
constexpr int kPlotHeight = 180;

struct Bar {
  std::string name;
  double got = 0;     // MiB/s
  double wanted = 0;  // 0: nothing was
};

class Picture {
 public:
  Picture(std::string_view title, int top, double most) : top_(top), most_(std::max(most, 1e-3)) {
    constexpr int kSteps = 4;
    svg_ += fmt::format("<text x='{}' y='{}' font-weight='bold'>{}</text>\n", kLeft, top - 12,
                        sim_tool::escaped(title));
    for (int i = 0; i <= kSteps; ++i) {
      const int y = top + kPlotHeight - kPlotHeight * i / kSteps;
      svg_ += fmt::format("<line x1='{}' y1='{}' x2='{}' y2='{}' stroke='#ddd'/>\n", kLeft, y,
                          kLeft + kPlotWidth, y);
      svg_ += fmt::format("<text x='{}' y='{}' text-anchor='end'>{:.4g}</text>\n", kLeft - 6, y + 4,
                          most_ * i / kSteps);
    }
    svg_ += fmt::format("<text x='6' y='{}'>MiB/s</text>\n", top + 4);
  }

  [[nodiscard]] int y(double value) const {
    return top_ + kPlotHeight - static_cast<int>(kPlotHeight * value / most_);
  }
  void label(int x, std::string_view text) {
    svg_ += fmt::format("<text x='{}' y='{}' text-anchor='middle'>{}</text>\n", x,
                        top_ + kPlotHeight + 16, sim_tool::escaped(text));
  }
  void legend(int row, std::string_view colour, std::string_view text) {
    const int at = top_ + 8 + row * 17;
    svg_ += fmt::format("<rect x='{}' y='{}' width='12' height='4' fill='{}'/>\n",
                        kLeft + kPlotWidth + 30, at, colour);
    svg_ += fmt::format("<text x='{}' y='{}'>{}</text>\n", kLeft + kPlotWidth + 48, at + 6, text);
  }
  void add(std::string_view drawn) { svg_ += drawn; }
  [[nodiscard]] const std::string& svg() const { return svg_; }

 private:
  int top_;
  double most_;
  std::string svg_;
};

std::string draw_depths(const Findings& findings, int top) {
  double most = 0;
  for (const DepthRow& each : findings.depths) most = std::max({most, each.read, each.write});
  Picture picture("MiB/s by requests in flight", top, most);
  const auto count = static_cast<int>(findings.depths.size());
  const auto x = [count](int i) { return kLeft + kPlotWidth * (2 * i + 1) / (2 * count); };
  for (int i = 0; i < count; ++i) {
    picture.label(x(i), std::to_string(findings.depths[static_cast<std::size_t>(i)].in_flight));
  }
  const auto line = [&](double DepthRow::*rate, std::size_t colour, std::string_view name) {
    std::string points;
    for (int i = 0; i < count; ++i) {
      const double value = findings.depths[static_cast<std::size_t>(i)].*rate;
      points += fmt::format("{},{} ", x(i), picture.y(value));
    }
    picture.add(fmt::format("<polyline points='{}' fill='none' stroke='{}' stroke-width='2'/>\n",
                            points, sim_tool::kColours[colour]));
    picture.legend(static_cast<int>(colour), sim_tool::kColours[colour], name);
  };
  line(&DepthRow::read, 0, "read");
  line(&DepthRow::write, 1, "write");
  return picture.svg();
}

std::vector<Bar> bars_of(const Record& record) {
  std::vector<Bar> bars;
  for (const Measurement& each : record.measurements) {
    const std::vector<unsigned>& weights = each.phase.weights;
    if (each.phase.purpose == Purpose::limit) {
      bars.push_back({.name = "limit",
                      .got = each.mib_per_second(),
                      .wanted = static_cast<double>(each.limit.count) / static_cast<double>(kMiB)});
    } else if (each.phase.purpose == Purpose::weights) {
      for (std::size_t i = 0; i < weights.size(); ++i) {
        const double part = static_cast<double>(weights[i]) / (weights[0] + weights[1]);
        bars.push_back({.name = fmt::format("{} of {}:{}", weights[i], weights[0], weights[1]),
                        .got = each.mib_per_second(i),
                        .wanted = each.mib_per_second() * part});
      }
    }
  }
  return bars;
}

std::string draw_bars(const std::vector<Bar>& bars, int top) {
  double most = 0;
  for (const Bar& each : bars) most = std::max({most, each.got, each.wanted});
  Picture picture("shares and a limit", top, most);
  const auto count = static_cast<int>(bars.size());
  const int width = kPlotWidth / (2 * count);
  for (int i = 0; i < count; ++i) {
    const Bar& bar = bars[static_cast<std::size_t>(i)];
    const int x = kLeft + kPlotWidth * i / count + width / 2;
    const int y = picture.y(bar.got);
    picture.add(fmt::format("<rect x='{}' y='{}' width='{}' height='{}' fill='{}'/>\n", x, y, width,
                            top + kPlotHeight - y, sim_tool::kColours[0]));
    const int wanted = picture.y(bar.wanted);
    picture.add(
        fmt::format("<line x1='{}' y1='{}' x2='{}' y2='{}' stroke='{}' stroke-width='3'/>\n", x - 6,
                    wanted, x + width + 6, wanted, sim_tool::kColours[1]));
    picture.label(x + width / 2, bar.name);
  }
  picture.legend(0, sim_tool::kColours[0], "got");
  picture.legend(1, sim_tool::kColours[1], "to be got");
  return picture.svg();
}

}  // namespace

std::string to_svg(const Record& record, const Findings& findings) {
  std::string svg;
  int top = kTop;
  if (!findings.depths.empty()) {
    svg += draw_depths(findings, top);
    top += kHeight;
  }
  const std::vector<Bar> bars = bars_of(record);
  if (!bars.empty()) {
    svg += draw_bars(bars, top);
    top += kHeight;
  }
  return sim_tool::svg_document(kWidth, std::max(top - kTop, kHeight), svg);
}

}  // namespace vpfs::selftest
