#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace vpfs::words {

// Text in columns. Cells are made printable; an empty one is "-".
class Table {
 public:
  struct Column {
    std::string title;
    bool is_number = false;  // is aligned right
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  // One cell for each column.
  void add(std::vector<std::string> cells);
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  // The titles and the rows, each ended by a newline. Columns have two spaces between them.
  [[nodiscard]] std::string text() const;

 private:
  [[nodiscard]] std::size_t width(std::size_t column) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace vpfs::words
