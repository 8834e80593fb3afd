#include "fuse/posix/files/file_system.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "base/system_clock.h"
#include "test/support/odd_files.h"
#include "test/support/process.h"

namespace vpfs::fuse {
namespace {

TEST(PosixFileSystem, ADirectoryThatItsUserMayNotEnterIsAnError) {
  const test::TemporaryDirectory directory;
  const std::string secret = directory.path() / "secret";
  std::filesystem::create_directory(secret);
  std::filesystem::permissions(directory.path(), std::filesystem::perms(0755));
  std::filesystem::permissions(secret, std::filesystem::perms::none);
  const SystemClock clock;
  ProcessJobs jobs({}, clock);
  const test::AsNobody nobody;
  const auto opened = PosixFileSystem::open({.source = secret}, jobs, clock);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().message, secret + ": Permission denied");
}

}  // namespace
}  // namespace vpfs::fuse
