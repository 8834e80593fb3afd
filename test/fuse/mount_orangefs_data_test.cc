// File data on a mounted OrangeFS, embedded or real: whatever is done, every byte is what a model
// says, and what one mount has closed the other opens.
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/fuse/file_checker.h"
#include "test/fuse/orangefs_site.h"
#include "test/support/comes_true.h"

namespace vpfs::test {
namespace {

using MountOrangefsData = OrangefsMountTest;
INSTANTIATE_TEST_SUITE_P(Mount, MountOrangefsData,
                         ::testing::Values(Servers::embedded, Servers::real), name_of_servers);

void write_text(const std::filesystem::path& path, const std::string& text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT, 0644);
  ASSERT_GE(file, 0) << std::strerror(errno);
  ASSERT_EQ(::write(file, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  ASSERT_EQ(::close(file), 0);
}

TEST_P(MountOrangefsData, IsWhatAModelSaysWhateverIsDoneToAFile) {
  const MountProcess mount(settings());
  const MountProcess other(settings());
  FileChecker checker(
      {.path = mount.path() / "file", .elsewhere = other.path() / "file", .has_holes = false}, 1);
  checker.run(checker_operations(1500));
}

TEST_P(MountOrangefsData, IsWhatAModelSaysOfSeveralFilesAtOnce) {
  const MountProcess mount(settings({"allow_other", "workers=3", "connections=2"}));
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < 3; ++i) {
    threads.emplace_back([&mount, i] {
      const auto path = mount.path() / ("file" + std::to_string(i));
      FileChecker checker({.path = path, .elsewhere = path, .has_holes = false}, 2 + i);
      checker.run(checker_operations(1500) / 5);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// A small file is in one datafile at first. What is read before the hole must not end there for a
// worker that opened the file when it was small.
TEST_P(MountOrangefsData, AHoleThatComesLaterIsReadByEveryWorker) {
  const MountProcess mount(settings({"allow_other", "workers=4"}));
  const std::string path = mount.path() / "file";
  write_text(path, std::string(100, 'x'));
  const int file = ::open(path.c_str(), O_RDWR | O_DIRECT);
  ASSERT_GE(file, 0) << std::strerror(errno);
  constexpr std::size_t kSize = 4096;
  const auto read_by_all = [&](ssize_t wanted) {
    std::atomic<int> others = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        alignas(kSize) std::array<char, kSize> data = {};
        for (int k = 0; k < 8; ++k) {
          data.fill('?');
          const bool right = ::pread(file, data.data(), kSize, 0) == wanted &&
                             std::count(data.begin(), data.end(), 'x') == 100 &&
                             std::count(data.begin(), data.end(), '\0') == wanted - 100;
          others += right ? 0 : 1;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return others.load();
  };
  EXPECT_EQ(read_by_all(100), 0);
  alignas(kSize) std::array<char, kSize> far = {};
  constexpr off_t kFar = 17 * (64 << 10);  // in another datafile, of two or three
  ASSERT_EQ(::pwrite(file, far.data(), kSize, kFar), static_cast<ssize_t>(kSize));
  EXPECT_EQ(read_by_all(kSize), 0);
  ::close(file);
}

TEST_P(MountOrangefsData, ThatOneMountHasClosedTheOtherOpens) {
  const MountProcess mount(settings());
  const MountProcess other(settings());
  const auto here = mount.path() / "file";
  const auto there = other.path() / "file";
  write_text(here, "first");
  EXPECT_EQ(read_text(there), "first");
  // The other knows its size and its page by now.
  write_text(here, "second, which is longer");
  EXPECT_EQ(read_text(there), "second, which is longer");
  write_text(there, "third!, as long as the first");
  EXPECT_EQ(read_text(here), "third!, as long as the first");
  ASSERT_EQ(::truncate(here.c_str(), 5), 0);
  EXPECT_EQ(read_text(there), "third");
}

TEST_P(MountOrangefsData, OfAFileThatAnotherMountHasReplacedAreTheNewOnes) {
  const MountProcess mount(settings());
  const MountProcess other(settings());
  write_text(mount.path() / "file", "old");
  for (int i = 0; i < 5; ++i) {
    // The other knows the name now, and for a second more.
    ASSERT_FALSE(read_text(other.path() / "file").empty());
    const std::string text = "new " + std::to_string(i);
    write_text(mount.path() / "next", text);
    std::filesystem::rename(mount.path() / "next", mount.path() / "file");
    EXPECT_EQ(read_text(other.path() / "file"), text);
  }
  std::filesystem::remove(mount.path() / "file");
  EXPECT_EQ(::open((other.path() / "file").c_str(), O_RDONLY), -1);
  EXPECT_EQ(errno, ENOENT);
}

TEST_P(MountOrangefsData, OfAFileThatIsReplacedAllTheTimeAreWhole) {
  const MountProcess mount(settings());
  const MountProcess other(settings());
  const std::string whole(100, 'x');
  write_text(mount.path() / "file", whole);
  const pid_t replacer = ::fork();
  if (replacer == 0) {
    for (int i = 0; i < 100; ++i) {
      write_text(mount.path() / "next", whole);
      std::filesystem::rename(mount.path() / "next", mount.path() / "file");
    }
    ::_exit(0);
  }
  int read = 0;
  for (int status = 0; ::waitpid(replacer, &status, WNOHANG) == 0;) {
    const int file = ::open((other.path() / "file").c_str(), O_RDONLY);
    std::array<char, 200> text = {};
    const ssize_t size = file < 0 ? -1 : ::read(file, text.data(), text.size());
    // A node that has it open may lose it, and is told so.
    if (size < 0) EXPECT_EQ(errno, ESTALE);
    if (size >= 0) EXPECT_EQ(size, 100);
    read += size == 100 ? 1 : 0;
    if (file >= 0) ::close(file);
  }
  EXPECT_GT(read, 10);
}

TEST_P(MountOrangefsData, OfWritersToPartsOfOneFileAreAllThere) {
  const MountProcess one(settings());
  const MountProcess two(settings());
  constexpr std::size_t kPart = 47'008;  // as in a well-known benchmark: no page, no strip
  constexpr std::size_t kParts = 120;
  const auto write_parts = [&](const MountProcess& mount, std::size_t writer) {
    const int file = ::open((mount.path() / "file").c_str(), O_WRONLY | O_CREAT, 0644);
    ASSERT_GE(file, 0);
    for (std::size_t part = writer; part < kParts; part += 4) {
      const std::vector<char> data(kPart, static_cast<char>('a' + part % 26));
      ASSERT_EQ(::pwrite(file, data.data(), kPart, static_cast<off_t>(part * kPart)),
                static_cast<ssize_t>(kPart));
    }
    ASSERT_EQ(::close(file), 0);
  };
  std::vector<std::thread> threads;
  for (std::size_t writer = 0; writer < 4; ++writer) {
    threads.emplace_back([&, writer] { write_parts(writer % 2 == 0 ? one : two, writer); });
  }
  for (std::thread& thread : threads) thread.join();
  const MountProcess reader(settings());
  const std::string text = read_text(reader.path() / "file");
  ASSERT_EQ(text.size(), kPart * kParts);
  for (std::size_t part = 0; part < kParts; ++part) {
    const auto begin = text.begin() + static_cast<std::ptrdiff_t>(part * kPart);
    EXPECT_EQ(std::count(begin, begin + kPart, static_cast<char>('a' + part % 26)),
              static_cast<std::ptrdiff_t>(kPart))
        << "part " << part;
  }
}

TEST_P(MountOrangefsData, OfAppendersOfOneMountNothingIsLost) {
  const MountProcess mount(settings());
  constexpr int kLines = 100;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
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
  const std::string text = read_text(mount.path() / "log");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(std::ranges::count(text, static_cast<char>('a' + i)), 64 * kLines);
  }
}

// The kernel appends where it thinks that the file ends.
TEST_P(MountOrangefsData, AnAppendFollowsWhatAnotherMountHasClosed) {
  const MountProcess mount(settings({"allow_other", "attr_timeout=60"}));
  const MountProcess other(settings());
  const auto append = [](const std::filesystem::path& path, const std::string& text) {
    const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT, 0644);
    ASSERT_GE(file, 0) << std::strerror(errno);
    ASSERT_EQ(::write(file, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ASSERT_EQ(::close(file), 0);
  };
  std::string all;
  for (int line = 0; line < 5; ++line) {
    for (const MountProcess* each : {&mount, &other}) {
      const std::string text(10, static_cast<char>('a' + all.size() / 10));
      append(each->path() / "log", text);
      all += text;
    }
  }
  EXPECT_EQ(read_text(mount.path() / "log"), all);
  EXPECT_EQ(read_text(other.path() / "log"), all);
}

// Pages that were read before a write ended must not outlive it, although servers count the time of
// writes in seconds.
TEST_P(MountOrangefsData, EachWriteShowsInTheTimeOfAFileThatIsBeingWritten) {
  const MountProcess mount(settings());
  const auto path = mount.path() / "file";
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT, 0644);
  ASSERT_GE(file, 0);
  timespec before = {};
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(::pwrite(file, "text", 4, 0), 4);
    struct stat status = {};
    ASSERT_EQ(::fstat(file, &status), 0);
    EXPECT_TRUE(status.st_mtim.tv_sec != before.tv_sec || status.st_mtim.tv_nsec != before.tv_nsec);
    before = status.st_mtim;
  }
  ASSERT_EQ(::close(file), 0);
  EXPECT_TRUE(comes_true([&] {
    struct stat closed = {};
    return ::stat(path.c_str(), &closed) == 0 && closed.st_mtim.tv_nsec == 0;
  })) << "the servers know the second";
}

TEST_P(MountOrangefsData, FarBehindAHoleIsFound) {
  const MountProcess mount(settings());
  const auto path = mount.path() / "file";
  constexpr off_t kFar = (off_t{5} << 30) + 12'345;
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT, 0644);
  ASSERT_EQ(::pwrite(file, "far", 3, kFar), 3);
  ASSERT_EQ(::close(file), 0);
  const MountProcess other(settings());
  const int again = ::open((other.path() / "file").c_str(), O_RDONLY);
  struct stat status = {};
  ASSERT_EQ(::fstat(again, &status), 0);
  EXPECT_EQ(status.st_size, kFar + 3);
  std::vector<char> data(200'000, 'x');
  ASSERT_EQ(::pread(again, data.data(), data.size(), kFar - 100'000), 100'003);
  EXPECT_EQ(std::count(data.begin(), data.begin() + 100'000, '\0'), 100'000);
  EXPECT_EQ(std::string(data.data() + 100'000, 3), "far");
  ::close(again);
}

// The kernel closes files of the old program while it locks what /proc shows of the process.
TEST_P(MountOrangefsData, AreClosedByAProcessThatBecomesAnotherProgram) {
  const MountProcess mount(settings());
  const auto path = mount.path() / "file";
  const pid_t child = ::fork();
  if (child == 0) {
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    // Longer than a mount believes what it knows of a process.
    const timespec while_it_forgets = {.tv_sec = 0, .tv_nsec = 300'000'000};
    if (::write(file, "text", 4) == 4) ::nanosleep(&while_it_forgets, nullptr);
    ::execl("/bin/true", "true", nullptr);
    ::_exit(1);
  }
  int status = -1;
  EXPECT_TRUE(comes_true([&] { return ::waitpid(child, &status, WNOHANG) == child; })) << "hangs";
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(read_text(path), "text");
}

TEST_P(MountOrangefsData, CanBeMappedAndRun) {
  const MountProcess mount(settings());
  const auto path = mount.path() / "program";
  std::filesystem::copy_file("/bin/true", path);
  ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
  Process program({path});
  const auto exit = program.wait();
  EXPECT_TRUE(exit && exit->ok());
}

}  // namespace
}  // namespace vpfs::test
