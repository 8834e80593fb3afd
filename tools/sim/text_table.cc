#include "tools/sim/text_table.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "control/words/printable.h"

namespace vpfs::sim_tool {

TextTable::TextTable(std::vector<std::string> titles) {
  for (std::string& title : titles) {
    is_number_.push_back(title.starts_with('>'));
    if (is_number_.back()) title.erase(0, 1);
  }
  rows_.push_back(std::move(titles));
}

void TextTable::add(std::vector<std::string> cells) {
  VPFS_ASSERT(cells.size() == is_number_.size());
  for (std::string& cell : cells) cell = words::printable(cell);
  rows_.push_back(std::move(cells));
}

std::string TextTable::text() const {
  std::vector<std::size_t> widths(is_number_.size());
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], words::columns_of(row[i]));
    }
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += words::padded(row[i], widths[i], is_number_[i]) + "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace vpfs::sim_tool
