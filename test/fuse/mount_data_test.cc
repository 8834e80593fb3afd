// File data through a mount: whatever is done, every byte is what a model says.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/fuse/mount_process.h"

namespace vpfs::test {
namespace {

constexpr std::size_t kLargest = std::size_t{3} << 20;

// One file, and what it must hold. Reads, writes, cuts, maps and holes at random places, through
// one descriptor or a new one, and looks at the file below now and then.
class FileChecker {
 public:
  FileChecker(std::filesystem::path path, std::filesystem::path below, std::uint64_t seed,
              int flags)
      : path_(std::move(path)), below_(std::move(below)), random_(seed), flags_(flags) {
    reopen();
  }
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
    compare_below();
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
        return map_and_read();
      case 3:
        return map_and_write();
      case 4:
        return punch(offset, size);
      case 5:
        return compare_below();
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
    file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | flags_, 0644);
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
    const int result = random_() % 2 == 0 ? ::ftruncate(file_, static_cast<off_t>(size))
                                          : ::truncate(path_.c_str(), static_cast<off_t>(size));
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
    if (model_.empty() || flags_ != 0) return;
    void* const memory = ::mmap(nullptr, model_.size(), PROT_READ, MAP_SHARED, file_, 0);
    ASSERT_NE(memory, MAP_FAILED);
    EXPECT_EQ(std::memcmp(memory, model_.data(), model_.size()), 0);
    ::munmap(memory, model_.size());
  }

  void map_and_write() {
    if (model_.empty() || flags_ != 0) return;
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

  void compare_below() {
    ASSERT_EQ(::fsync(file_), 0);
    const std::string text = read_text(below_);
    ASSERT_EQ(text.size(), model_.size());
    ASSERT_TRUE(std::equal(text.begin(), text.end(), model_.begin()));
  }

  const std::filesystem::path path_;
  const std::filesystem::path below_;
  std::mt19937_64 random_;
  const int flags_;
  std::vector<char> model_;
  int file_ = -1;
};

using MountData = MountTest;

// VPFS_OPERATIONS sets another number of operations.
int operations() {
  const char* const wanted = std::getenv("VPFS_OPERATIONS");
  return wanted == nullptr ? 4000 : std::atoi(wanted);
}

TEST_F(MountData, IsWhatAModelSaysWhateverIsDoneToAFile) {
  const MountProcess mount;
  FileChecker checker(mount.path() / "file", mount.below() / "file", 1, 0);
  checker.run(operations());
}

TEST_F(MountData, IsWhatAModelSaysWhileItHasToWaitItsTurn) {
  const MountProcess mount({.config = "scheduler: {policy: sfq, depth: {requests: 1}}"});
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < 4; ++i) {
    threads.emplace_back([&mount, i] {
      const std::string name = "file" + std::to_string(i);
      FileChecker checker(mount.path() / name, mount.below() / name, 2 + i, 0);
      checker.run(operations() / 8);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(MountData, OfAppendersNothingIsLost) {
  const MountProcess mount;
  constexpr int kWriters = 4;
  constexpr int kLines = 300;
  std::vector<std::thread> threads;
  for (int i = 0; i < kWriters; ++i) {
    threads.emplace_back([&mount, i] {
      const int file = ::open((mount.path() / "log").c_str(), O_WRONLY | O_APPEND | O_CREAT, 0644);
      ASSERT_GE(file, 0);
      for (int line = 0; line < kLines; ++line) {
        const std::string text(64, static_cast<char>('a' + i));
        ASSERT_EQ(::write(file, text.data(), text.size()), 64);
      }
      ::close(file);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::string text = read_text(mount.below() / "log");
  for (int i = 0; i < kWriters; ++i) {
    EXPECT_EQ(std::ranges::count(text, static_cast<char>('a' + i)), 64 * kLines);
  }
}

// Writes numbered blocks, one after the other, until a write fails. Returns how many were taken.
int write_blocks(const std::filesystem::path& path, std::atomic<int>& written) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT, 0644);
  std::vector<int> block(2048);
  int count = 0;
  for (;; ++count) {
    std::ranges::fill(block, count);
    const auto size = static_cast<ssize_t>(block.size() * sizeof(int));
    if (::pwrite(file, block.data(), static_cast<std::size_t>(size), count * size) != size) break;
    written = count;
  }
  ::close(file);
  return count;
}

TEST_F(MountData, ThatWereWrittenOutliveTheMountsProgram) {
  MountProcess mount;
  const MountProcess other({.config = "scheduler: {policy: fifo}", .below = mount.below()});
  std::atomic<int> written = 0;
  int count = 0;
  std::thread writer([&] { count = write_blocks(mount.path() / "file", written); });
  ASSERT_TRUE(comes_true([&] { return written > 500; }));
  mount.kill();
  writer.join();
  EXPECT_GT(count, 500);
  mount.start();
  for (const auto& path : {mount.path() / "file", other.path() / "file"}) {
    const std::string text = read_text(path);
    ASSERT_GE(text.size(), static_cast<std::size_t>(count) * 8192);
    std::vector<int> numbers(text.size() / sizeof(int));
    std::memcpy(numbers.data(), text.data(), numbers.size() * sizeof(int));
    for (std::size_t i = 0; i < static_cast<std::size_t>(count) * 2048; ++i) {
      ASSERT_EQ(numbers[i], static_cast<int>(i / 2048)) << "block " << i / 2048;
    }
  }
}

TEST_F(MountData, OfAFileThatSomebodyChangesBelowIsSeenAtTheNextOpen) {
  const MountProcess mount;
  const auto write_below = [&](const std::string& text) {
    const int file = ::open((mount.below() / "file").c_str(), O_WRONLY | O_CREAT, 0644);
    ASSERT_EQ(::write(file, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ::close(file);
  };
  write_below("first");
  EXPECT_EQ(read_text(mount.path() / "file"), "first");
  // As long as before, so that only the time tells.
  write_below("other");
  EXPECT_EQ(read_text(mount.path() / "file"), "other");
}

}  // namespace
}  // namespace vpfs::test
