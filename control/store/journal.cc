#include "control/store/journal.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <expected>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/named_file.h"
#include "base/result.h"
#include "control/store/journal_lines.h"

namespace vpfs::control {
namespace {

constexpr mode_t kMode = 0640;
// A journal is replaced when it has grown to this many times what it began with.
constexpr std::uint64_t kGrowth = 4;
constexpr std::uint64_t kLeastSize = 64 * 1024;  // smaller ones are left alone
constexpr std::uint64_t kMostSize = std::uint64_t{1} << 30;

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

Result<std::unique_ptr<Journal>> Journal::open(const std::string& path, FileCalls& calls) {
  std::unique_ptr<Journal> journal(new Journal(path, calls));
  VPFS_TRY(journal->lock());
  VPFS_TRY(journal->open_file());
  return journal;
}

Journal::~Journal() {
  if (file_ >= 0) calls_.close(file_);
  if (lock_ >= 0) calls_.close(lock_);
}

std::unexpected<Error> Journal::problem(std::string_view what) const {
  const std::error_code error(errno, std::system_category());
  return fail(fmt::format("{}: {}: {}", path_, what, error.message()), error);
}

Result<void> Journal::lock() {
  const std::string path = path_ + ".lock";
  const Result<int> opened = open_regular(path, O_RDWR | O_CREAT, "its lock ");
  VPFS_TRY(opened);
  lock_ = *opened;
  if (calls_.flock(lock_, LOCK_EX | LOCK_NB) == 0) return {};
  if (errno != EWOULDBLOCK) return problem(fmt::format("its lock {} cannot be taken", path));
  return fail(fmt::format("{} belongs to another process: each needs its own", path_),
              std::make_error_code(std::errc::device_or_resource_busy));
}

Result<void> Journal::open_file() {
  Result<int> opened = open_regular(path_, O_RDWR | O_APPEND, "");
  if (!opened && opened.error().code == std::errc::no_such_file_or_directory) {
    opened = open_regular(path_, O_RDWR | O_APPEND | O_CREAT, "");
  }
  VPFS_TRY(opened);
  file_ = *opened;
  if (!sync_directory()) return problem("its directory cannot be synced");
  return {};
}

Result<int> Journal::open_regular(const std::string& path, int flags, std::string_view what) {
  const std::string whose = what.empty() ? path_ : fmt::format("{}: {}{}", path_, what, path);
  const int file = calls_.open(path.c_str(), flags | kNoWaiting, kMode);
  if (file < 0) {
    const std::error_code error(errno, std::system_category());
    return fail(fmt::format("{}: cannot be opened for writing: {}", whose,
                            why_not_opened(path, error.value())),
                error);
  }
  const mode_t mode = calls_.mode_of(file);
  if (S_ISREG(mode)) return file;
  calls_.close(file);
  return fail(
      fmt::format("{}: is {}, but a journal is kept in regular files", whose, kind_of_file(mode)));
}

bool Journal::sync_directory() {
  const int directory =
      calls_.open(directory_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  if (directory < 0) return false;
  const bool synced = calls_.fsync(directory) == 0;
  const int error = errno;
  calls_.close(directory);
  errno = error;
  return synced;
}

Result<std::string> Journal::read_all() {
  std::string bytes;
  std::array<char, 64 * 1024> buffer;
  for (;;) {
    const ssize_t size = calls_.read(file_, buffer.data(), buffer.size());
    if (size == 0) return bytes;
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return problem("cannot be read");
    bytes.append(buffer.data(), static_cast<std::size_t>(size));
    if (bytes.size() > kMostSize) {
      return fail(fmt::format("{}: larger than 1 GiB, so it is not a journal of vpfs", path_));
    }
  }
}

Result<StateStore::Loaded> Journal::load() {
  const Result<std::string> bytes = read_all();
  VPFS_TRY(bytes);
  const auto read = read_journal_lines(*bytes);
  if (!read) {
    return fail(
        fmt::format("{}:{}: {}. Nothing was changed. Restore the file from a backup, or "
                    "move it away to start without what it keeps",
                    path_, read.error().number, read.error().problem));
  }
  if (read->lines.empty() && !bytes->empty()) {
    return fail(
        fmt::format("{}: has {} bytes, but no line of a journal, so it is damaged or "
                    "another file. Nothing was changed. Restore the file from a backup, "
                    "or move it away to start with an empty journal",
                    path_, bytes->size()));
  }
  Loaded loaded;
  loaded.records.reserve(read->lines.size());
  for (const JournalLines::Line& line : read->lines) {
    loaded.records.push_back(
        {.text = std::string(line.record), .place = fmt::format("{}:{}", path_, line.number)});
  }
  sound_size_ = read->sound_bytes;
  first_record_size_ = read->lines.empty() ? 0 : read->lines.front().record.size();
  has_more_ = sound_size_ < bytes->size();
  if (has_more_) {
    loaded.notes.push_back(fmt::format(
        "{}:{}: the last line, {} bytes, was not written to its end, so it does not count; the "
        "{} before it do",
        path_, read->lines.size() + 1, bytes->size() - sound_size_, read->lines.size()));
  }
  return loaded;
}

bool Journal::write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t size = calls_.write(file, bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR) continue;
    if (size == 0) errno = EIO;
    if (size <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(size));
  }
  return true;
}

bool Journal::cut_to_sound_size() {
  has_more_ =
      calls_.ftruncate(file_, static_cast<off_t>(sound_size_)) != 0 || calls_.fdatasync(file_) != 0;
  return !has_more_;
}

Result<void> Journal::append(std::string_view record) {
  if (has_more_ && !cut_to_sound_size()) return problem("cannot be cut to its whole lines");
  if (renamed_ && !sync_directory()) return problem("its directory cannot be synced");
  renamed_ = false;
  if (sound_size_ == 0) return append_first(record);
  return append_line(journal_line(record));
}

// Where the directory has no place for a second file, the line is written into the empty one.
Result<void> Journal::append_first(std::string_view record) {
  const Result<void> placed = replace(record);
  if (placed) return {};
  if (!renamed_) return append_line(journal_line(record));
  // It is in place, but perhaps not for good: the record is taken out again.
  sound_size_ = 0;
  first_record_size_ = 0;
  (void)cut_to_sound_size();
  return placed;
}

Result<void> Journal::append_line(const std::string& line) {
  has_more_ = true;
  if (!write_all(file_, line) || calls_.fdatasync(file_) != 0) {
    const auto refused = problem("cannot be written");
    (void)cut_to_sound_size();
    return refused;
  }
  has_more_ = false;
  if (sound_size_ == 0) first_record_size_ = line.size();
  sound_size_ += line.size();
  return {};
}

Result<void> Journal::replace(std::string_view record) {
  const std::string draft = path_ + ".new";
  const std::string line = journal_line(record);
  const Result<int> opened =
      open_regular(draft, O_RDWR | O_APPEND | O_CREAT | O_TRUNC, "its successor ");
  VPFS_TRY(opened);
  const int file = *opened;
  if (!write_all(file, line) || calls_.fsync(file) != 0 ||
      calls_.rename(draft.c_str(), path_.c_str()) != 0) {
    const auto refused = problem(fmt::format("its successor {} cannot be written", draft));
    calls_.close(file);
    (void)calls_.unlink(draft.c_str());
    return refused;
  }
  calls_.close(std::exchange(file_, file));
  sound_size_ = line.size();
  first_record_size_ = line.size();
  has_more_ = false;
  renamed_ = true;
  if (!sync_directory()) return problem("its directory cannot be synced");
  renamed_ = false;
  return {};
}

bool Journal::is_in_place() const {
  return calls_.has_name(file_, path_.c_str());
}

bool Journal::wants_replacing() const {
  return sound_size_ > std::min(kMostSize / 2, std::max(kLeastSize, kGrowth * first_record_size_));
}

}  // namespace vpfs::control
