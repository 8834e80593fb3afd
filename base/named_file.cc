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

std::optional<std::string> problem_of_folder(const std::string& path) {
  const std::size_t end = path.rfind('/');
  if (end == std::string::npos || end == 0) return std::nullopt;
  const std::string folder = path.substr(0, end);
  struct stat there = {};
  if (::stat(folder.c_str(), &there) == 0) {
    if (!S_ISDIR(there.st_mode)) {
      return fmt::format("'{}' is {}, not a folder", folder, kind_of_file(there.st_mode));
    }
    const bool is_there = ::faccessat(AT_FDCWD, path.c_str(), F_OK, AT_EACCESS) == 0;
    if (is_there || ::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0) {
      return std::nullopt;
    }
    return fmt::format("the folder '{}' is not writable: {}", folder,
                       std::generic_category().message(errno));
  }
  if (errno == ENOENT) return fmt::format("the folder '{}' does not exist", folder);
  return fmt::format("the folder '{}' cannot be used: {}", folder,
                     std::generic_category().message(errno));
}

}  // namespace vpfs
