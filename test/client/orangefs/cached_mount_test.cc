// Sessions that share a cache, beside a client that changes things behind their back.

#include <array>
#include <atomic>
#include <cerrno>
#include <memory>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/system_clock.h"
#include "client/orangefs/file_system.h"
#include "test/client/orangefs/problem.h"
#include "test/support/manual_clock.h"
#include "test/support/run_task.h"
#include "test/support/servers/embedded_servers.h"

namespace vpfs::client {
namespace {

using namespace std::chrono_literals;
using test::drain;
using test::run_task;

std::unique_ptr<FileSystem> mount(asio::io_context& loop, const std::string& address,
                                  const Clock& clock, std::shared_ptr<Caches> caches) {
  SessionOptions options;
  options.caches = std::move(caches);
  const MountAddress parsed = parse_mount_address(address).value();
  auto mounted = run_task(loop, FileSystem::mount(parsed, std::move(options), clock));
  EXPECT_TRUE(mounted);
  return mounted ? std::move(*mounted) : nullptr;
}

constexpr Duration kAttributes = 1s;
constexpr Duration kNames = 2s;

// Two sessions of one mount, and another client without a cache.
class CachedMount : public testing::Test {
 protected:
  void SetUp() override {
    ours_ = mount(loop_, servers_.address(), clock_, caches_);
    ours_too_ = mount(loop_, servers_.address(), clock_, caches_);
    other_ = mount(loop_, servers_.address(), system_clock_, nullptr);
    ASSERT_TRUE(ours_ && ours_too_ && other_);
    root_ = ours_->root();
    directory_ = run_task(loop_, other_->mkdir(root_, "directory", 0755)).value();
    file_ = run_task(loop_, other_->create(directory_, "file", 0644)).value();
  }
  void TearDown() override {
    for (const auto* each : {&ours_, &ours_too_, &other_}) {
      if (*each) (*each)->close();
    }
    drain(loop_);
  }

  int lookup(FileSystem& fs, const std::string& name) {
    return problem(run_task(loop_, fs.lookup(directory_, name)));
  }
  void set_permissions(FileSystem& fs, orangefs::Handle handle, std::uint32_t permissions) {
    AttributeChanges changes;
    changes.permissions = permissions;
    ASSERT_EQ(problem(run_task(loop_, fs.set_attributes(handle, changes))), 0);
  }
  void pass(Duration time) { clock_.set(clock_.now() + time); }
  static FileSystem alice(const std::unique_ptr<FileSystem>& fs) {
    return fs->as(std::make_shared<const Caller>(Caller{.uid = 1001, .gid = 100}));
  }

  asio::io_context loop_;
  SystemClock system_clock_;
  test::ManualClock clock_{system_clock_.now()};
  test::EmbeddedServers servers_{2};
  std::shared_ptr<Caches> caches_ = std::make_shared<Caches>(kAttributes, kNames, 10000);
  std::unique_ptr<FileSystem> ours_, ours_too_, other_;
  orangefs::Handle root_ = 0, directory_ = 0, file_ = 0;
};

TEST_F(CachedMount, ANameThatAnotherClientRemovesIsSeenUntilTheTimeoutAndNoLonger) {
  EXPECT_EQ(lookup(*ours_, "file"), 0);
  ASSERT_EQ(problem(run_task(loop_, other_->remove(directory_, "file"))), 0);
  pass(kNames - 1ns);
  EXPECT_EQ(lookup(*ours_, "file"), 0) << "from the cache";
  EXPECT_EQ(lookup(*ours_too_, "file"), 0) << "which the sessions share";
  EXPECT_EQ(lookup(*other_, "file"), ENOENT);
  pass(1ns);
  EXPECT_EQ(lookup(*ours_, "file"), ENOENT);
}

TEST_F(CachedMount, AMissingNameIsSeenAsSoonAsItExists) {
  EXPECT_EQ(lookup(*ours_, "new"), ENOENT);
  ASSERT_TRUE(run_task(loop_, other_->create(directory_, "new", 0644)));
  EXPECT_EQ(lookup(*ours_, "new"), 0);
}

TEST_F(CachedMount, WhatTheMountItselfChangesIsSeenAtOnce) {
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(lookup(*ours_, "file"), 0);
    ASSERT_EQ(problem(run_task(loop_, ours_too_->remove(directory_, "file"))), 0);
    EXPECT_EQ(lookup(*ours_, "file"), ENOENT);
    const auto made = run_task(loop_, ours_too_->create(directory_, "file", 0644));
    ASSERT_TRUE(made);
    EXPECT_EQ(run_task(loop_, ours_->lookup(directory_, "file")).value_or(0), *made);
  }
  EXPECT_EQ(lookup(*ours_, "file"), 0);
  const auto in_the_way = run_task(loop_, ours_->create(directory_, "b", 0644));
  ASSERT_TRUE(in_the_way);
  EXPECT_EQ(lookup(*ours_, "b"), 0);
  ASSERT_EQ(problem(run_task(loop_, ours_too_->rename(directory_, "file", directory_, "b"))), 0);
  EXPECT_EQ(lookup(*ours_, "file"), ENOENT);
  EXPECT_NE(run_task(loop_, ours_->lookup(directory_, "b")).value_or(0), *in_the_way);
}

TEST_F(CachedMount, AClosedDirectoryHidesItsNamesFromAllCallersAtOnce) {
  FileSystem alice_here = alice(ours_);
  EXPECT_EQ(lookup(alice_here, "file"), 0);
  set_permissions(*ours_too_, directory_, 0700);
  EXPECT_EQ(lookup(alice_here, "file"), EACCES);
  set_permissions(*ours_too_, directory_, 0755);
  EXPECT_EQ(lookup(alice_here, "file"), 0);
  set_permissions(*other_, directory_, 0700);
  EXPECT_EQ(lookup(alice_here, "file"), 0) << "another client's change takes the timeout";
  pass(kNames);
  EXPECT_EQ(lookup(alice_here, "file"), EACCES);
}

TEST_F(CachedMount, ACachedCapabilityThatIsRefusedIsRenewedOnce) {
  FileSystem alice_here = alice(ours_);
  EXPECT_EQ(problem(run_task(loop_, alice_here.create(directory_, "a", 0644))), EACCES);
  set_permissions(*other_, directory_, 0777);
  EXPECT_EQ(problem(run_task(loop_, alice_here.create(directory_, "a", 0644))), 0);
  set_permissions(*other_, directory_, 0755);
  EXPECT_EQ(problem(run_task(loop_, alice_here.create(directory_, "b", 0644))), 0)
      << "the cached capability still serves";
  pass(kAttributes);
  EXPECT_EQ(problem(run_task(loop_, alice_here.create(directory_, "c", 0644))), EACCES);
  EXPECT_EQ(problem(run_task(loop_, alice_here.truncate(file_, 7))), EACCES);
  set_permissions(*other_, file_, 0666);
  EXPECT_EQ(problem(run_task(loop_, alice_here.truncate(file_, 7))), 0);
}

TEST_F(CachedMount, ADirectoryThatIsGoneIsMissing) {
  const auto inner = run_task(loop_, other_->mkdir(directory_, "inner", 0755));
  ASSERT_TRUE(inner);
  EXPECT_EQ(problem(run_task(loop_, ours_->readdir(*inner))), 0);
  ASSERT_EQ(problem(run_task(loop_, other_->remove(directory_, "inner"))), 0);
  EXPECT_EQ(problem(run_task(loop_, ours_->readdir(*inner))), ENOENT);
  EXPECT_EQ(problem(run_task(loop_, ours_->create(*inner, "x", 0644))), ENOENT);
  EXPECT_EQ(problem(run_task(loop_, ours_->lookup(*inner, "x"))), ENOENT);
}

TEST_F(CachedMount, StatAndOpenAskTheServerAndRenewTheCache) {
  EXPECT_EQ(run_task(loop_, ours_->stat(file_))->permissions, 0644U);
  set_permissions(*other_, file_, 0600);
  EXPECT_EQ(run_task(loop_, ours_->stat(file_))->permissions, 0600U);
  set_permissions(*other_, file_, 0640);
  const auto opened = run_task(loop_, ours_->open(file_));
  ASSERT_TRUE(opened);
  EXPECT_EQ((*opened)->status().permissions, 0640U);
  const auto cached = caches_->attributes(file_, *ours_->caller(), clock_.now());
  ASSERT_TRUE(cached);
  EXPECT_EQ(cached->permissions & 07777U, 0640U);
}

TEST_F(CachedMount, ALinksTargetIsKept) {
  const auto link = run_task(loop_, other_->symlink(directory_, "link", "file"));
  ASSERT_TRUE(link);
  EXPECT_EQ(run_task(loop_, ours_->readlink(*link)).value_or(""), "file");
  ASSERT_EQ(problem(run_task(loop_, other_->remove(directory_, "link"))), 0);
  EXPECT_EQ(run_task(loop_, ours_->readlink(*link)).value_or(""), "file");
  pass(kAttributes);
  EXPECT_EQ(problem(run_task(loop_, ours_->readlink(*link))), ENOENT);
}

TEST_F(CachedMount, RemovingGoesByWhatTheNameIsNowNotByTheCache) {
  EXPECT_EQ(lookup(*ours_, "file"), 0);
  ASSERT_EQ(problem(run_task(loop_, other_->remove(directory_, "file"))), 0);
  const auto now = run_task(loop_, other_->mkdir(directory_, "file", 0755));
  ASSERT_TRUE(now);
  EXPECT_EQ(problem(run_task(loop_, ours_->remove(directory_, "file", Removal::not_directory))),
            EISDIR);
  EXPECT_EQ(run_task(loop_, other_->lookup(directory_, "file")).value_or(0), *now);
}

TEST_F(CachedMount, ANameThatTheCacheKnowsIsRemovedForWhatItLeadsToNow) {
  ASSERT_TRUE(run_task(loop_, ours_->stat_name(directory_, "file")));
  ASSERT_EQ(problem(run_task(loop_, other_->remove(directory_, "file"))), 0);
  const auto now = run_task(loop_, other_->mkdir(directory_, "file", 0755));
  ASSERT_TRUE(now);
  const auto inside = run_task(loop_, other_->create(*now, "inside", 0644));
  ASSERT_TRUE(inside);
  EXPECT_EQ(problem(run_task(loop_, ours_->remove(directory_, "file", Removal::not_directory))),
            EISDIR);
  EXPECT_EQ(run_task(loop_, other_->lookup(directory_, "file")).value_or(0), *now);
  EXPECT_EQ(run_task(loop_, other_->lookup(*now, "inside")).value_or(0), *inside);
}

TEST_F(CachedMount, ANameThatTheCacheKnowsAndThatIsGoneIsMissing) {
  ASSERT_TRUE(run_task(loop_, ours_->stat_name(directory_, "file")));
  ASSERT_EQ(problem(run_task(loop_, other_->remove(directory_, "file"))), 0);
  EXPECT_EQ(problem(run_task(loop_, ours_->remove(directory_, "file"))), ENOENT);
}

TEST_F(CachedMount, AFileThatTheMountMakesIsKnownAndItsRemovalSeenAtOnce) {
  const auto made = run_task(loop_, ours_->create_and_open(directory_, "new", 0640));
  ASSERT_TRUE(made);
  EXPECT_EQ((*made)->status().permissions, 0640U);
  EXPECT_EQ(caches_->name(directory_, "new", *ours_->caller(), clock_.now()), (*made)->handle());
  bool told = false;
  Gone gone = [&] {
    told = true;
    EXPECT_FALSE(caches_->name(directory_, "new", *ours_->caller(), clock_.now()));
  };
  ASSERT_EQ(problem(run_task(loop_, ours_->remove(directory_, "new", Removal::any, {}, gone))), 0);
  EXPECT_TRUE(told);
  const orangefs::Handle handle = (*made)->handle();
  EXPECT_EQ(problem(run_task(loop_, other_->stat(handle))), ENOENT);
}

TEST_F(CachedMount, AFileWhoseNameIsTakenIsNotMade) {
  EXPECT_EQ(problem(run_task(loop_, ours_->create_and_open(directory_, "file", 0644))), EEXIST);
  EXPECT_EQ(lookup(*ours_, "file"), 0);
  EXPECT_EQ(run_task(loop_, ours_->lookup(directory_, "file")).value_or(0), file_);
}

// Threads with two sessions each. What one session has changed, the other sees.
TEST(CachedMountOfManyThreads, EachThreadSeesItsOwnChangesThroughAllSessions) {
  const test::EmbeddedServers servers(1);
  const auto caches = std::make_shared<Caches>(60s, 60s, 500);
  std::atomic<int> wrong{0};
  const auto work = [&](int number) {
    asio::io_context loop;
    const SystemClock clock;
    const auto one = mount(loop, servers.address(), clock, caches);
    const auto two = mount(loop, servers.address(), clock, caches);
    if (!one || !two) {
      ++wrong;
      return;
    }
    const orangefs::Handle root = one->root();
    for (int i = 0; i < 60; ++i) {
      const std::string name = fmt::format("t{}-{}", number, i % 3);
      const std::string renamed = name + "-renamed";
      const auto made = run_task(loop, one->create(root, name, 0644));
      const auto seen = run_task(loop, two->lookup(root, name));
      if (!made || seen.value_or(0) != *made) ++wrong;
      if (!run_task(loop, two->rename(root, name, root, renamed))) ++wrong;
      if (problem(run_task(loop, one->lookup(root, name))) != ENOENT) ++wrong;
      if (run_task(loop, one->lookup(root, renamed)).value_or(0) != made.value_or(1)) ++wrong;
      if (!run_task(loop, one->remove(root, renamed))) ++wrong;
      if (problem(run_task(loop, two->lookup(root, renamed))) != ENOENT) ++wrong;
    }
    one->close();
    two->close();
    drain(loop);
  };
  std::array threads = {std::thread(work, 0), std::thread(work, 1), std::thread(work, 2)};
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace vpfs::client
