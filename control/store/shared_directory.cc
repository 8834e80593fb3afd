#include "control/store/shared_directory.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/named_file.h"

namespace vpfs::control {
namespace {

constexpr std::size_t kFieldOfMountPoint = 4;  // of a line of the table, counted from 0
constexpr std::string_view kBeforeType = " - ";

std::string_view field_of(std::string_view line, std::size_t number) {
  for (; number > 0; --number) {
    const std::size_t blank = line.find(' ');
    if (blank == std::string_view::npos) return "";
    line.remove_prefix(blank + 1);
  }
  return line.substr(0, line.find(' '));
}

// The table has blanks and backslashes as \040 and the like.
std::string without_escapes(std::string_view text) {
  constexpr std::size_t kOctalDigits = 3;
  std::string plain;
  while (!text.empty()) {
    const std::string_view digits = text.substr(1, kOctalDigits);
    const bool is_escape =
        text[0] == '\\' && digits.size() == kOctalDigits &&
        std::ranges::all_of(digits, [](char each) { return each >= '0' && each <= '7'; });
    if (is_escape) {
      plain += static_cast<char>((digits[0] - '0') * 64 + (digits[1] - '0') * 8 + digits[2] - '0');
    } else {
      plain += text[0];
    }
    text.remove_prefix(is_escape ? 1 + kOctalDigits : 1);
  }
  return plain;
}

bool is_below(std::string_view path, std::string_view mount_point) {
  if (mount_point == "/") return true;
  return path.starts_with(mount_point) &&
         (path.size() == mount_point.size() || path[mount_point.size()] == '/');
}

std::unexpected<Error> problem_of(const std::string& path, std::string_view what) {
  const std::error_code error(errno, std::system_category());
  return fail(fmt::format("{}: {}: {}", path, what, error.message()), error);
}

}  // namespace

bool may_be_controlled(std::string_view type) {
  constexpr std::array<std::string_view, 5> kTypes = {"pvfs2", "beegfs", "beegfs_nodev",
                                                      "fuse.vpfs", "fuse.pvfs2fuse"};
  return std::ranges::find(kTypes, type) != kTypes.end();
}

std::string file_system_of(std::string_view path, std::string_view table) {
  std::string type;
  std::size_t longest = 0;
  while (!table.empty()) {
    const std::string_view line = table.substr(0, table.find('\n'));
    table.remove_prefix(std::min(line.size() + 1, table.size()));
    const std::size_t end = line.find(kBeforeType);
    if (end == std::string_view::npos) continue;
    const std::string mount_point = without_escapes(field_of(line, kFieldOfMountPoint));
    // A later mount hides an earlier one at its place.
    if (!is_below(path, mount_point) || mount_point.size() < longest) continue;
    longest = mount_point.size();
    type = field_of(line.substr(end + kBeforeType.size()), 0);
  }
  return type;
}

Result<void> check_shared_directory(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) {
    return problem_of(path, "the directory for the coordinators' state cannot be looked at");
  }
  if (!S_ISDIR(status.st_mode)) {
    return fail(fmt::format("{}: is {}, not a directory for the coordinators' state", path,
                            kind_of_file(status.st_mode)));
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return fail(
        fmt::format("{}: other users may write to it (mode {:04o}), but whoever writes "
                    "there rules the site: chmod go-w {}",
                    path, status.st_mode & 07777U, path));
  }
  if (::faccessat(AT_FDCWD, path.c_str(), R_OK | W_OK | X_OK, AT_EACCESS) != 0) {
    return problem_of(path, "this process cannot write to it");
  }
  const std::unique_ptr<char, decltype(&std::free)> whole(::realpath(path.c_str(), nullptr),
                                                          &std::free);
  if (whole == nullptr) return problem_of(path, "cannot be looked at");
  std::ifstream mounts("/proc/self/mountinfo");
  const std::string table((std::istreambuf_iterator<char>(mounts)), {});
  const std::string type = file_system_of(whole.get(), table);
  if (!may_be_controlled(type)) return {};
  return fail(
      fmt::format("{}: is on a file system of the type {}, which vpfs may control. Its loss would "
                  "stop the coordinators when they are needed. Name a directory elsewhere, such as "
                  "on NFS",
                  path, type));
}

}  // namespace vpfs::control
