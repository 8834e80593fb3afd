#include "control/host/status_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/named_file.h"
#include "base/result.h"

namespace vpfs::control {
namespace {

constexpr mode_t kLockMode = 0600;

std::string lock_file_of(const std::string& status_file) {
  return status_file + ".lock";
}

// "" if the holder has not written its pid, or not yet.
std::string holder_of(int file) {
  std::array<char, 32> text = {};
  const ssize_t size = ::pread(file, text.data(), text.size(), 0);
  if (size <= 0) return "";
  std::string pid(text.data(), static_cast<std::size_t>(size));
  pid.resize(std::min(pid.find_first_not_of("0123456789"), pid.size()));
  return pid.empty() ? "" : fmt::format(" (pid {})", pid);
}

void write_holder(int file) {
  const std::string pid = fmt::format("{}\n", ::getpid());
  if (::ftruncate(file, 0) != 0 ||
      ::pwrite(file, pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    spdlog::debug("the status lock names no owner");
  }
}

// A status takes the place of a file; it must not take that of a device, such as /dev/null.
Result<void> check_place(const std::string& status_file) {
  struct stat there = {};
  if (::stat(status_file.c_str(), &there) != 0 || S_ISREG(there.st_mode)) return {};
  return fail(fmt::format("{}: is {}, not a regular file: the status cannot replace it",
                          status_file, kind_of_file(there.st_mode)));
}

bool write_whole(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t size = ::write(file, text.data(), text.size());
    if (size < 0 && errno == EINTR) continue;
    if (size == 0) errno = EIO;
    if (size <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(size));
  }
  return true;
}

}  // namespace

Result<StatusLock> StatusLock::take(const std::string& status_file, const ProgramName& name,
                                    net::Inherited* inherited) {
  const std::string path = lock_file_of(status_file);
  StatusLock lock;
  VPFS_TRY(check_place(status_file));
  lock.file_ = net::Inherited::take_from(inherited, kName).release();
  // The process before may go on, so it stays the holder until name_holder().
  if (lock.is_of(status_file)) return lock;
  lock = StatusLock();
  // Whoever may read the file could hold the lock, and no program would start again.
  Result<int> opened = open_regular_file(path, O_RDWR | O_CREAT, kLockMode);
  // A file that another user left serves as well.
  if (!opened && opened.error().code == std::errc::permission_denied) {
    opened = open_regular_file(path, O_RDONLY);
  }
  VPFS_TRY(opened);
  lock.file_ = *opened;
  (void)::fchmod(lock.file_, kLockMode);  // one of a release before, of this user
  if (::flock(lock.file_, LOCK_EX | LOCK_NB) == 0) {
    write_holder(lock.file_);
  } else if (errno == EWOULDBLOCK) {
    return fail(fmt::format("{} belongs to another {}{}: each needs its own", status_file,
                            name.program, holder_of(lock.file_)),
                std::make_error_code(std::errc::device_or_resource_busy));
  } else {
    spdlog::warn("{}: cannot be locked, so nothing keeps another {} from writing {}: {}", path,
                 name.role, status_file, std::error_code(errno, std::system_category()).message());
  }
  return lock;
}

void StatusLock::name_holder() const {
  if (file_ >= 0) write_holder(file_);
}

StatusLock::~StatusLock() {
  if (file_ >= 0) ::close(file_);
}

StatusLock::StatusLock(StatusLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

StatusLock& StatusLock::operator=(StatusLock&& other) noexcept {
  std::swap(file_, other.file_);
  return *this;
}

bool StatusLock::is_of(const std::string& status_file) const {
  struct stat mine = {};
  struct stat named = {};
  return file_ >= 0 && ::fstat(file_, &mine) == 0 &&
         ::stat(lock_file_of(status_file).c_str(), &named) == 0 && mine.st_dev == named.st_dev &&
         mine.st_ino == named.st_ino;
}

Result<void> write_status_file(const std::string& path, const std::string& text) {
  const std::string fresh = path + ".new";
  const auto problem = [&](const char* what) {
    const std::error_code error(errno, std::system_category());
    return fail(fmt::format("status file {}: {}: {}", path, what, error.message()), error);
  };
  if (const Result<void> good = check_place(path); !good) {
    return fail("status file " + good.error().message, good.error().code);
  }
  const Result<int> file = open_regular_file(fresh, O_WRONLY | O_CREAT | O_TRUNC, 0640);
  if (!file) {
    return fail(fmt::format("status file {}: cannot be written: {}", path, file.error().message),
                file.error().code);
  }
  if (!write_whole(*file, text)) {
    auto unwritten = problem("cannot be written");
    ::close(*file);
    return unwritten;
  }
  if (::close(*file) != 0) return problem("cannot be written");
  if (std::rename(fresh.c_str(), path.c_str()) != 0) return problem("cannot be replaced");
  return {};
}

}  // namespace vpfs::control
