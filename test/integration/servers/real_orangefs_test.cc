#include <memory>

#include <gtest/gtest.h>

#include "base/system_clock.h"
#include "client/orangefs/file_system.h"
#include "test/support/client_checks.h"
#include "test/support/run_task.h"
#include "test/support/servers/orangefs_servers.h"

namespace vpfs::client {
namespace {

using test::run_task;

// The client library on two of OrangeFS's own servers, with stuffed files and striping.
class RealOrangefs : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (const auto program = test::OrangefsServers::find()) {
      servers = std::make_unique<test::OrangefsServers>(*program);
    }
  }
  static void TearDownTestSuite() { servers.reset(); }

  void SetUp() override {
    if (!servers) GTEST_SKIP() << "no OrangeFS: set VPFS_ORANGEFS_PREFIX, or PATH to pvfs2-server";
    const auto address = parse_mount_address(servers->address());
    ASSERT_TRUE(address);
    // Servers need seconds to start and to fill their pools of handles.
    for (int attempt = 0; attempt < 100 && !file_system_; ++attempt) {
      auto mounted = run_task(loop_, FileSystem::mount(*address, {}, clock_));
      if (mounted && run_task(loop_, (*mounted)->stat((*mounted)->root()))) {
        file_system_ = std::move(*mounted);
      }
    }
    ASSERT_TRUE(file_system_) << servers->errors();
  }
  void TearDown() override {
    if (file_system_) file_system_->close();
    test::drain(loop_);
  }

  static std::unique_ptr<test::OrangefsServers> servers;
  asio::io_context loop_;
  SystemClock clock_;
  std::unique_ptr<FileSystem> file_system_;
};

std::unique_ptr<test::OrangefsServers> RealOrangefs::servers;

TEST_F(RealOrangefs, Names) {
  test::check_names(loop_, *file_system_);
}
TEST_F(RealOrangefs, Attributes) {
  test::check_attributes(loop_, *file_system_);
}
TEST_F(RealOrangefs, ExtendedAttributes) {
  test::check_extended_attributes(loop_, *file_system_);
}
TEST_F(RealOrangefs, LongDirectory) {
  test::check_long_directory(loop_, *file_system_);
}
TEST_F(RealOrangefs, DataReadIsDataWritten) {
  test::check_data(loop_, *file_system_, 1);
  test::check_data(loop_, *file_system_, 2);
}
TEST_F(RealOrangefs, HolesAndTruncation) {
  test::check_holes_and_truncation(loop_, *file_system_);
}
TEST_F(RealOrangefs, ConcurrentIo) {
  test::check_concurrent_io(loop_, *file_system_);
}

}  // namespace
}  // namespace vpfs::client
