// File data through a mount: whatever is done, every byte is what a model says.
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "net/descriptor.h"
#include "test/fuse/file_checker.h"
#include "test/fuse/mount_process.h"
#include "test/support/comes_true.h"

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

// A file with a hole, whose last read is short.
std::string large_file(const std::filesystem::path& path) {
  constexpr std::size_t kHole = 1 << 20;
  constexpr std::size_t kRest = (3 << 20) - 77;
  std::mt19937_64 random(7);
  std::string text((5 << 20) + 4321, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i < kHole || i >= kRest) text[i] = static_cast<char>(random());
  }
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  EXPECT_EQ(::pwrite(file, text.data(), kHole, 0), static_cast<ssize_t>(kHole));
  EXPECT_EQ(::pwrite(file, text.data() + kRest, text.size() - kRest, static_cast<off_t>(kRest)),
            static_cast<ssize_t>(text.size() - kRest));
  ::close(file);
  return text;
}

// Large reads take the pages of the directory's own cache.
TEST_F(MountData, LargeReadsHaveEveryByte) {
  const MountProcess mount;
  const std::string text = large_file(mount.below() / "file");
  for (const bool direct : {false, true}) {
    for (const std::size_t size :
         {std::size_t{128} << 10, std::size_t{1} << 20, std::size_t{4} << 20}) {
      const int file = ::open((mount.path() / "file").c_str(), O_RDONLY | (direct ? O_DIRECT : 0));
      ASSERT_GE(file, 0) << std::strerror(errno);
      ASSERT_EQ(::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED), 0);
      const std::unique_ptr<char, void (*)(void*)> memory(
          static_cast<char*>(std::aligned_alloc(4096, size)), std::free);
      std::string read;
      for (ssize_t got = 0; (got = ::read(file, memory.get(), size)) > 0;) {
        read.append(memory.get(), static_cast<std::size_t>(got));
      }
      EXPECT_TRUE(read == text) << size << (direct ? " direct" : "");
      ::close(file);
    }
  }
}

// Each byte is from before or after the change, and a read ends where the file does.
TEST_F(MountData, LargeReadsOfAFileThatChangesHaveNothingElse) {
  const MountProcess mount;
  const std::filesystem::path below = mount.below() / "file";
  constexpr std::size_t kSize = 3 << 20;
  std::ofstream(below) << std::string(kSize, 'a');
  std::atomic<bool> stops = false;
  std::thread writer([&] {
    const int file = ::open(below.c_str(), O_WRONLY);
    const std::string block(256 << 10, 'b');
    for (int i = 0; !stops; ++i) {
      const auto end = static_cast<off_t>((1 << 20) + i % 7 * 100'003);
      EXPECT_EQ(::ftruncate(file, end), 0);
      EXPECT_EQ(::pwrite(file, block.data(), block.size(), i % 3 * 700'001),
                static_cast<ssize_t>(block.size()));
    }
    ::close(file);
  });
  std::string data(kSize, '?');
  for (int i = 0; i < 200; ++i) {
    const int file = ::open((mount.path() / "file").c_str(), O_RDONLY);
    (void)::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    const ssize_t got = ::pread(file, data.data(), data.size(), 0);
    ASSERT_GE(got, 0);
    const std::string_view read(data.data(), static_cast<std::size_t>(got));
    EXPECT_EQ(read.find_first_not_of(std::string_view("ab\0", 3)), std::string_view::npos);
    ::close(file);
  }
  stops = true;
  writer.join();
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

TEST_F(MountData, OfAFileThatChangesBelowIsSeenAtTheNextOpen) {
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
  // Longer, while the kernel knows how long it was.
  write_below("a third one");
  EXPECT_EQ(read_text(mount.path() / "file"), "a third one");
}

// What a file has after a program like `dd oflag=direct` has written it: whole blocks with direct
// I/O, and without it the last block, which is not whole. "": something failed.
std::string written_by_blocks(const std::string& path, std::string_view text) {
  constexpr std::size_t kBlock = 4096;
  const net::Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0600));
  alignas(kBlock) std::array<char, kBlock> block = {};
  std::size_t done = 0;
  while (done < text.size()) {
    const std::string_view part = text.substr(done, kBlock);
    const int flags = part.size() < kBlock ? O_RDWR : O_RDWR | O_DIRECT;
    if (::fcntl(file.get(), F_SETFL, flags) != 0) return "";
    std::ranges::copy(part, block.begin());
    const ssize_t put = ::pwrite(file.get(), block.data(), part.size(), static_cast<off_t>(done));
    if (put != static_cast<ssize_t>(part.size())) return "";
    done += part.size();
  }
  return read_text(path);
}

TEST_F(MountData, OfAFileWhoseDirectIoIsSwitchedOffNeedNoWholeBlocks) {
  const MountProcess mount;
  const std::string text = std::string(8192, 'a') + std::string(1000, 'b');
  if (written_by_blocks(mount.below() / "below", text).empty()) {
    GTEST_SKIP() << "the directory below has no direct I/O";
  }
  const std::string path = mount.path() / "file";
  EXPECT_EQ(written_by_blocks(path, text), text) << std::strerror(errno);
  EXPECT_EQ(read_text(mount.below() / "file"), text);
  // The same goes for reads.
  const net::Descriptor file(::open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
  ASSERT_EQ(::fcntl(file.get(), F_SETFL, O_RDONLY), 0);
  std::array<char, 100> some = {};
  EXPECT_EQ(::pread(file.get(), some.data(), some.size(), 8150), 100) << std::strerror(errno);
  EXPECT_EQ(std::string(some.data(), some.size()), text.substr(8150, 100));
}

// A local file system refuses these, and a program may rely on that.
TEST_F(MountData, OfAFileThatIsOpenForDirectIoAreRefusedAsBelow) {
  const MountProcess mount;
  const auto refusal = [](const std::string& path) {
    const net::Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0600));
    return file && ::pwrite(file.get(), "some", 4, 1) == 4 ? 0 : errno;
  };
  EXPECT_EQ(refusal(mount.path() / "file"), refusal(mount.below() / "below"));
}

// The kernel writes the last of the mapped pages as far as the file goes: less than a block.
TEST_F(MountData, OfAMappedFileThatIsOpenForDirectIoAreWritten) {
  const MountProcess mount;
  const std::string path = mount.path() / "file";
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_DIRECT, 0600);
  if (file < 0 && errno == EINVAL) GTEST_SKIP() << "the directory below has no direct I/O";
  ASSERT_GE(file, 0);
  constexpr std::size_t kSize = 10'000;
  constexpr std::size_t kBlock = 4096;
  ASSERT_EQ(::ftruncate(file, kSize), 0);
  void* const mapped = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  auto* const bytes = static_cast<char*>(mapped);
  std::memset(bytes, 'm', kSize);
  EXPECT_EQ(::msync(bytes, kSize, MS_SYNC), 0);
  // Direct I/O goes on, and both ways show the same.
  alignas(kBlock) std::array<char, kBlock> block = {};
  block.fill('d');
  EXPECT_EQ(::pwrite(file, block.data(), kBlock, kBlock), static_cast<ssize_t>(kBlock));
  std::memset(bytes + 9'999, 'e', 1);
  EXPECT_EQ(::msync(bytes, kSize, MS_SYNC), 0);
  EXPECT_EQ(::munmap(mapped, kSize), 0);
  EXPECT_EQ(::close(file), 0);
  std::ifstream below(mount.below() / "file");
  const std::string found((std::istreambuf_iterator<char>(below)), {});
  EXPECT_EQ(found, std::string(kBlock, 'm') + std::string(kBlock, 'd') +
                       std::string(kSize - 2 * kBlock - 1, 'm') + "e");
}

}  // namespace
}  // namespace vpfs::test
