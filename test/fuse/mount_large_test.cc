// A directory of very many entries and a file beyond 4 GiB on a mounted OrangeFS, embedded or real.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/fuse/orangefs_site.h"
#include "test/support/places.h"

namespace vpfs::test {
namespace {

using MountOrangefsLarge = OrangefsMountTest;
INSTANTIATE_TEST_SUITE_P(Mount, MountOrangefsLarge,
                         ::testing::Values(Servers::embedded, Servers::real), name_of_servers);

// VPFS_ENTRIES, or as many as are made in a few seconds.
std::size_t entries(Servers servers) {
  if (const char* const wanted = std::getenv("VPFS_ENTRIES"); wanted != nullptr) {
    return std::strtoull(wanted, nullptr, 10);
  }
  return servers == Servers::real || programs_have_sanitizer() ? 2000 : 20'000;
}

// Empty files with their number as name and a mode that follows from it.
mode_t mode_of(std::size_t number) {
  constexpr std::array<mode_t, 7> kModes = {0400, 0444, 0600, 0640, 0644, 0700, 0755};
  return kModes[number % kModes.size()];
}

void make_files(const std::string& directory, std::size_t count) {
  constexpr std::size_t kThreads = 16;
  std::vector<std::thread> threads;
  for (std::size_t first = 0; first < kThreads; ++first) {
    threads.emplace_back([&, first] {
      for (std::size_t i = first; i < count; i += kThreads) {
        ASSERT_EQ(::mknod((directory + "/" + std::to_string(i)).c_str(), S_IFREG | mode_of(i), 0),
                  0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// The entries of a directory, and each place where the listing can be gone on with.
struct Listing {
  std::vector<std::string> names;
  std::vector<long> places;
};

Listing list(DIR* directory) {
  Listing listing;
  for (const dirent* each = ::readdir(directory); each != nullptr; each = ::readdir(directory)) {
    listing.names.emplace_back(each->d_name);
    listing.places.push_back(::telldir(directory));
  }
  return listing;
}

// Expects every number once, beside "." and "..".
void expect_each_once(const std::vector<std::string>& names, std::size_t count) {
  std::vector<int> seen(count);
  std::size_t others = 0;
  for (const std::string& name : names) {
    if (name.starts_with(".")) {
      ++others;
      continue;
    }
    const std::size_t number = std::stoull(name);
    ASSERT_LT(number, count);
    ++seen[number];
  }
  EXPECT_EQ(others, 2U);
  EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(seen, 1)), count);
}

// As "ls -l" does. The kernel asks for attributes with the names then.
void expect_attributes(const std::filesystem::path& path, std::size_t count) {
  DIR* const directory = ::opendir(path.c_str());
  ASSERT_NE(directory, nullptr);
  std::vector<std::string> names;
  for (const dirent* each = ::readdir(directory); each != nullptr; each = ::readdir(directory)) {
    names.emplace_back(each->d_name);
    struct stat status = {};
    ASSERT_EQ(::fstatat(::dirfd(directory), each->d_name, &status, AT_SYMLINK_NOFOLLOW), 0);
    if (each->d_name[0] == '.') continue;
    ASSERT_EQ(status.st_mode, S_IFREG | mode_of(std::stoull(each->d_name))) << each->d_name;
    ASSERT_EQ(status.st_ino, each->d_ino) << each->d_name;
    ASSERT_EQ(status.st_size, 0);
  }
  ::closedir(directory);
  expect_each_once(names, count);
}

TEST_P(MountOrangefsLarge, ADirectoryOfVeryManyEntriesIsListedWhole) {
  const std::size_t count = entries(GetParam());
  const MountProcess mount(settings());
  const std::string path = mount.path() / "many";
  ASSERT_EQ(::mkdir(path.c_str(), 0755), 0);
  make_files(path, count);
  const MountProcess other(settings());
  DIR* const directory = ::opendir((other.path() / "many").c_str());
  ASSERT_NE(directory, nullptr);
  const Listing all = list(directory);
  expect_each_once(all.names, count);
  // From the middle, backwards and forwards.
  for (const std::size_t from : {count / 2, count / 7, count * 6 / 7, std::size_t{0}}) {
    ::seekdir(directory, all.places[from]);
    const Listing rest = list(directory);
    ASSERT_EQ(rest.names.size(), all.names.size() - from - 1);
    EXPECT_TRUE(std::equal(rest.names.begin(), rest.names.end(),
                           all.names.end() - static_cast<std::ptrdiff_t>(rest.names.size())));
  }
  ::rewinddir(directory);
  expect_each_once(list(directory).names, count);
  ::closedir(directory);
  const MountProcess third(settings());
  expect_attributes(third.path() / "many", count);
}

// What others remove meanwhile is there or not, but all else is listed once.
TEST_P(MountOrangefsLarge, AListingThatOthersChangeHasTheRestOnce) {
  constexpr std::size_t kCount = 2000;
  const MountProcess mount(settings());
  const std::string path = mount.path() / "many";
  ASSERT_EQ(::mkdir(path.c_str(), 0755), 0);
  make_files(path, kCount);
  const MountProcess other(settings());
  DIR* const directory = ::opendir((other.path() / "many").c_str());
  ASSERT_NE(directory, nullptr);
  std::vector<int> seen(kCount);
  std::size_t read = 0;
  for (const dirent* each = ::readdir(directory); each != nullptr; each = ::readdir(directory)) {
    if (each->d_name[0] != '.') ++seen.at(std::stoull(each->d_name));
    if (++read != 100) continue;
    for (std::size_t i = 0; i < kCount; i += 4) {
      ASSERT_EQ(::unlink((path + "/" + std::to_string(i)).c_str()), 0);
    }
  }
  ::closedir(directory);
  for (std::size_t i = 0; i < kCount; ++i) {
    if (i % 4 == 0) EXPECT_LE(seen[i], 1) << i;
    if (i % 4 != 0) EXPECT_EQ(seen[i], 1) << i;
  }
}

TEST_P(MountOrangefsLarge, AFileIsRightOnBothSidesOfTwoAndFourGiB) {
  const MountProcess mount(settings());
  const std::string path = mount.path() / "file";
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT, 0644);
  ASSERT_GE(file, 0);
  constexpr std::size_t kBlock = 1 << 20;
  constexpr off_t kGiB = off_t{1} << 30;
  std::vector<off_t> places;
  for (const off_t border : {2 * kGiB, 4 * kGiB}) {
    for (int i = -8; i < 8; ++i) places.push_back(border + i * static_cast<off_t>(kBlock));
  }
  const auto content = [](off_t at) {
    std::vector<std::uint64_t> block(kBlock / sizeof(std::uint64_t));
    for (std::size_t i = 0; i < block.size(); ++i) {
      block[i] = static_cast<std::uint64_t>(at) + i * 0x9E3779B97F4A7C15U;
    }
    return block;
  };
  for (const off_t at : places) {
    ASSERT_EQ(::pwrite(file, content(at).data(), kBlock, at), static_cast<ssize_t>(kBlock));
  }
  // Across the border too, at no multiple of anything.
  constexpr off_t kOdd = 4 * kGiB - 1234;
  const std::string odd(3333, 'o');
  ASSERT_EQ(::pwrite(file, odd.data(), odd.size(), kOdd), static_cast<ssize_t>(odd.size()));
  ASSERT_EQ(::close(file), 0);

  const MountProcess other(settings());
  const int again = ::open((other.path() / "file").c_str(), O_RDONLY);
  ASSERT_GE(again, 0);
  struct stat status = {};
  ASSERT_EQ(::fstat(again, &status), 0);
  EXPECT_EQ(status.st_size, places.back() + static_cast<off_t>(kBlock));
  std::vector<char> whole(8 * kBlock);
  for (const off_t at : {off_t{0}, kGiB, 2 * kGiB - 16 * off_t{kBlock}, 3 * kGiB}) {
    ASSERT_EQ(::pread(again, whole.data(), kBlock, at), static_cast<ssize_t>(kBlock));
    EXPECT_EQ(std::count(whole.begin(), whole.begin() + kBlock, '\0'), kBlock) << at;
  }
  for (const off_t at : places) {
    std::vector<std::uint64_t> expected = content(at);
    auto* const bytes = reinterpret_cast<char*>(expected.data());
    for (off_t i = 0; i < static_cast<off_t>(odd.size()); ++i) {
      const off_t within = kOdd + i - at;
      if (within >= 0 && within < static_cast<off_t>(kBlock)) bytes[within] = 'o';
    }
    std::vector<std::uint64_t> block(expected.size());
    ASSERT_EQ(::pread(again, block.data(), kBlock, at), static_cast<ssize_t>(kBlock));
    EXPECT_EQ(block, expected) << "at " << at;
  }
  std::vector<char> across(odd.size());
  ASSERT_EQ(::pread(again, across.data(), across.size(), kOdd),
            static_cast<ssize_t>(across.size()));
  EXPECT_EQ(std::string(across.data(), across.size()), odd);
  ASSERT_EQ(::close(again), 0);
  // Cut back below 4 GiB, and grown again: the old data are gone.
  ASSERT_EQ(::truncate(path.c_str(), 3 * kGiB), 0);
  ASSERT_EQ(::truncate(path.c_str(), 5 * kGiB), 0);
  const int cut = ::open((other.path() / "file").c_str(), O_RDONLY);
  ASSERT_EQ(::pread(cut, whole.data(), whole.size(), 4 * kGiB - 4 * off_t{kBlock}),
            static_cast<ssize_t>(whole.size()));
  EXPECT_EQ(std::ranges::count(whole, '\0'), static_cast<std::ptrdiff_t>(whole.size()));
  ::close(cut);
}

TEST_P(MountOrangefsLarge, ATimeBelowASecondIsTheSecond) {
  const MountProcess mount(settings());
  const std::string path = mount.path() / "file";
  ASSERT_EQ(::mknod(path.c_str(), S_IFREG | 0644, 0), 0);
  const std::array<timespec, 2> times = {timespec{.tv_sec = 1'000'000, .tv_nsec = 999'999'999},
                                         timespec{.tv_sec = 2'000'000, .tv_nsec = 1}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times.data(), 0), 0);
  const MountProcess other(settings());
  for (const std::string& seen : {path, (other.path() / "file").string()}) {
    struct stat status = {};
    ASSERT_EQ(::stat(seen.c_str(), &status), 0);
    EXPECT_EQ(status.st_atim.tv_sec, 1'000'000);
    EXPECT_EQ(status.st_atim.tv_nsec, 0);
    EXPECT_EQ(status.st_mtim.tv_sec, 2'000'000);
    EXPECT_EQ(status.st_mtim.tv_nsec, 0);
    EXPECT_EQ(status.st_ctim.tv_nsec, 0);
  }
}

TEST_P(MountOrangefsLarge, ADirectoryHasTheTimeThatItWasSetTo) {
  const MountProcess mount(settings());
  const std::string path = mount.path() / "directory";
  ASSERT_EQ(::mkdir(path.c_str(), 0755), 0);
  make_files(path, 10);
  const std::array<timespec, 2> times = {timespec{.tv_sec = 1'000'000, .tv_nsec = 0},
                                         timespec{.tv_sec = 2'000'000, .tv_nsec = 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times.data(), 0), 0);
  const MountProcess other(settings());
  struct stat status = {};
  ASSERT_EQ(::stat((other.path() / "directory").c_str(), &status), 0);
  EXPECT_EQ(status.st_mtim.tv_sec, 2'000'000);
}

}  // namespace
}  // namespace vpfs::test
