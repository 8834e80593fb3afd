#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/system_clock.h"
#include "client/orangefs/file_system.h"
#include "client/orangefs/object.h"
#include "test/support/client_checks.h"
#include "test/support/run_task.h"
#include "test/support/servers/embedded_servers.h"

namespace vpfs::client {
namespace {

using test::run_task;

// The client library on embedded servers, with and without striping.
class EndToEnd : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    servers_ = std::make_unique<test::EmbeddedServers>(GetParam());
    const auto address = parse_mount_address(servers_->address());
    ASSERT_TRUE(address);
    auto mounted = run_task(loop_, FileSystem::mount(*address, {.connections = 2}, clock_));
    ASSERT_TRUE(mounted) << mounted.error().message << servers_->errors();
    file_system_ = std::move(*mounted);
  }
  void TearDown() override {
    if (file_system_) file_system_->close();
    test::drain(loop_);
  }

  asio::io_context loop_;
  SystemClock clock_;
  std::unique_ptr<test::EmbeddedServers> servers_;
  std::unique_ptr<FileSystem> file_system_;
};

TEST_P(EndToEnd, Names) {
  test::check_names(loop_, *file_system_);
}
TEST_P(EndToEnd, Attributes) {
  test::check_attributes(loop_, *file_system_);
}
TEST_P(EndToEnd, ExtendedAttributes) {
  test::check_extended_attributes(loop_, *file_system_);
}
TEST_P(EndToEnd, LongDirectory) {
  test::check_long_directory(loop_, *file_system_);
}
TEST_P(EndToEnd, DataReadIsDataWritten) {
  test::check_data(loop_, *file_system_, 1);
  test::check_data(loop_, *file_system_, 2);
}
TEST_P(EndToEnd, HolesAndTruncation) {
  test::check_holes_and_truncation(loop_, *file_system_);
}
TEST_P(EndToEnd, ConcurrentIo) {
  test::check_concurrent_io(loop_, *file_system_);
}

TEST_P(EndToEnd, AFileIsOnTheServersThatWereNamed) {
  const auto last = static_cast<std::size_t>(GetParam() - 1);
  std::vector<std::size_t> wanted = {last};
  if (last > 0) wanted.push_back(0);
  const auto made = run_task(
      loop_, file_system_->create(file_system_->root(), "placed", 0644, /*datafiles=*/1, wanted));
  ASSERT_TRUE(made) << made.error().message;
  const CallerSession session(file_system_->shared_session(), file_system_->caller());
  const auto attributes = run_task(loop_, get_attributes(session, *made));
  ASSERT_TRUE(attributes) << attributes.error().message;
  std::vector<std::size_t> found;
  for (const orangefs::Handle datafile : attributes->datafiles) {
    found.push_back(file_system_->session().server_of(datafile).value());
  }
  EXPECT_EQ(found, wanted);
}

INSTANTIATE_TEST_SUITE_P(Servers, EndToEnd, testing::Values(1, 2, 3));

}  // namespace
}  // namespace vpfs::client
