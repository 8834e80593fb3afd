#include "control/host/status_file.h"

#include <filesystem>
#include <optional>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

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

}  // namespace
}  // namespace vpfs::control
