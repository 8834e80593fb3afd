#include "control/words/table.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "control/words/printable.h"

namespace vpfs::words {

void Table::add(std::vector<std::string> cells) {
  VPFS_ASSERT(cells.size() == columns_.size());
  for (std::string& cell : cells) cell = cell.empty() ? "-" : printable(cell);
  rows_.push_back(std::move(cells));
}

std::size_t Table::width(std::size_t column) const {
  std::size_t width = columns_of(columns_[column].title);
  for (const auto& row : rows_) width = std::max(width, columns_of(row[column]));
  return width;
}

std::string Table::text() const {
  std::vector<std::string> lines(rows_.size() + 1);
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const std::size_t columns = width(i);
    const auto add_cell = [&, i, columns](std::string& line, const std::string& cell) {
      line += (i == 0 ? "" : "  ") + padded(cell, columns, columns_[i].is_number);
    };
    add_cell(lines[0], columns_[i].title);
    for (std::size_t row = 0; row < rows_.size(); ++row) add_cell(lines[row + 1], rows_[row][i]);
  }
  std::string text;
  for (std::string& line : lines) {
    line.resize(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace vpfs::words
