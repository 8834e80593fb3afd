#include "control/host/status_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace vpfs::control {
namespace {

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
    spdlog::debug("a status lock does not say whose it is");
  }
}

}  // namespace

Result<StatusLock> StatusLock::take(const std::string& status_file, const ProgramName& name) {
  const std::string path = lock_file_of(status_file);
  const auto problem = [&] {
    const std::error_code error(errno, std::system_category());
    return fail(fmt::format("{}: cannot be opened: {}", path, error.message()), error);
  };
  StatusLock lock;
  lock.file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  // A file that another user left serves as well.
  if (lock.file_ < 0 && errno == EACCES) lock.file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (lock.file_ < 0) return problem();
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
  std::ofstream file(fresh, std::ios::binary | std::ios::trunc);
  if (!file) return problem("cannot be written");
  file << text;
  file.close();
  if (!file) return problem("cannot be written");
  if (std::rename(fresh.c_str(), path.c_str()) != 0) return problem("cannot be replaced");
  return {};
}

}  // namespace vpfs::control
