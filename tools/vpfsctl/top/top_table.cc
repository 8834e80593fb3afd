#include "tools/vpfsctl/top/top_table.h"

#include <algorithm>
#include <array>
#include <functional>
#include <ranges>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/joined.h"
#include "base/units.h"
#include "control/words/printable.h"

namespace vpfs::ctl {
namespace {

using words::columns_of;
using words::padded;
using words::printable;
using words::shortened;

constexpr std::size_t kGap = 1;
constexpr std::size_t kShortName = 8;
constexpr std::size_t kHeightWithKeys = 10;
constexpr std::string_view kKeys =
    "by m MiB/s, i IOPS, q queue, w wait, s share, n name; r reverse, ? help, x exit";

constexpr std::array<std::string_view, 23> kHelp = {
    "ENTITLED   MiB/s that a virtual PFS was entitled to in the last second, after",
    "           weights, limits, minimums and service at servers that a coordinator",
    "           counts. What one does not want is for the others.",
    "           not busy: nothing waited for another, so weights did nothing.",
    "           -: it did nothing, or weights do not divide the server: another",
    "           policy than sfq, traffic classes, or bypass.",
    "GOT MiB/s  what it read and wrote in the last second; 10s: over the last ten",
    "ops/s      operations that ended, metadata too; 10s: over the last ten",
    "QUEUE      its requests that wait in the proxy",
    "WAIT ms    for how long the oldest of them has waited",
    "HELD BY    what that one waits for; otherwise what has held most: limit,",
    "           share (another one's turn), kept (a slot is kept for another),",
    "           depth (the server has enough), class, client (a slow one)",
    "LIMIT      its own or a coordinator's, whichever is lower",
    "?name      no proxy that it was seen at answers",
    "Less than ENTITLED: HELD BY says why. Numbers jump a little.",
    "",
    "m i q w s n  order: GOT, operations, QUEUE, WAIT, missing of ENTITLED, name",
    "r            the other way round",
    "p            a row for each proxy",
    "j k          move",
    "x            exit",
    "Any key goes back to the table."};

struct TopColumn {
  std::string_view title;
  bool is_number;
  int worth;  // the least goes first
  std::function<std::string(const TopRow&)> text;
};

std::string mebibytes(const std::optional<double>& bytes) {
  return bytes ? fmt::format("{:.1f}", *bytes / static_cast<double>(kMiB)) : "-";
}
std::string whole(const std::optional<double>& number) {
  return number ? fmt::format("{:.0f}", *number) : "-";
}
std::string entitled_text(const TopRow& row) {
  return row.not_busy ? std::string("not busy") : mebibytes(row.entitled);
}

std::string limit_text(const TopRow& row) {
  std::vector<std::string> parts;
  if (row.limit_bytes > 0) parts.push_back(to_string(BytesPerSecond{row.limit_bytes}));
  if (row.limit_operations > 0) parts.push_back(fmt::format("{} op/s", row.limit_operations));
  if (row.limit_metadata > 0) parts.push_back(fmt::format("{} metadata op/s", row.limit_metadata));
  return parts.empty() ? "-" : joined(parts);
}

std::string wait_text(const TopRow& row) {
  return row.wait_us > 0 ? fmt::format("{:.1f}", static_cast<double>(row.wait_us) / 1000) : "-";
}

std::string row_name(const TopRow& row) {
  // The mark is before the name, so it is never cut off for lack of room.
  return (row.is_silent ? "?" : "") + printable(row.name);
}

const std::string& or_dash(const std::string& text) {
  static const std::string kDash = "-";
  return text.empty() ? kDash : text;
}

std::vector<TopColumn> columns_for(const TopView& view) {
  std::vector<TopColumn> columns = {
      {"NAME", false, 100, row_name},
      {"RULE", false, 20, [](const TopRow& row) { return printable(or_dash(row.rule)); }},
      {"CLASS", false, 10, [](const TopRow& row) { return printable(or_dash(row.class_name)); }},
      {"ENTITLED", true, 50, entitled_text},
      {"GOT MiB/s", true, 90, [](const TopRow& row) { return mebibytes(row.now.bytes); }},
      {"10s", true, 35, [](const TopRow& row) { return mebibytes(row.ten.bytes); }},
      {"ops/s", true, 80, [](const TopRow& row) { return whole(row.now.operations); }},
      {"10s", true, 30, [](const TopRow& row) { return whole(row.ten.operations); }},
      {"QUEUE", true, 70, [](const TopRow& row) { return std::to_string(row.queued); }},
      {"WAIT ms", true, 65, wait_text},
      {"HELD BY", false, 40, [](const TopRow& row) { return printable(or_dash(row.held_by)); }},
      {"LIMIT", false, 25, limit_text}};
  if (view.each_proxy) {
    const TopColumn proxy = {"PROXY", false, 95,
                             [](const TopRow& row) { return printable(row.proxy); }};
    columns.insert(columns.begin() + 1, proxy);
  }
  return columns;
}

std::size_t width_of(const TopColumn& column, const std::vector<TopRow>& rows) {
  std::size_t width = columns_of(column.title);
  for (const TopRow& row : rows) width = std::max(width, columns_of(column.text(row)));
  return width;
}

// Columns and their widths, together no wider than `width` if that can be.
class Layout {
 public:
  Layout(std::vector<TopColumn> columns, const std::vector<TopRow>& rows,
         std::optional<std::size_t> width)
      : columns_(std::move(columns)) {
    for (const TopColumn& column : columns_) widths_.push_back(width_of(column, rows));
    if (!width) return;
    // First long names give way, then whole columns, then the names once more.
    shorten(0, std::max(kShortName * 3, *width / 4));
    shorten_texts();
    while (total() > *width && columns_.size() > 1) {
      if (total() - widths_[0] + kShortName <= *width) break;
      drop_least();
    }
    if (total() > *width) {
      const std::size_t others = total() - widths_[0];
      shorten(0, *width > others ? *width - others : 0);
    }
  }

  [[nodiscard]] std::string titles() const {
    return line([](const TopColumn& column) { return std::string(column.title); });
  }
  [[nodiscard]] std::string row(const TopRow& row) const {
    return line([&row](const TopColumn& column) { return column.text(row); });
  }

 private:
  [[nodiscard]] std::size_t total() const {
    std::size_t sum = kGap * (widths_.size() - 1);
    for (const std::size_t width : widths_) sum += width;
    return sum;
  }
  void shorten(std::size_t column, std::size_t most) {
    widths_[column] = std::min(widths_[column], most);
  }
  void shorten_texts() {
    for (std::size_t i = 1; i < columns_.size(); ++i) {
      if (!columns_[i].is_number) shorten(i, columns_[i].title == "HELD BY" ? 32 : 16);
    }
  }
  void drop_least() {
    const auto least = std::ranges::min_element(columns_, {}, &TopColumn::worth);
    widths_.erase(widths_.begin() + (least - columns_.begin()));
    columns_.erase(least);
  }
  template <typename Text>
  [[nodiscard]] std::string line(Text text) const {
    std::string line;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (i > 0) line += std::string(kGap, ' ');
      line += padded(shortened(text(columns_[i]), widths_[i]), widths_[i], columns_[i].is_number);
    }
    line.resize(line.find_last_not_of(' ') + 1);
    return line;
  }

  std::vector<TopColumn> columns_;
  std::vector<std::size_t> widths_;
};

std::string total_line(const std::vector<TopProxy>& proxies) {
  double bytes = 0;
  double operations = 0;
  std::uint64_t outstanding = 0;
  std::uint64_t queued = 0;
  for (const TopProxy& proxy : proxies) {
    bytes += proxy.bytes;
    operations += proxy.operations;
    outstanding += proxy.outstanding;
    queued += proxy.queued;
  }
  return fmt::format("{} {}: {:.1f} MiB/s, {:.0f} ops/s, {} outstanding, {} queued", proxies.size(),
                     proxies.size() == 1 ? "proxy" : "proxies", bytes / static_cast<double>(kMiB),
                     operations, outstanding, queued);
}

std::vector<std::string> head_lines(const std::vector<TopProxy>& proxies) {
  std::vector<std::string> lines = {total_line(proxies)};
  for (const TopProxy& proxy : proxies) {
    const std::string name = printable(proxy.name);
    if (!proxy.answers && !proxy.problem.empty()) {
      lines.push_back(fmt::format("? {}: {}", name, printable(proxy.problem)));
    }
    if (proxy.bypass) lines.push_back(fmt::format("! {}: BYPASS IS ON, nothing is held", name));
    if (proxy.draining) lines.push_back(fmt::format("! {}: is draining", name));
  }
  return lines;
}

// The part of what it is entitled to that it did not get.
double missing(const TopRow& row) {
  if (!row.entitled || *row.entitled <= 0) return -1;
  return std::max(0.0, 1 - row.now.bytes.value_or(0) / *row.entitled);
}

// More than zero if a comes before b.
double lead(const TopRow& a, const TopRow& b, TopOrder order) {
  const auto difference = [](std::uint64_t x, std::uint64_t y) {
    return static_cast<double>(x) - static_cast<double>(y);
  };
  switch (order) {
    case TopOrder::bytes:
      return a.now.bytes.value_or(-1) - b.now.bytes.value_or(-1);
    case TopOrder::operations:
      return a.now.operations.value_or(-1) - b.now.operations.value_or(-1);
    case TopOrder::queue:
      return difference(a.queued, b.queued);
    case TopOrder::wait:
      return difference(a.wait_us, b.wait_us);
    case TopOrder::share:
      return missing(a) - missing(b);
    case TopOrder::name:
      return b.name.compare(a.name);
  }
  return 0;
}

}  // namespace

std::span<const std::string_view> top_help() {
  return kHelp;
}

bool TopView::press(int key) {
  if (std::exchange(shows_help, false)) return true;
  const auto order_by = [this](TopOrder wanted) {
    order = wanted;
    first = 0;
    return true;
  };
  switch (key) {
    case 'm':
      return order_by(TopOrder::bytes);
    case 'i':
      return order_by(TopOrder::operations);
    case 'q':
      return order_by(TopOrder::queue);
    case 'w':
      return order_by(TopOrder::wait);
    case 's':
      return order_by(TopOrder::share);
    case 'n':
      return order_by(TopOrder::name);
    case 'r':
      is_reversed = !is_reversed;
      return true;
    case '?':
      shows_help = true;
      return true;
    case 'p':
      each_proxy = !each_proxy;
      return true;
    case 'j':
      ++first;
      return true;
    case 'k':
      first -= first > 0 ? 1 : 0;
      return true;
    default:
      return false;
  }
}

void sort(std::vector<TopRow>& rows, const TopView& view) {
  std::ranges::sort(rows, [&view](const TopRow& a, const TopRow& b) {
    const double first = lead(a, b, view.order);
    if (first != 0) return view.is_reversed ? first < 0 : first > 0;
    return std::tie(a.name, a.proxy) < std::tie(b.name, b.proxy);
  });
}

TopLines top_lines(const std::vector<TopProxy>& proxies, std::vector<TopRow> rows,
                   const TopView& view, std::optional<std::size_t> width) {
  sort(rows, view);
  const Layout layout(columns_for(view), rows, width);
  TopLines lines{.head = head_lines(proxies), .titles = layout.titles(), .rows = {}};
  for (const TopRow& row : rows) lines.rows.push_back(layout.row(row));
  if (width) {
    for (std::string& line : lines.head) line = shortened(line, *width);
  }
  return lines;
}

TopPage top_page(const TopLines& lines, TopView& view, std::size_t width, std::size_t height) {
  TopPage page;
  if (view.shows_help) {
    for (const std::string_view line : kHelp | std::views::take(height)) {
      page.lines.push_back(shortened(line, width));
    }
    return page;
  }
  const bool has_keys = height >= kHeightWithKeys;
  // Two thirds of the screen are for rows.
  const std::size_t most_of_head = std::max<std::size_t>(1, height / 3);
  for (std::size_t i = 0; i < std::min(lines.head.size(), most_of_head); ++i) {
    if (height >= 3) page.lines.push_back(lines.head[i]);
  }
  if (height >= 2) {
    page.titles = page.lines.size();
    page.lines.push_back(lines.titles);
  }
  const std::size_t room = height - page.lines.size() - (has_keys ? 1 : 0);
  view.first = std::min(view.first, lines.rows.size() - std::min(lines.rows.size(), room));
  for (std::size_t i = view.first; i < std::min(lines.rows.size(), view.first + room); ++i) {
    page.lines.push_back(lines.rows[i]);
  }
  if (has_keys) {
    page.lines.resize(height - 1);
    page.lines.push_back(shortened(kKeys, width));
  }
  return page;
}

std::string top_text(const TopModel& model, const TopView& view) {
  const TopLines lines =
      top_lines(model.proxies(), model.rows(view.each_proxy), view, std::nullopt);
  std::string text;
  for (const std::string& line : lines.head) text += line + "\n";
  text += lines.titles + "\n";
  for (const std::string& line : lines.rows) text += line + "\n";
  return text;
}

}  // namespace vpfs::ctl
