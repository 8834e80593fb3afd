#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

namespace vpfs::control {

// The system calls that stores make. Each returns what the call of its name returns: -1 with
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
  // In bytes; nothing, with errno: it cannot be told.
  [[nodiscard]] virtual std::optional<std::uint64_t> size_of(int file) {
    struct stat open = {};
    if (::fstat(file, &open) != 0) return std::nullopt;
    return static_cast<std::uint64_t>(open.st_size);
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
  // Fails with EEXIST if `to` is there.
  [[nodiscard]] virtual int link(const char* from, const char* to) { return ::link(from, to); }
  [[nodiscard]] virtual int unlink(const char* path) { return ::unlink(path); }
  [[nodiscard]] virtual int flock(int file, int operation) { return ::flock(file, operation); }
  // Whether the open file is the one that has this name.
  [[nodiscard]] virtual bool has_name(int file, const char* path) {
    struct stat open = {};
    struct stat named = {};
    return ::fstat(file, &open) == 0 && ::stat(path, &named) == 0 && open.st_dev == named.st_dev &&
           open.st_ino == named.st_ino;
  }
  // The names in a directory, in any order; nothing, with errno: it cannot be read.
  [[nodiscard]] virtual std::optional<std::vector<std::string>> names_in(const char* directory) {
    DIR* const open = ::opendir(directory);
    if (open == nullptr) return std::nullopt;
    std::vector<std::string> names;
    errno = 0;
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing else has this DIR
    while (const dirent* const entry = ::readdir(open)) names.emplace_back(entry->d_name);
    const int error = errno;
    ::closedir(open);
    errno = error;
    if (error != 0) return std::nullopt;
    return names;
  }
  virtual void close(int file) { (void)::close(file); }
};

}  // namespace vpfs::control
