#include "proxy/status_lock.h"

#include <filesystem>
#include <optional>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "test/support/process.h"

namespace vpfs::proxy {
namespace {

TEST(StatusLock, OneStatusFileHasOneHolderWhichIsNamed) {
  const test::TemporaryDirectory directory;
  const std::string file = (directory.path() / "status.json").string();
  std::optional<StatusLock> first = std::move(StatusLock::take(file).value());
  const auto second = StatusLock::take(file);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().message,
            fmt::format("{} belongs to another vpfs-proxy (pid {}): each needs its own", file,
                        ::getpid()));
  EXPECT_TRUE(StatusLock::take((directory.path() / "other.json").string()));
  first.reset();
  EXPECT_TRUE(StatusLock::take(file)) << "free when its holder is gone";
}

TEST(StatusLock, ItIsKnownByWhateverName) {
  const test::TemporaryDirectory directory;
  const std::string file = (directory.path() / "status.json").string();
  const StatusLock lock = std::move(StatusLock::take(file).value());
  EXPECT_TRUE(lock.is_of(file));
  EXPECT_TRUE(lock.is_of((directory.path() / "." / "status.json").string()));
  EXPECT_FALSE(lock.is_of((directory.path() / "other.json").string()));
  EXPECT_FALSE(StatusLock().is_of(file));
}

TEST(StatusLock, AFolderThatIsNotThereIsAnError) {
  const auto lock = StatusLock::take("/nowhere/status.json");
  ASSERT_FALSE(lock);
  EXPECT_EQ(lock.error().message,
            "/nowhere/status.json.lock: cannot be opened: No such file or directory");
}

}  // namespace
}  // namespace vpfs::proxy
