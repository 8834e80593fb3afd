#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/vpfsctl/top/top_model.h"
#include "tools/vpfsctl/top/top_view.h"

namespace vpfs::ctl {

struct TopLines {
  std::vector<std::string> head;  // what is true of the proxies
  std::string titles;
  std::vector<std::string> rows;
};

// Largest first, names from A on.
void sort(std::vector<TopRow>& rows, const TopView& view);

// No line is wider than `width`; nothing: as wide as need be. Where there is too little room, the
// columns that matter least go.
[[nodiscard]] TopLines top_lines(const std::vector<TopProxy>& proxies, std::vector<TopRow> rows,
                                 const TopView& view, std::optional<std::size_t> width);

// What of these lines a screen shows.
struct TopPage {
  std::vector<std::string> lines;
  std::optional<std::size_t> titles;  // which line has them
};

// What the columns and keys mean, line by line.
[[nodiscard]] std::span<const std::string_view> top_help();

// At most `height` lines: what matters of the head, the titles, rows from view.first on, and the
// keys where there is room. Moves view.first back if it is behind the last row.
[[nodiscard]] TopPage top_page(const TopLines& lines, TopView& view, std::size_t width,
                               std::size_t height);

// All of it as text.
[[nodiscard]] std::string top_text(const TopModel& model, const TopView& view);

}  // namespace vpfs::ctl
