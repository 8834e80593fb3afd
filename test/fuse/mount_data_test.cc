// File data through a mount: whatever is done, every byte is what a model says.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "test/fuse/file_checker.h"
#include "test/fuse/mount_process.h"

namespace vpfs::test {
namespace {

using MountData = MountTest;

TEST_F(MountData, IsWhatAModelSaysWhateverIsDoneToAFile) {
  const MountProcess mount;
  FileChecker checker({.path = mount.path() / "file", .elsewhere = mount.below() / "file"}, 1);
  checker.run(checker_operations(4000));
}

TEST_F(MountData, IsWhatAModelSaysWhileItHasToWaitItsTurn) {
  const MountProcess mount({.config = "scheduler: {policy: sfq, depth: {requests: 1}}"});
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < 4; ++i) {
    threads.emplace_back([&mount, i] {
      const std::string name = "file" + std::to_string(i);
      FileChecker checker({.path = mount.path() / name, .elsewhere = mount.below() / name}, 2 + i);
      checker.run(checker_operations(4000) / 8);
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
