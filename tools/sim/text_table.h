#pragma once

#include <string>
#include <vector>

namespace vpfs::sim_tool {

// Text in columns, with two spaces between them. Cells are made printable. A title that begins with
// ">" is of a column of numbers, which are aligned right.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> titles);
  // One cell for each column.
  void add(std::vector<std::string> cells);
  // The titles and the rows, each ended by a newline.
  [[nodiscard]] std::string text() const;

 private:
  std::vector<bool> is_number_;
  std::vector<std::vector<std::string>> rows_;  // the titles first
};

}  // namespace vpfs::sim_tool
