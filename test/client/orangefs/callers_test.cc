// One session, several callers: credentials, permissions, groups of new objects, jobs.

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/system_clock.h"
#include "client/orangefs/file_system.h"
#include "protocols/orangefs/errors.h"
#include "test/client/orangefs/problem.h"
#include "test/support/run_task.h"
#include "test/support/servers/embedded_servers.h"
#include "test/support/servers/fake_orangefs_server.h"

namespace vpfs::client {
namespace {

using test::drain;
using test::FakeOrangefsServer;
using test::run_task;
using Incoming = FakeOrangefsServer::Incoming;
using Peer = FakeOrangefsServer::Peer;
using Memory = std::vector<std::byte>;

CallerPtr user(std::uint32_t uid, std::uint32_t gid, std::vector<std::uint32_t> groups = {}) {
  return std::make_shared<const Caller>(
      Caller{.uid = uid, .gid = gid, .groups = std::move(groups), .jobid = {}});
}

class Callers : public testing::Test {
 protected:
  void SetUp() override {
    const auto address = parse_mount_address(servers_.address());
    ASSERT_TRUE(address);
    auto mounted = run_task(loop_, FileSystem::mount(*address, {}, clock_));
    ASSERT_TRUE(mounted) << mounted.error().message << servers_.errors();
    root_view_ = std::move(*mounted);
    root_ = root_view_->root();
  }
  void TearDown() override {
    if (root_view_) root_view_->close();
    drain(loop_);
  }

  asio::io_context loop_;
  SystemClock clock_;
  test::EmbeddedServers servers_{2};
  std::unique_ptr<FileSystem> root_view_;
  orangefs::Handle root_ = 0;
};

TEST_F(Callers, WhatOneMayDoAnotherMayNot) {
  FileSystem alice = root_view_->as(user(1001, 100));
  FileSystem bob = root_view_->as(user(1002, 100));
  const auto directory = run_task(loop_, alice.mkdir(root_, "alices", 0700));
  ASSERT_EQ(problem(directory), 0);
  const auto file = run_task(loop_, alice.create(*directory, "file", 0600));
  ASSERT_EQ(problem(file), 0);
  const auto stat = run_task(loop_, bob.stat(*file));
  ASSERT_EQ(problem(stat), 0);
  EXPECT_EQ(stat->uid, 1001U);
  EXPECT_EQ(stat->gid, 100U);

  EXPECT_EQ(problem(run_task(loop_, bob.lookup(*directory, "file"))), EACCES);
  EXPECT_EQ(problem(run_task(loop_, bob.create(*directory, "other", 0600))), EACCES);
  EXPECT_EQ(problem(run_task(loop_, bob.mkdir(*directory, "other", 0700))), EACCES);
  EXPECT_EQ(problem(run_task(loop_, bob.symlink(*directory, "other", "x"))), EACCES);
  EXPECT_EQ(problem(run_task(loop_, bob.readdir(*directory))), EACCES);
  EXPECT_EQ(problem(run_task(loop_, bob.remove(*directory, "file"))), EACCES);
  EXPECT_EQ(problem(run_task(loop_, bob.truncate(*file, 5))), EACCES);
  AttributeChanges changes;
  changes.permissions = 0666;
  EXPECT_EQ(problem(run_task(loop_, bob.set_attributes(*file, changes))), EACCES);

  auto bobs = run_task(loop_, bob.open(*file));
  ASSERT_EQ(problem(bobs), 0) << "as in OrangeFS, the I/O is refused, not the open";
  Memory memory(100, std::byte{1});
  EXPECT_EQ(problem(run_task(loop_, (*bobs)->read(0, memory))), EACCES);
  EXPECT_EQ(problem(run_task(loop_, (*bobs)->write(0, std::span<const std::byte>(memory)))),
            EACCES);
  auto alices = run_task(loop_, alice.open(*file));
  ASSERT_EQ(problem(alices), 0);
  EXPECT_EQ(problem(run_task(loop_, (*alices)->write(0, std::span<const std::byte>(memory)))), 0);
  EXPECT_EQ((*alices)->status().uid, 1001U);
  EXPECT_EQ((*alices)->status().permissions, 0600U);
  EXPECT_EQ(problem(run_task(loop_, alice.remove(*directory, "file"))), 0);
}

TEST_F(Callers, ARenameThatIsRefusedLeavesTheNamesAsTheyWere) {
  FileSystem alice = root_view_->as(user(1001, 100));
  FileSystem bob = root_view_->as(user(1002, 100));
  const auto shared = run_task(loop_, alice.mkdir(root_, "shared", 0755));
  const auto own = run_task(loop_, bob.mkdir(root_, "own", 0755));
  ASSERT_TRUE(shared && own);
  const auto file = run_task(loop_, alice.create(*shared, "file", 0644));
  const auto in_the_way = run_task(loop_, bob.create(*own, "old", 0644));
  ASSERT_TRUE(file && in_the_way);
  for (const Renaming how : {Renaming::replace, Renaming::keep}) {
    EXPECT_EQ(problem(run_task(loop_, bob.rename(*shared, "file", *own, "new", how))), EACCES);
    EXPECT_EQ(problem(run_task(loop_, bob.lookup(*own, "new"))), ENOENT);
  }
  EXPECT_EQ(problem(run_task(loop_, bob.rename(*shared, "file", *own, "old"))), EACCES);
  EXPECT_EQ(run_task(loop_, bob.lookup(*own, "old")).value_or(0), *in_the_way);
  EXPECT_EQ(problem(run_task(loop_, bob.stat(*in_the_way))), 0);
  EXPECT_EQ(run_task(loop_, bob.lookup(*shared, "file")).value_or(0), *file);

  const auto directory = run_task(loop_, alice.mkdir(*shared, "directory", 0755));
  const auto empty = run_task(loop_, bob.mkdir(*own, "empty", 0755));
  ASSERT_TRUE(directory && empty);
  EXPECT_EQ(problem(run_task(loop_, bob.rename(*shared, "directory", *own, "empty"))), EACCES);
  EXPECT_EQ(run_task(loop_, bob.lookup(*own, "empty")).value_or(0), *empty);
  EXPECT_EQ(problem(run_task(loop_, bob.stat(*empty))), 0);
  EXPECT_EQ(run_task(loop_, bob.lookup(*shared, "directory")).value_or(0), *directory);
}

TEST_F(Callers, SupplementaryGroupsCount) {
  FileSystem alice = root_view_->as(user(1001, 100));
  const auto directory = run_task(loop_, alice.mkdir(root_, "group", 0770));
  ASSERT_EQ(problem(directory), 0);
  FileSystem stranger = root_view_->as(user(1002, 200, {300, 301}));
  FileSystem member = root_view_->as(user(1002, 200, {300, 100}));
  EXPECT_EQ(problem(run_task(loop_, stranger.create(*directory, "file", 0600))), EACCES);
  EXPECT_EQ(problem(run_task(loop_, member.create(*directory, "file", 0600))), 0);
}

TEST_F(Callers, TheCredentialHasTheGroupFirstAndAtMost32InAll) {
  std::vector<std::uint32_t> many = {100};
  for (std::uint32_t group = 500; group < 540; ++group) many.push_back(group);
  const auto credential = root_view_->session().credential(*user(1, 100, many));
  EXPECT_EQ(credential.uid, 1U);
  ASSERT_EQ(credential.groups.size(), 32U);
  EXPECT_EQ(credential.groups[0], 100U);
  EXPECT_EQ(credential.groups[1], 500U);
  EXPECT_EQ(credential.groups[31], 530U);
  const auto few = root_view_->session().credential(*user(1, 7, {8, 7, 9}));
  EXPECT_EQ(few.groups, (std::vector<std::uint32_t>{7, 8, 9}));
}

TEST_F(Callers, NewObjectsFollowTheSetGroupIdBit) {
  FileSystem alice = root_view_->as(user(1001, 100, {300}));
  const auto plain = run_task(loop_, alice.mkdir(root_, "plain", 0777));
  const auto shared = run_task(loop_, root_view_->mkdir(root_, "shared", 0777));
  ASSERT_TRUE(plain && shared);
  AttributeChanges changes;
  changes.permissions = 02777;
  changes.gid = 300;
  ASSERT_EQ(problem(run_task(loop_, root_view_->set_attributes(*shared, changes))), 0);
  const auto stat_of = [&](const Result<orangefs::Handle>& made) {
    return run_task(loop_, alice.stat(made.value())).value();
  };
  EXPECT_EQ(stat_of(run_task(loop_, alice.create(*plain, "file", 0644))).gid, 100U);
  EXPECT_EQ(stat_of(run_task(loop_, alice.create(*shared, "file", 0644))).gid, 300U);
  EXPECT_EQ(stat_of(run_task(loop_, alice.symlink(*shared, "link", "x"))).gid, 300U);
  const auto inner = run_task(loop_, alice.mkdir(*shared, "inner", 0750));
  const Stat stat = stat_of(inner);
  EXPECT_EQ(stat.gid, 300U);
  EXPECT_EQ(stat.permissions, 02750U);
  EXPECT_EQ(stat_of(run_task(loop_, alice.mkdir(*plain, "inner", 0750))).permissions, 0750U);
  EXPECT_EQ(stat_of(run_task(loop_, alice.create(*inner, "deep", 0644))).gid, 300U);

  FileSystem stranger = root_view_->as(user(1002, 200));
  EXPECT_EQ(stat_of(run_task(loop_, alice.create(*shared, "tool", 02755))).permissions, 02755U);
  EXPECT_EQ(stat_of(run_task(loop_, stranger.create(*shared, "trap", 02755))).permissions, 0755U);
}

TEST_F(Callers, TheSessionLastsAsLongAsAViewOrAnOpenFile) {
  const std::weak_ptr<Session> session = root_view_->shared_session();
  const auto made = run_task(loop_, root_view_->create(root_, "file", 0644));
  ASSERT_TRUE(made);
  auto view = std::make_unique<FileSystem>(root_view_->as(user(0, 0)));
  root_view_.reset();
  auto file = run_task(loop_, view->open(*made));
  ASSERT_EQ(problem(file), 0);
  view.reset();
  EXPECT_FALSE(session.expired());
  const Memory memory(70000, std::byte{1});
  EXPECT_EQ(problem(run_task(loop_, (*file)->write(0, std::span<const std::byte>(memory)))), 0);
  EXPECT_EQ(run_task(loop_, (*file)->size()).value_or(0), 70000U);
  EXPECT_EQ((*file)->status().size, 70000U);
  file->reset();
  EXPECT_TRUE(session.expired());
  drain(loop_);
}

// What requests say of their caller, as a server sees it.
TEST(CallersOnTheWire, EachViewAndEachOpenFileShowsItsOwnCallerAndJob) {
  asio::io_context loop;
  const SystemClock clock;
  FakeOrangefsServer server(loop);
  std::vector<orangefs::Request> requests;
  server.on_request([&](Peer& peer, const Incoming& incoming) {
    requests.push_back(incoming.request);
    if (std::holds_alternative<orangefs::GetattrRequest>(incoming.request.body)) {
      orangefs::Attributes file;
      file.mask = orangefs::kAttrCommonAll | orangefs::kAttrMetaDistribution |
                  orangefs::kAttrMetaDatafiles | orangefs::kAttrMetaUnstuffed |
                  orangefs::kAttrCapability;
      file.type = orangefs::ObjectType::metafile;
      file.datafiles = {1000};
      return peer.answer(incoming.tag, {.status = 0,
                                        .body = orangefs::AttributesResponse{
                                            .op = orangefs::Op::getattr, .attributes = file}});
    }
    const orangefs::Op op = orangefs::op_of(incoming.request.body);
    if (op != orangefs::Op::flush) {
      return peer.fail(incoming.tag, op, orangefs::status_from_errno(ENOSPC));
    }
    peer.answer(incoming.tag, {.status = 0, .body = orangefs::EmptyResponse{.op = op}});
  });
  const MountAddress address{.scheme = "tcp",
                             .host_port = fmt::format("127.0.0.1:{}", server.endpoint().port()),
                             .file_system = "fake"};
  auto mounted = run_task(loop, FileSystem::mount(address, {}, clock));
  ASSERT_TRUE(mounted);
  const auto caller = [](std::uint32_t uid, std::string jobid) {
    return std::make_shared<const Caller>(
        Caller{.uid = uid, .gid = 10, .groups = {20}, .jobid = std::move(jobid)});
  };
  // The jobs of all requests since the last call.
  const auto jobs_seen = [&] {
    std::vector<std::string> seen;
    for (const orangefs::Request& request : std::exchange(requests, {})) {
      std::string job = "none";
      for (const orangefs::Hint& hint : request.hints) {
        if (hint.key == "jobid") job = hint.text;
      }
      seen.push_back(job);
      if (const auto* body = std::get_if<orangefs::GetattrRequest>(&request.body)) {
        seen.back() += fmt::format(" uid {} groups {}", body->credential.uid,
                                   fmt::join(body->credential.groups, ","));
      }
    }
    return seen;
  };
  using Seen = std::vector<std::string>;
  FileSystem one = (*mounted)->as(caller(1, "one"));
  FileSystem two = (*mounted)->as(caller(2, "two"));
  auto file = run_task(loop, one.open(50));
  ASSERT_TRUE(file);
  EXPECT_EQ(jobs_seen(), Seen{"one uid 1 groups 10,20"});
  (void)run_task(loop, two.flush(50));
  EXPECT_EQ(jobs_seen(), (Seen{"two uid 2 groups 10,20", "two", "two"}));
  (void)run_task(loop, (*mounted)->flush(50));
  EXPECT_EQ(jobs_seen(), (Seen{"none uid 0 groups 0", "none", "none"}));
  std::vector<std::byte> memory(100);
  (void)run_task(loop, (*file)->read(0, memory));
  (void)run_task(loop, (*file)->flush());
  EXPECT_EQ(jobs_seen(), (Seen{"one", "one", "one"})) << "the opener's";
  (void)run_task(loop, two.stat_all({50}));
  const Seen stats = jobs_seen();
  EXPECT_EQ(stats.at(0), "two");
  (*mounted)->close();
  drain(loop);
}

}  // namespace
}  // namespace vpfs::client
