#pragma once

#include <cstddef>
#include <cstdio>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

namespace vpfs::control {

// The system calls that a journal makes. Each returns what the call of its name returns: -1 with
// errno on an error. A test overrides them to make one fail, or to end in the middle.
class FileCalls {
 public:
  virtual ~FileCalls() = default;

  [[nodiscard]] virtual int open(const char* path, int flags, mode_t mode) {
    return ::open(path, flags, mode);
  }
  // st_mode of the open file; 0: it cannot be looked at.
  [[nodiscard]] virtual mode_t mode_of(int file) {
    struct stat open = {};
    return ::fstat(file, &open) == 0 ? open.st_mode : 0;
  }
  [[nodiscard]] virtual ssize_t read(int file, void* to, std::size_t size) {
    return ::read(file, to, size);
  }
  [[nodiscard]] virtual ssize_t write(int file, const void* from, std::size_t size) {
    return ::write(file, from, size);
  }
  [[nodiscard]] virtual int fdatasync(int file) { return ::fdatasync(file); }
  [[nodiscard]] virtual int fsync(int file) { return ::fsync(file); }
  [[nodiscard]] virtual int ftruncate(int file, off_t size) { return ::ftruncate(file, size); }
  [[nodiscard]] virtual int rename(const char* from, const char* to) {
    return std::rename(from, to);
  }
  [[nodiscard]] virtual int unlink(const char* path) { return ::unlink(path); }
  [[nodiscard]] virtual int flock(int file, int operation) { return ::flock(file, operation); }
  // Whether the open file is the one that has this name.
  [[nodiscard]] virtual bool has_name(int file, const char* path) {
    struct stat open = {};
    struct stat named = {};
    return ::fstat(file, &open) == 0 && ::stat(path, &named) == 0 && open.st_dev == named.st_dev &&
           open.st_ino == named.st_ino;
  }
  virtual void close(int file) { (void)::close(file); }
};

}  // namespace vpfs::control
