#include "control/host/status_file.h"

#include <csignal>
#include <filesystem>
#include <optional>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/support/odd_files.h"
#include "test/support/process.h"

namespace vpfs::control {
namespace {

constexpr ProgramName kName = {.program = "vpfs-test", .role = "program"};

TEST(StatusLock, OneStatusFileHasOneHolderWhichIsNamed) {
  const test::TemporaryDirectory directory;
  const std::string file = (directory.path() / "status.json").string();
  std::optional<StatusLock> first = std::move(StatusLock::take(file, kName).value());
  const auto second = StatusLock::take(file, kName);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().message,
            fmt::format("{} belongs to another vpfs-test (pid {}): each needs its own", file,
                        ::getpid()));
  EXPECT_TRUE(StatusLock::take((directory.path() / "other.json").string(), kName));
  first.reset();
  EXPECT_TRUE(StatusLock::take(file, kName)) << "free when its holder is gone";
}

// With the right to read it, another user could hold it, and nothing would start again.
TEST(StatusLock, OnlyItsUserMayOpenIt) {
  const test::TemporaryDirectory directory;
  const std::string file = (directory.path() / "status.json").string();
  const std::string left = directory.write("status.json.lock", "1\n");
  std::filesystem::permissions(left, std::filesystem::perms(0644));  // a release before
  const StatusLock lock = std::move(StatusLock::take(file, kName).value());
  EXPECT_EQ(std::filesystem::status(left).permissions(), std::filesystem::perms(0600));
  const std::string other = (directory.path() / "other.json").string();
  const StatusLock made = std::move(StatusLock::take(other, kName).value());
  EXPECT_EQ(std::filesystem::status(other + ".lock").permissions(), std::filesystem::perms(0600));
}

// It names the jobs and users of others, and may be in a folder that all enter.
TEST(StatusFile, IsForItsOwnerAndGroupAlone) {
  const test::TemporaryDirectory directory;
  const std::string file = (directory.path() / "status.json").string();
  const mode_t before = ::umask(0);
  const Result<void> written = write_status_file(file, "{}\n");
  ::umask(before);
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(std::filesystem::status(file).permissions(), std::filesystem::perms(0640));
}

TEST(StatusLock, ItIsKnownByWhateverName) {
  const test::TemporaryDirectory directory;
  const std::string file = (directory.path() / "status.json").string();
  const StatusLock lock = std::move(StatusLock::take(file, kName).value());
  EXPECT_TRUE(lock.is_of(file));
  EXPECT_TRUE(lock.is_of((directory.path() / "." / "status.json").string()));
  EXPECT_FALSE(lock.is_of((directory.path() / "other.json").string()));
  EXPECT_FALSE(StatusLock().is_of(file));
}

TEST(StatusLock, AFolderThatIsNotThereIsAnError) {
  const auto lock = StatusLock::take("/nowhere/status.json", kName);
  ASSERT_FALSE(lock);
  EXPECT_EQ(lock.error().message,
            "/nowhere/status.json.lock: cannot be opened: No such file or directory");
}

TEST(StatusLock, WhatIsNotARegularFileIsNamedAndDoesNotWait) {
  const test::TemporaryDirectory directory;
  const std::string file = (directory.path() / "status.json").string();
  for (const test::OddFile kind : test::kOddFiles) {
    const std::string what = " is " + std::string(name_of(kind)) + ", not a regular file";
    put_odd_file(kind, file);
    const auto lock = StatusLock::take(file, kName);
    ASSERT_FALSE(lock);
    EXPECT_EQ(lock.error().message, file + ":" + what + ": the status cannot replace it");
    const auto written = write_status_file(file, "{}");
    ASSERT_FALSE(written) << "nothing takes the place of a device";
    EXPECT_EQ(written.error().message, "status file " + lock.error().message);
    std::filesystem::remove(file);

    put_odd_file(kind, file + ".lock");
    const auto no_lock = StatusLock::take(file, kName);
    ASSERT_FALSE(no_lock);
    EXPECT_EQ(no_lock.error().message, file + ".lock:" + what);
    std::filesystem::remove(file + ".lock");

    put_odd_file(kind, file + ".new");
    const auto not_written = write_status_file(file, "{}");
    ASSERT_FALSE(not_written);
    EXPECT_EQ(not_written.error().message,
              "status file " + file + ": cannot be written: " + file + ".new:" + what);
    std::filesystem::remove(file + ".new");
  }
  EXPECT_TRUE(write_status_file(file, "{}"));
  EXPECT_EQ(test::read_text(file), "{}");
}

TEST(StatusFile, OneThatTheDiskHasNoRoomForLeavesTheOneBefore) {
  const test::TemporaryDirectory directory;
  const std::string file = (directory.path() / "status.json").string();
  ASSERT_TRUE(write_status_file(file, "{}"));
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before = {};
  ::getrlimit(RLIMIT_FSIZE, &before);
  rlimit full = before;
  full.rlim_cur = 10;
  ::setrlimit(RLIMIT_FSIZE, &full);
  const auto written = write_status_file(file, std::string(100, 'x'));
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().message, "status file " + file + ": cannot be written: File too large");
  EXPECT_EQ(test::read_text(file), "{}");
}

}  // namespace
}  // namespace vpfs::control
