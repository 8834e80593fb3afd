#include "control/store/record_file.h"

#include <algorithm>
#include <expected>
#include <optional>

#include <fmt/format.h>

#include "control/store/journal_lines.h"

namespace vpfs::control {
namespace {

// As for a Journal.
constexpr std::uint64_t kManyTimes = 4;
constexpr std::uint64_t kSmall = std::uint64_t{64} * 1024;
constexpr std::uint64_t kLarge = std::uint64_t{1} << 29;

std::unexpected<SiteStore::Failure> file_is(SiteStore::Why why, std::string text) {
  return std::unexpected(SiteStore::Failure{.why = why, .text = std::move(text)});
}

}  // namespace

RecordFile::Outcome<StateStore::Loaded> RecordFile::parse(const std::string& bytes,
                                                          const std::string& path) {
  constexpr const char* kAdvice =
      "Nothing was changed. Restore the file from a backup, or move all files of the directory "
      "away "
      "to start without live rules";
  const auto read = read_journal_lines(bytes);
  if (!read) {
    return file_is(SiteStore::Why::damaged, fmt::format("{}:{}: {}. {}", path, read.error().number,
                                                        read.error().problem, kAdvice));
  }
  if (read->lines.empty() && !bytes.empty()) {
    return file_is(SiteStore::Why::damaged, fmt::format("{}: has {} bytes, but no whole record. {}",
                                                        path, bytes.size(), kAdvice));
  }
  StateStore::Loaded loaded;
  loaded.records.reserve(read->lines.size());
  for (const JournalLines::Line& line : read->lines) {
    loaded.records.push_back(
        {.text = std::string(line.record), .place = fmt::format("{}:{}", path, line.number)});
  }
  if (read->sound_bytes < bytes.size()) {
    loaded.notes.push_back(fmt::format(
        "{}:{}: the last line, {} bytes, was not written to its end, so it does not count; the {} "
        "before it do",
        path, read->lines.size() + 1, bytes.size() - read->sound_bytes, read->lines.size()));
  }
  return loaded;
}

RecordFile::Outcome<void> RecordFile::put(const StateStore::Loaded& records) {
  std::string lines;
  std::uint64_t first = 0;
  for (const StateStore::Record& record : records.records) {
    lines += journal_line(record.text);
    if (first == 0) first = lines.size();
  }
  return put_lines(lines, first);
}

RecordFile::Outcome<void> RecordFile::put(std::string_view record) {
  const std::string line = journal_line(record);
  return put_lines(line, line.size());
}

RecordFile::Outcome<void> RecordFile::put_lines(const std::string& lines, std::uint64_t first) {
  const std::string draft = name_ + ".new";
  const auto written = files_.write(draft, O_CREAT | O_TRUNC, lines);
  if (!written) {
    files_.remove(draft);
    return std::unexpected(written.error());
  }
  VPFS_TRY(files_.rename(draft, name_));
  sound_size_ = lines.size();
  first_size_ = first;
  has_more_ = false;
  if (auto synced = files_.sync_directory(); !synced) {
    return file_is(SiteStore::Why::unreachable, std::move(synced.error().text));
  }
  return {};
}

RecordFile::Outcome<void> RecordFile::append(std::string_view record) {
  auto opened = files_.open(name_, O_WRONLY | O_APPEND);
  VPFS_TRY(opened);
  std::optional<SharedFiles::File>& file = *opened;
  if (!file) {
    return file_is(SiteStore::Why::refused,
                   fmt::format("{}: the file was moved or removed, so nothing can be added to it",
                               files_.path_of(name_)));
  }
  if (has_more_ && !file->cut(sound_size_)) {
    return files_.problem(name_, "cannot be cut to its whole lines");
  }
  has_more_ = false;
  const auto size = file->size();
  if (!size) return files_.problem(name_, "cannot be looked at");
  if (*size != sound_size_) {
    return file_is(SiteStore::Why::refused,
                   fmt::format("{}: has {} bytes and not {}: another program has changed it, so "
                               "nothing can be added to it",
                               files_.path_of(name_), *size, sound_size_));
  }
  if (sound_size_ == 0) return append_first(record);
  const std::string line = journal_line(record);
  if (!file->write(line) || !file->sync()) {
    auto failed = files_.problem(name_, "cannot be written");
    has_more_ = !file->cut(sound_size_);
    if (has_more_) failed.error().why = SiteStore::Why::unreachable;
    return failed;
  }
  sound_size_ += line.size();
  return {};
}

// By a rename, so that a file never has a part of a record and nothing else.
RecordFile::Outcome<void> RecordFile::append_first(std::string_view record) {
  auto written = put(record);
  if (written) return {};
  // It may be in place: the next append() takes it away first.
  sound_size_ = 0;
  first_size_ = 0;
  has_more_ = true;
  return written;
}

bool RecordFile::has_grown() const {
  return sound_size_ > std::min(kLarge, std::max(kSmall, kManyTimes * first_size_));
}

}  // namespace vpfs::control
