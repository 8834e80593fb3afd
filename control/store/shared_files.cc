#include "control/store/shared_files.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <system_error>

#include <fmt/format.h>

#include "base/named_file.h"

namespace vpfs::control {
namespace {

constexpr mode_t kSharedMode = 0640;
constexpr std::size_t kMostBytes = std::size_t{1} << 30;

SiteStore::Why why_of(int error) {
  switch (error) {
    case EIO:
    case ESTALE:
    case ETIMEDOUT:
    case ENOENT:  // of the directory
    case ENODEV:
    case ENXIO:
    case ENOTCONN:
    case ESHUTDOWN:
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENETDOWN:
    case ENETUNREACH:
    case EAGAIN:
    case EINTR:
      return SiteStore::Why::unreachable;
    default:
      return SiteStore::Why::refused;
  }
}

}  // namespace

std::string SharedFiles::path_of(std::string_view name) const {
  return name.empty() ? directory_ : fmt::format("{}/{}", directory_, name);
}

std::unexpected<SiteStore::Failure> SharedFiles::problem(std::string_view name,
                                                         std::string_view what) const {
  const int error = errno;
  return std::unexpected(SiteStore::Failure{
      .why = why_of(error),
      .text = fmt::format("{}: {}: {}", path_of(name), what,
                          std::error_code(error, std::system_category()).message())});
}

bool SharedFiles::File::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t size = calls_->write(number_, bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR) continue;
    if (size == 0) errno = EIO;
    if (size <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(size));
  }
  return true;
}

bool SharedFiles::File::cut(std::uint64_t size) {
  return calls_->ftruncate(number_, static_cast<off_t>(size)) == 0 && sync();
}

bool SharedFiles::File::read(std::string& more) {
  std::array<char, std::size_t{64} * 1024> buffer;
  ssize_t size = -1;
  do {
    errno = 0;
    size = calls_->read(number_, buffer.data(), buffer.size());
  } while (size < 0 && errno == EINTR);
  if (size > 0) more.append(buffer.data(), static_cast<std::size_t>(size));
  return size > 0;
}

SharedFiles::Outcome<std::optional<SharedFiles::File>> SharedFiles::open(const std::string& name,
                                                                         int flags) {
  const int number = calls_.open(path_of(name).c_str(), flags | kNoWaiting, kSharedMode);
  if (number >= 0) return std::optional<File>(std::in_place, number, calls_);
  if (errno == ENOENT && (flags & O_CREAT) == 0) return std::nullopt;
  return problem(name, "cannot be opened");
}

SharedFiles::Outcome<std::optional<std::string>> SharedFiles::read(const std::string& name) {
  auto opened = open(name, O_RDONLY);
  VPFS_TRY(opened);
  std::optional<File>& file = *opened;
  if (!file) return std::nullopt;
  std::string bytes;
  while (file->read(bytes)) {
    if (bytes.size() <= kMostBytes) continue;
    return std::unexpected(SiteStore::Failure{
        .why = SiteStore::Why::damaged,
        .text = fmt::format("{}: larger than 1 GiB, so vpfs has not written it", path_of(name))});
  }
  if (errno != 0) return problem(name, "cannot be read");
  return bytes;
}

SharedFiles::Outcome<bool> SharedFiles::write(const std::string& name, int flags,
                                              std::string_view bytes) {
  auto opened = open(name, O_WRONLY | flags);
  VPFS_TRY(opened);
  std::optional<File>& file = *opened;
  if (!file) return false;
  if (!file->write(bytes) || !file->sync()) return problem(name, "cannot be written");
  return true;
}

SharedFiles::Outcome<std::vector<std::string>> SharedFiles::names() {
  auto names = calls_.names_in(directory_.c_str());
  if (!names) return problem("", "cannot be read");
  return *std::move(names);
}

SharedFiles::Outcome<bool> SharedFiles::link(const std::string& from, const std::string& to) {
  if (calls_.link(path_of(from).c_str(), path_of(to).c_str()) == 0) return true;
  if (errno == EEXIST) return false;
  return problem(to, "cannot be made");
}

SharedFiles::Outcome<void> SharedFiles::rename(const std::string& from, const std::string& to) {
  if (calls_.rename(path_of(from).c_str(), path_of(to).c_str()) == 0) return {};
  return problem(to, "cannot be put in its place");
}

SharedFiles::Outcome<void> SharedFiles::sync_directory() {
  auto opened = open("", O_RDONLY | O_DIRECTORY);
  VPFS_TRY(opened);
  std::optional<File>& directory = *opened;
  if (!directory || !directory->sync()) return problem("", "cannot be synced");
  return {};
}

}  // namespace vpfs::control
