#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

// The bytes of a journal. Each record is one line, after the CRC-32 of its bytes in hexadecimal and
// a space:
//
//     1c291ca3 {"v":2,"n":17,...}
//
// Lines of the format before it had no checksum and began with a brace. They come before all
// others.
namespace vpfs::control {

// With the newline. REQUIRES: the record has no newline.
[[nodiscard]] std::string journal_line(std::string_view record);

struct JournalLines {
  struct Line {
    std::string_view record;
    std::size_t number;  // from 1
  };
  std::vector<Line> lines;
  std::size_t sound_bytes = 0;  // what follows is a line that was not written to its end
};

struct DamagedLine {
  std::size_t number;
  std::string problem;
};

// Refers to `bytes`. A last line that is not whole is left out: whoever wrote it was never told
// that it is there. Any other damaged line is an error.
[[nodiscard]] std::expected<JournalLines, DamagedLine> read_journal_lines(std::string_view bytes);

}  // namespace vpfs::control
