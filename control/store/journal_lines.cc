#include "control/store/journal_lines.h"

#include <charconv>
#include <cstdint>
#include <optional>

#include <fmt/format.h>
#include <zlib.h>

#include "base/check.h"

namespace vpfs::control {
namespace {

constexpr std::size_t kChecksumDigits = 8;

std::uint32_t checksum_of(std::string_view record) {
  return static_cast<std::uint32_t>(
      ::crc32_z(0, reinterpret_cast<const Bytef*>(record.data()), record.size()));
}

// Nothing: the line is damaged.
std::optional<std::string_view> record_of(std::string_view line) {
  if (line.size() <= kChecksumDigits || line[kChecksumDigits] != ' ') return std::nullopt;
  std::uint32_t expected = 0;
  const char* const end = line.data() + kChecksumDigits;
  const auto [stop, error] = std::from_chars(line.data(), end, expected, 16);
  if (error != std::errc{} || stop != end) return std::nullopt;
  const std::string_view record = line.substr(kChecksumDigits + 1);
  if (checksum_of(record) != expected) return std::nullopt;
  return record;
}

}  // namespace

std::string journal_line(std::string_view record) {
  VPFS_ASSERT(record.find('\n') == std::string_view::npos);
  return fmt::format("{:08x} {}\n", checksum_of(record), record);
}

std::expected<JournalLines, DamagedLine> read_journal_lines(std::string_view bytes) {
  JournalLines journal;
  bool had_checksum = false;
  for (std::size_t number = 1; journal.sound_bytes < bytes.size(); ++number) {
    const std::string_view rest = bytes.substr(journal.sound_bytes);
    const std::size_t size = rest.find('\n');
    if (size == std::string_view::npos) break;
    const std::string_view line = rest.substr(0, size);
    std::optional<std::string_view> record;
    if (line.starts_with('{') && !had_checksum) {
      record = line;
    } else {
      record = record_of(line);
      had_checksum = true;
    }
    if (!record) {
      if (size + 1 == rest.size()) break;
      return std::unexpected(DamagedLine{
          .number = number, .problem = "the line is damaged: its checksum does not fit"});
    }
    journal.lines.push_back({.record = *record, .number = number});
    journal.sound_bytes += size + 1;
  }
  return journal;
}

}  // namespace vpfs::control
