#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/support/process.h"

namespace vpfs::test {

// One file, and what it must hold. Reads, writes, cuts, maps and holes at random places, through
// one descriptor or a new one, and looks at the file where it is seen too now and then.
class FileChecker {
 public:
  struct File {
    std::filesystem::path path;
    std::filesystem::path elsewhere;  // the same file, below the mount or through another
    bool has_holes = true;            // holes can be punched
    bool has_mappings = true;         // it can be mapped
  };

  FileChecker(File file, std::uint64_t seed) : place_(std::move(file)), random_(seed) { reopen(); }
  ~FileChecker() { ::close(file_); }
  FileChecker(const FileChecker&) = delete;
  FileChecker& operator=(const FileChecker&) = delete;

  void run(int operations) {
    for (int i = 0; i < operations && !::testing::Test::HasFatalFailure(); ++i) {
      SCOPED_TRACE(i);
      step();
    }
    reopen();
    read(0, model_.size() + 100);
    compare_elsewhere();
  }

 private:
  void step() {
    const std::size_t offset = place();
    const std::size_t size = length();
    switch (random_() % 16) {
      case 0:
        return cut(random_() % kLargest);
      case 1:
        return reopen();
      case 2:
        return place_.has_mappings ? map_and_read() : read(offset, size);
      case 3:
        return place_.has_mappings ? map_and_write() : write(offset, size);
      case 4:
        return place_.has_holes ? punch(offset, size) : write(offset, size);
      case 5:
        return compare_elsewhere();
      case 6:
      case 7:
      case 8:
      case 9:
      case 10:
        return write(offset, size);
      default:
        return read(offset, size);
    }
  }

  std::size_t place() {
    return random_() % 4 == 0 ? random_() % kLargest / 4096 * 4096 : random_() % kLargest;
  }
  std::size_t length() {
    const std::size_t most = std::array<std::size_t, 4>{64, 4096, 70'000, 1'500'000}[random_() % 4];
    return 1 + random_() % most;
  }

  void reopen() {
    if (file_ >= 0) ASSERT_EQ(::close(file_), 0);
    file_ = ::open(place_.path.c_str(), O_RDWR | O_CREAT, 0644);
    ASSERT_GE(file_, 0) << std::strerror(errno);
  }

  void write(std::size_t offset, std::size_t size) {
    size = std::min(size, kLargest - offset);
    std::vector<char> data(size);
    for (char& each : data) each = static_cast<char>(random_());
    ASSERT_EQ(::pwrite(file_, data.data(), size, static_cast<off_t>(offset)),
              static_cast<ssize_t>(size));
    if (model_.size() < offset + size) model_.resize(offset + size);
    std::ranges::copy(data, model_.begin() + static_cast<std::ptrdiff_t>(offset));
  }

  void read(std::size_t offset, std::size_t size) {
    std::vector<char> data(size);
    const ssize_t got = ::pread(file_, data.data(), size, static_cast<off_t>(offset));
    const std::size_t there = offset < model_.size() ? std::min(size, model_.size() - offset) : 0;
    ASSERT_EQ(got, static_cast<ssize_t>(there)) << "at " << offset;
    ASSERT_TRUE(
        std::equal(data.begin(), data.begin() + got,
                   model_.begin() + static_cast<std::ptrdiff_t>(std::min(offset, model_.size()))))
        << "at " << offset << ", " << size << " bytes";
  }

  void cut(std::size_t size) {
    const int result = random_() % 2 == 0
                           ? ::ftruncate(file_, static_cast<off_t>(size))
                           : ::truncate(place_.path.c_str(), static_cast<off_t>(size));
    ASSERT_EQ(result, 0);
    model_.resize(size);
    struct stat now = {};
    ASSERT_EQ(::fstat(file_, &now), 0);
    ASSERT_EQ(static_cast<std::size_t>(now.st_size), size);
  }

  void punch(std::size_t offset, std::size_t size) {
    ASSERT_EQ(::fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                          static_cast<off_t>(offset), static_cast<off_t>(size)),
              0);
    const std::size_t from = std::min(offset, model_.size());
    const std::size_t to = std::min(offset + size, model_.size());
    std::fill(model_.begin() + static_cast<std::ptrdiff_t>(from),
              model_.begin() + static_cast<std::ptrdiff_t>(to), '\0');
  }

  void map_and_read() {
    if (model_.empty()) return;
    void* const memory = ::mmap(nullptr, model_.size(), PROT_READ, MAP_SHARED, file_, 0);
    ASSERT_NE(memory, MAP_FAILED);
    EXPECT_EQ(std::memcmp(memory, model_.data(), model_.size()), 0);
    ::munmap(memory, model_.size());
  }

  void map_and_write() {
    if (model_.empty()) return;
    void* const memory =
        ::mmap(nullptr, model_.size(), PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    ASSERT_NE(memory, MAP_FAILED);
    const std::size_t offset = random_() % model_.size();
    const std::size_t size = std::min<std::size_t>(1 + random_() % 9000, model_.size() - offset);
    for (std::size_t i = 0; i < size; ++i) {
      model_[offset + i] = static_cast<char>(random_());
      static_cast<char*>(memory)[offset + i] = model_[offset + i];
    }
    ASSERT_EQ(::msync(memory, model_.size(), MS_SYNC), 0);
    ::munmap(memory, model_.size());
  }

  void compare_elsewhere() {
    ASSERT_EQ(::fsync(file_), 0);
    const std::string text = read_text(place_.elsewhere);
    ASSERT_EQ(text.size(), model_.size());
    ASSERT_TRUE(std::equal(text.begin(), text.end(), model_.begin()));
  }

  static constexpr std::size_t kLargest = std::size_t{3} << 20;

  const File place_;
  std::mt19937_64 random_;
  std::vector<char> model_;
  int file_ = -1;
};

// How many operations a checker does: VPFS_OPERATIONS, or `usual`.
[[nodiscard]] inline int checker_operations(int usual) {
  const char* const wanted = std::getenv("VPFS_OPERATIONS");
  return wanted == nullptr ? usual : std::atoi(wanted);
}

}  // namespace vpfs::test
