#include "dataserver/store/storage_directory.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/named_file.h"
#include "base/result.h"

namespace vpfs::dataserver {
namespace {

constexpr std::string_view kBegin = "vpfs-server directory";
constexpr int kFormat = 1;

std::string mark_of(std::string_view owner) {
  return fmt::format("{}, format {}\n{}\n", kBegin, kFormat, owner);
}

bool is_text(std::string_view mark) {
  return std::ranges::all_of(mark, [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); });
}

std::string in_one_line(std::string mark) {
  while (mark.ends_with('\n')) mark.pop_back();
  std::ranges::replace(mark, '\n', ';');
  return mark;
}

std::string last_problem() {
  return std::generic_category().message(errno);
}

// Puts a file in place; after a crash it is there whole or not at all.
Result<void> write_durably(const std::string& path, const std::string& text) {
  const std::string draft = path + ".new";
  const Result<int> file = open_regular_file(draft, O_WRONLY | O_CREAT | O_TRUNC, 0640);
  VPFS_TRY(file);
  const bool written =
      std::cmp_equal(::write(*file, text.data(), text.size()), text.size()) && ::fsync(*file) == 0;
  ::close(*file);
  if (!written || ::rename(draft.c_str(), path.c_str()) != 0) {
    return fail(fmt::format("cannot write {}: {}", path, last_problem()));
  }
  return {};
}

Result<void> check_mark(const std::string& path, const std::string& mark, bool empty) {
  const Result<int> file = open_regular_file(path, O_RDONLY);
  if (!file) {
    if (file.error().code != std::errc::no_such_file_or_directory) {
      return std::unexpected(file.error());
    }
    if (!empty) return fail(fmt::format("{} is missing: not a directory of vpfs-server", path));
    return write_durably(path, mark);
  }
  // Marks of others may be longer, and are shown.
  constexpr std::size_t kMostShown = 512;
  std::string found(mark.size() + kMostShown, '\0');
  const ssize_t size = ::read(*file, found.data(), found.size());
  const std::string problem = last_problem();
  ::close(*file);
  if (size < 0) return fail(fmt::format("{}: cannot be read: {}", path, problem));
  found.resize(static_cast<std::size_t>(size));
  if (found == mark) return {};
  if (!found.starts_with(kBegin) || !is_text(found)) {
    return fail(fmt::format("{}: is not the mark of a directory of vpfs-server", path));
  }
  return fail(fmt::format("{}: is of '{}', but this server expects '{}'", path, in_one_line(found),
                          in_one_line(mark)));
}

// Without its metadata a file system would look new, and nothing would lead to its data any more.
Result<void> check_metadata(const std::string& metadata, const std::string& data) {
  std::error_code error;
  const bool has_data =
      std::filesystem::exists(data, error) && !std::filesystem::is_empty(data, error);
  const std::string path = metadata + "/data.mdb";
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (!has_data || (!error && size > 0)) return {};
  const bool missing = error == std::errc::no_such_file_or_directory;
  if (error && !missing) return {};  // its opening says why
  return fail(fmt::format("{}: is {}, but {} has data", path, missing ? "missing" : "empty", data));
}

}  // namespace

Result<StorageDirectory> StorageDirectory::open(const std::string& path, std::string_view owner) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return fail(fmt::format("cannot create {}: {}", path, error.message()), error);

  const std::string lock_path = path + "/lock";
  const bool new_directory =
      std::filesystem::is_empty(path, error) || !std::filesystem::exists(path + "/metadata", error);
  const Result<int> lock = open_regular_file(lock_path, O_RDWR | O_CREAT, 0640);
  VPFS_TRY(lock);
  StorageDirectory directory(path, *lock);
  if (::flock(*lock, LOCK_EX | LOCK_NB) != 0) {
    return fail(fmt::format("{} is in use by another vpfs-server", path));
  }
  const auto mark = check_mark(path + "/format", mark_of(owner), new_directory);
  VPFS_TRY(mark);
  for (const std::string& part : {directory.metadata_path(), directory.data_path()}) {
    std::filesystem::create_directories(part, error);
    if (error) return fail(fmt::format("cannot create {}: {}", part, error.message()), error);
  }
  const auto metadata = check_metadata(directory.metadata_path(), directory.data_path());
  VPFS_TRY(metadata);
  return directory;
}

StorageDirectory::StorageDirectory(std::string path, int lock)
    : path_(std::move(path)), lock_(lock) {}
StorageDirectory::StorageDirectory(StorageDirectory&& other) noexcept
    : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)) {}
StorageDirectory::~StorageDirectory() {
  if (lock_ >= 0) ::close(lock_);
}

}  // namespace vpfs::dataserver
