#include "base/named_file.h"

#include <cerrno>
#include <system_error>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace vpfs {
namespace {

std::string not_regular(mode_t mode) {
  return fmt::format("is {}, not a regular file", kind_of_file(mode));
}

}  // namespace

std::string_view kind_of_file(mode_t mode) {
  if (S_ISREG(mode)) return "a regular file";
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "of an unknown kind";
}

std::string why_not_opened(const std::string& path, int error) {
  struct stat there = {};
  // ENXIO: a socket, a FIFO without a reader, a device that is not there.
  if ((error == ENXIO || error == EISDIR) && ::stat(path.c_str(), &there) == 0 &&
      !S_ISREG(there.st_mode)) {
    return not_regular(there.st_mode);
  }
  return std::generic_category().message(error);
}

Result<int> open_regular_file(const std::string& path, int flags, mode_t mode) {
  struct stat there = {};
  // Opening a device may do something, so it is looked at first.
  if (::stat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode)) {
    return fail(fmt::format("{}: {}", path, not_regular(there.st_mode)));
  }
  const int file = ::open(path.c_str(), flags | kNoWaiting, mode);
  if (file < 0) {
    const std::error_code error(errno, std::generic_category());
    return fail(fmt::format("{}: cannot be opened: {}", path, why_not_opened(path, error.value())),
                error);
  }
  if (::fstat(file, &there) == 0 && S_ISREG(there.st_mode)) return file;
  ::close(file);
  return fail(fmt::format("{}: {}", path, not_regular(there.st_mode)));
}

Result<void> check_readable_file(const std::string& path) {
  struct stat there = {};
  const bool is_there = ::stat(path.c_str(), &there) == 0;
  if (is_there && !S_ISREG(there.st_mode)) {
    return fail(fmt::format("{}: {}", path, not_regular(there.st_mode)));
  }
  // As the effective user, who will open it.
  const bool is_readable = is_there && ::faccessat(AT_FDCWD, path.c_str(), R_OK, AT_EACCESS) == 0;
  if (is_readable) return {};
  const std::error_code error(errno, std::generic_category());
  return fail(fmt::format("{}: {}", path, error.message()), error);
}

namespace {

std::optional<std::string> problem_of_writing(const std::string& file) {
  if (::faccessat(AT_FDCWD, file.c_str(), W_OK, AT_EACCESS) == 0 || errno == ENOENT) return {};
  const std::error_code error(errno, std::generic_category());
  struct stat its = {};
  const bool is_known = ::stat(file.c_str(), &its) == 0;
  return fmt::format("'{}'{} cannot be written by uid {}: {}", file,
                     is_known ? fmt::format(", which uid {} owns,", its.st_uid) : "", ::geteuid(),
                     error.message());
}

// What keeps a file from being made or replaced under this name.
std::optional<std::string> problem_of_folder(const std::string& path) {
  const std::size_t end = path.rfind('/');
  if (end == std::string::npos || end == 0) return std::nullopt;
  const std::string folder = path.substr(0, end);
  struct stat there = {};
  if (::stat(folder.c_str(), &there) == 0) {
    if (!S_ISDIR(there.st_mode)) {
      return fmt::format("'{}' is {}, not a folder", folder, kind_of_file(there.st_mode));
    }
    if (::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0) return std::nullopt;
    return fmt::format("the folder '{}' is not writable: {}", folder,
                       std::generic_category().message(errno));
  }
  if (errno == ENOENT) return fmt::format("the folder '{}' does not exist", folder);
  return fmt::format("the folder '{}' cannot be used: {}", folder,
                     std::generic_category().message(errno));
}

}  // namespace

std::optional<std::string> problem_of_place(const std::string& path) {
  struct stat there = {};
  const bool is_there = ::stat(path.c_str(), &there) == 0;
  const bool is_made = !is_there || S_ISSOCK(there.st_mode);
  if (is_made) {
    if (auto problem = problem_of_folder(path)) return problem;
  } else if (S_ISREG(there.st_mode)) {
    if (auto problem = problem_of_writing(path)) return problem;
  }
  return path.empty() ? std::nullopt : problem_of_writing(path + ".lock");
}

}  // namespace vpfs
