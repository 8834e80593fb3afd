#include "tools/output/output_file.h"

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/descriptor.h"

namespace vpfs::output {
namespace {

std::unexpected<Error> cannot_write(const std::string& path, int error) {
  return fail(
      fmt::format("{}: cannot be written: {}", path, std::generic_category().message(error)));
}

std::unexpected<Error> is_written(const std::string& path) {
  return fail(path + ": another run writes it now");
}

// Locks are of the file, not of its name: it may have been replaced by another run's.
bool is_under(const std::string& path, int file) {
  struct stat named = {};
  struct stat own = {};
  return ::lstat(path.c_str(), &named) == 0 && ::fstat(file, &own) == 0 &&
         named.st_ino == own.st_ino && named.st_dev == own.st_dev;
}

// Makes way for a new file beside `path`. One that is there is of a run that was killed, unless it
// is locked, or another user waits there for the contents.
Result<void> remove_left_over(const std::string& unfinished, const std::string& path) {
  const net::Descriptor file(
      ::open(unfinished.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  // One that is there and cannot be looked at may be another run's. A link or a device is none.
  const bool is_known = file || errno == ENOENT || errno == ELOOP || errno == ENXIO;
  if (!is_known) return cannot_write(unfinished, errno);
  // A shared lock needs no right to write.
  const bool is_locked =
      file && ::flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  if (is_locked) return is_written(path);
  (void)::unlink(unfinished.c_str());
  return {};
}

}  // namespace

OutputFile::~OutputFile() {
  if (!unfinished_.empty() && is_under(unfinished_, lock_.get())) {
    (void)::unlink(unfinished_.c_str());
  }
}

Result<void> OutputFile::open(const std::string& path, ::mode_t permissions) {
  path_ = path;
  target_ = path;
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  const bool is_special =
      std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
  std::string opened = path;
  int flags = O_WRONLY | O_CLOEXEC;
  if (!is_special) {
    const std::filesystem::path real = std::filesystem::weakly_canonical(path, error);
    if (!error) target_ = real.string();
    opened = target_ + ".unfinished";
    VPFS_TRY(remove_left_over(opened, path_));
    flags |= O_CREAT | O_EXCL | O_NOFOLLOW;
  }
  net::Descriptor file(::open(opened.c_str(), flags, permissions));
  if (!file) return cannot_write(path_, errno);
  if (!is_special) {
    lock_ = net::Descriptor(::fcntl(file.get(), F_DUPFD_CLOEXEC, 0));
    if (!lock_) {
      const int reason = errno;
      (void)::unlink(opened.c_str());
      return cannot_write(path_, reason);
    }
    // Some file systems have no locks.
    const bool is_locked = ::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (is_locked || !is_under(opened, lock_.get())) return is_written(path_);
    unfinished_ = opened;
  }
  file_.reset(::fdopen(file.get(), "w"));
  if (!file_) return cannot_write(path_, errno);
  (void)file.release();
  return {};
}

void OutputFile::write(std::string_view part) {
  if (error_ == 0 && std::fwrite(part.data(), 1, part.size(), file_.get()) != part.size()) {
    error_ = errno;
  }
}

Result<void> OutputFile::finish() {
  if (error_ == 0 && std::fflush(file_.get()) != 0) error_ = errno;
  // A device or a pipe cannot be synchronized.
  if (error_ == 0 && !unfinished_.empty() && ::fsync(::fileno(file_.get())) != 0) error_ = errno;
  // Some file systems tell only now that there is no room.
  if (std::fclose(file_.release()) != 0 && error_ == 0) error_ = errno;
  if (error_ != 0) return cannot_write(path_, error_);
  if (unfinished_.empty()) return {};
  if (!is_under(unfinished_, lock_.get())) {
    unfinished_.clear();  // it is another run's
    return is_written(path_);
  }
  if (std::rename(unfinished_.c_str(), target_.c_str()) != 0) return cannot_write(path_, errno);
  unfinished_.clear();
  lock_.close();
  return {};
}

}  // namespace vpfs::output
