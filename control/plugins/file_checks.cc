#include "control/plugins/file_checks.h"

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <memory>
#include <system_error>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace vpfs::control {
namespace {

std::unexpected<Error> last_error(const std::string& path) {
  const std::error_code code(errno, std::generic_category());
  return fail(fmt::format("{}: {}", path, code.message()), code);
}

// `path` as it was given, and `part` of it, whose state this is.
Result<void> check_writers(const std::string& path, const std::string& part,
                           const struct ::stat& state) {
  const std::string subject =
      part == path ? path : fmt::format("{} could be replaced: {}", path, part);
  if (state.st_uid != 0 && state.st_uid != ::geteuid()) {
    return fail(fmt::format(
        "{} belongs to user {}: expected root{}", subject, state.st_uid,
        ::geteuid() == 0 ? "" : fmt::format(" or the user of this process, {}", ::geteuid())));
  }
  const bool is_sticky = S_ISDIR(state.st_mode) && (state.st_mode & S_ISVTX) != 0;
  if ((state.st_mode & (S_IWGRP | S_IWOTH)) == 0 || is_sticky) return {};
  return fail(fmt::format("{} can be written by others than its owner (mode {:04o}): chmod go-w {}",
                          subject, state.st_mode & 07777U, part));
}

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

Result<TrustedFile> check_trusted(const std::string& path) {
  if (path.empty() || path.front() != '/') {
    return fail(fmt::format("\"{}\" is not an absolute path", path));
  }
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), std::free);
  if (real == nullptr) return last_error(path);
  TrustedFile file = {.path = real.get()};
  struct ::stat state = {};
  if (::stat(file.path.c_str(), &state) != 0) return last_error(path);
  if (S_ISDIR(state.st_mode)) return fail(fmt::format("{} is a directory", path));
  if (!S_ISREG(state.st_mode)) return fail(fmt::format("{} is not a file", path));
  file.device = state.st_dev;
  file.inode = state.st_ino;
  file.changed = std::int64_t{state.st_mtim.tv_sec} * 1'000'000'000 + state.st_mtim.tv_nsec;
  for (std::string part = file.path;; part = parent_of(part)) {
    if (::stat(part.c_str(), &state) != 0) return last_error(part);
    if (Result<void> safe = check_writers(file.path, part, state); !safe) {
      return std::unexpected(safe.error());
    }
    if (part == "/") return file;
  }
}

}  // namespace vpfs::control
