#include "fuse/mount_table.h"

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <iterator>

namespace vpfs::fuse {
namespace {

constexpr int kFieldOfDirectory = 4;  // counted from 0
constexpr std::string_view kEndOfOptions = " - ";

std::string_view field(std::string_view line, int number) {
  for (; number > 0 && !line.empty(); --number) {
    line.remove_prefix(std::min(line.find(' '), line.size() - 1) + 1);
  }
  return line.substr(0, line.find(' '));
}

// The table has blanks and backslashes as \040 and the like.
std::string unescaped(std::string_view text) {
  constexpr std::size_t kDigits = 3;
  const auto is_octal = [](char each) { return each >= '0' && each <= '7'; };
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view digits = text.substr(i + 1, kDigits);
    if (text[i] != '\\' || digits.size() < kDigits || !std::ranges::all_of(digits, is_octal)) {
      plain += text[i];
      continue;
    }
    plain += static_cast<char>((digits[0] - '0') * 64 + (digits[1] - '0') * 8 + digits[2] - '0');
    i += kDigits;
  }
  return plain;
}

}  // namespace

std::string type_mounted_at(std::string_view directory, std::string_view table) {
  std::string type;
  while (!table.empty()) {
    const std::string_view line = table.substr(0, table.find('\n'));
    table.remove_prefix(std::min(line.size() + 1, table.size()));
    const std::size_t end = line.find(kEndOfOptions);
    if (end == line.npos || unescaped(field(line, kFieldOfDirectory)) != directory) continue;
    type = field(line.substr(end + kEndOfOptions.size()), 0);
  }
  return type;
}

std::string type_mounted_at(std::string_view directory) {
  std::ifstream mounts("/proc/self/mountinfo");
  const std::string table((std::istreambuf_iterator<char>(mounts)), {});
  return type_mounted_at(directory, table);
}

}  // namespace vpfs::fuse
