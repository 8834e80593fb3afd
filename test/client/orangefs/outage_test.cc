// Servers that are away for a while, or for good.

#include <cerrno>
#include <csignal>
#include <memory>
#include <vector>

#include <asio/steady_timer.hpp>
#include <gtest/gtest.h>

#include "base/system_clock.h"
#include "client/orangefs/file_system.h"
#include "test/support/run_task.h"
#include "test/support/servers/embedded_servers.h"

namespace vpfs::client {
namespace {

using namespace std::chrono_literals;
using test::drain;
using test::run_task;

class Outage : public testing::Test {
 protected:
  void TearDown() override {
    if (fs_) fs_->close();
    drain(loop_);
  }
  void mount(Duration retry_for) {
    SessionOptions options;
    options.job_timeout = 200ms;
    options.retry_limit = 0;
    options.retry_for = retry_for;
    mount(options);
  }
  void mount(const SessionOptions& options) {
    const MountAddress address = parse_mount_address(servers_.address()).value();
    auto mounted = run_task(loop_, FileSystem::mount(address, options, clock_));
    ASSERT_TRUE(mounted) << mounted.error().message << servers_.errors();
    fs_ = std::move(*mounted);
  }
  template <typename Action>
  void after(Duration delay, Action action) {
    timer_.expires_after(delay);
    timer_.async_wait([action](std::error_code error) {
      if (!error) action();
    });
  }
  [[nodiscard]] Duration passed() const { return clock_.now() - start_; }
  void start() { start_ = clock_.now(); }

  asio::io_context loop_;
  SystemClock clock_;
  test::EmbeddedServers servers_{1};
  std::unique_ptr<FileSystem> fs_;
  asio::steady_timer timer_{loop_};
  TimePoint start_;
};

TEST_F(Outage, AnOperationOutlivesAServerThatComesBack) {
  ASSERT_NO_FATAL_FAILURE(mount(60s));
  (void)servers_.server(0).kill();
  start();
  after(400ms, [this] { servers_.restart(0); });
  const auto made = run_task(loop_, fs_->mkdir(fs_->root(), "directory", 0755));
  EXPECT_TRUE(made) << made.error().message;
  EXPECT_GE(passed(), 400ms);
  EXPECT_TRUE(run_task(loop_, fs_->lookup(fs_->root(), "directory")));
}

TEST_F(Outage, DataOutliveAServerThatHangsForAWhile) {
  ASSERT_NO_FATAL_FAILURE(mount(60s));
  const auto made = run_task(loop_, fs_->create(fs_->root(), "file", 0644));
  ASSERT_TRUE(made);
  auto file = run_task(loop_, fs_->open(*made));
  ASSERT_TRUE(file);
  servers_.server(0).signal(SIGSTOP);
  start();
  after(700ms, [this] { servers_.server(0).signal(SIGCONT); });
  const std::vector<std::byte> data(100'000, std::byte{5});
  const auto written = run_task(loop_, (*file)->write(0, std::span<const std::byte>(data)));
  EXPECT_TRUE(written) << written.error().message;
  EXPECT_GE(passed(), 700ms);
  std::vector<std::byte> back(data.size());
  EXPECT_EQ(run_task(loop_, (*file)->read(0, back)).value_or(0), data.size());
  EXPECT_TRUE(back == data);
}

TEST_F(Outage, AServerThatNeverComesBackIsGivenUpAfterTheTime) {
  ASSERT_NO_FATAL_FAILURE(mount(500ms));
  const auto made = run_task(loop_, fs_->create(fs_->root(), "file", 0644));
  ASSERT_TRUE(made);
  auto file = run_task(loop_, fs_->open(*made));
  ASSERT_TRUE(file);
  (void)servers_.server(0).kill();
  start();
  const auto lookup = run_task(loop_, fs_->lookup(fs_->root(), "file"));
  ASSERT_FALSE(lookup);
  EXPECT_EQ(errno_of(lookup.error()), EIO);
  EXPECT_GE(passed(), 500ms);
  EXPECT_LT(passed(), 10s);
  start();
  std::vector<std::byte> memory(100);
  const auto read = run_task(loop_, (*file)->read(0, memory));
  ASSERT_FALSE(read);
  EXPECT_EQ(errno_of(read.error()), EIO);
  EXPECT_GE(passed(), 500ms);
  EXPECT_LT(passed(), 10s);
}

TEST_F(Outage, ClosingEndsThePauseBetweenAttempts) {
  SessionOptions options;
  options.retry_limit = 1;
  options.retry_delay = 3600s;
  ASSERT_NO_FATAL_FAILURE(mount(options));
  (void)servers_.server(0).kill();
  start();
  after(100ms, [this] { fs_->close(); });
  const auto lookup = run_task(loop_, fs_->lookup(fs_->root(), "file"));
  ASSERT_FALSE(lookup);
  EXPECT_EQ(errno_of(lookup.error()), EIO);
  EXPECT_LT(passed(), 60s);
}

}  // namespace
}  // namespace vpfs::client
