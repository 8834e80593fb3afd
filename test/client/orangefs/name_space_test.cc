// What names may be, what remove() and rename() refuse, and how directories are listed.

#include <cerrno>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/system_clock.h"
#include "client/orangefs/file_system.h"
#include "client/orangefs/object.h"
#include "test/client/orangefs/problem.h"
#include "test/support/run_task.h"
#include "test/support/servers/embedded_servers.h"
#include "test/support/servers/fake_orangefs_server.h"

namespace vpfs::client {
namespace {

using test::drain;
using test::FakeOrangefsServer;
using test::run_task;

class NameSpace : public testing::Test {
 protected:
  void SetUp() override {
    const auto address = parse_mount_address(servers_.address());
    ASSERT_TRUE(address);
    auto mounted = run_task(loop_, FileSystem::mount(*address, {}, clock_));
    ASSERT_TRUE(mounted) << mounted.error().message << servers_.errors();
    fs_ = std::move(*mounted);
    root_ = fs_->root();
    file_ = run_task(loop_, fs_->create(root_, "file", 0644)).value();
    directory_ = run_task(loop_, fs_->mkdir(root_, "directory", 0755)).value();
    inner_ = run_task(loop_, fs_->create(directory_, "inner", 0644)).value();
    empty_ = run_task(loop_, fs_->mkdir(root_, "empty", 0755)).value();
    link_ = run_task(loop_, fs_->symlink(root_, "link", "directory")).value();
  }
  void TearDown() override {
    if (fs_) fs_->close();
    drain(loop_);
  }

  int remove(const std::string& name, Removal what) {
    return problem(run_task(loop_, fs_->remove(root_, name, what)));
  }
  int rename(orangefs::Handle from, const std::string& name, orangefs::Handle to,
             const std::string& new_name, Renaming how) {
    return problem(run_task(loop_, fs_->rename(from, name, to, new_name, how)));
  }
  orangefs::Handle found(orangefs::Handle directory, const std::string& name) {
    return run_task(loop_, fs_->lookup(directory, name)).value_or(0);
  }

  asio::io_context loop_;
  SystemClock clock_;
  test::EmbeddedServers servers_{2};
  std::unique_ptr<FileSystem> fs_;
  orangefs::Handle root_ = 0, file_ = 0, directory_ = 0, inner_ = 0, empty_ = 0, link_ = 0;
};

TEST_F(NameSpace, RemovalTakesOnlyWhatItIsFor) {
  EXPECT_EQ(remove("file", Removal::directory), ENOTDIR);
  EXPECT_EQ(remove("link", Removal::directory), ENOTDIR) << "the link, not where it leads";
  EXPECT_EQ(remove("empty", Removal::not_directory), EISDIR);
  EXPECT_EQ(remove("directory", Removal::not_directory), EISDIR);
  EXPECT_EQ(remove("directory", Removal::directory), ENOTEMPTY);
  EXPECT_EQ(remove("nothing", Removal::directory), ENOENT);
  EXPECT_EQ(found(root_, "file"), file_);
  EXPECT_EQ(found(root_, "link"), link_);
  EXPECT_EQ(found(root_, "empty"), empty_);
  EXPECT_EQ(found(root_, "directory"), directory_);
  EXPECT_EQ(found(directory_, "inner"), inner_);
  EXPECT_EQ(remove("file", Removal::not_directory), 0);
  EXPECT_EQ(remove("link", Removal::not_directory), 0);
  EXPECT_EQ(remove("empty", Removal::directory), 0);
  EXPECT_EQ(problem(run_task(loop_, fs_->stat(file_))), ENOENT);
  EXPECT_EQ(problem(run_task(loop_, fs_->stat(empty_))), ENOENT);
}

TEST_F(NameSpace, AnEmptyDirectoryNeedsNoReadPermissionToBeRemoved) {
  FileSystem alice = fs_->as(std::make_shared<const Caller>(Caller{.uid = 1001, .gid = 100}));
  const auto top = run_task(loop_, alice.mkdir(root_, "top", 0700));
  ASSERT_TRUE(top);
  ASSERT_TRUE(run_task(loop_, alice.mkdir(*top, "unreadable", 0300)));
  const auto full = run_task(loop_, alice.mkdir(*top, "full", 0300));
  ASSERT_TRUE(full);
  ASSERT_TRUE(run_task(loop_, alice.create(*full, "file", 0600)));
  EXPECT_EQ(problem(run_task(loop_, alice.remove(*top, "unreadable", Removal::directory))), 0);
  EXPECT_EQ(problem(run_task(loop_, alice.remove(*top, "full", Removal::directory))), ENOTEMPTY);
  EXPECT_EQ(run_task(loop_, alice.lookup(*top, "full")).value_or(0), *full);
}

TEST_F(NameSpace, RenamingKeepsWhatHasTheNewName) {
  for (const char* taken : {"directory", "empty", "link", "file"}) {
    EXPECT_EQ(rename(root_, "file", root_, taken, Renaming::keep), EEXIST) << taken;
  }
  EXPECT_EQ(rename(root_, "nothing", root_, "new", Renaming::keep), ENOENT);
  EXPECT_EQ(found(root_, "file"), file_);
  EXPECT_EQ(found(root_, "empty"), empty_);
  EXPECT_EQ(rename(root_, "file", directory_, "new", Renaming::keep), 0);
  EXPECT_EQ(found(root_, "file"), 0U);
  EXPECT_EQ(found(directory_, "new"), file_);
  EXPECT_EQ(rename(root_, "empty", directory_, "sub", Renaming::keep), 0);
  EXPECT_EQ(found(directory_, "sub"), empty_);
}

TEST_F(NameSpace, ANameMovedToItselfStays) {
  EXPECT_EQ(rename(root_, "file", root_, "file", Renaming::replace), 0);
  EXPECT_EQ(rename(root_, "directory", root_, "directory", Renaming::replace), 0);
  EXPECT_EQ(found(root_, "file"), file_);
  EXPECT_EQ(found(root_, "directory"), directory_);
  EXPECT_EQ(rename(root_, "nothing", root_, "nothing", Renaming::replace), ENOENT);
}

TEST_F(NameSpace, ReplacingChecksWhatIsReplaced) {
  EXPECT_EQ(rename(root_, "file", root_, "empty", Renaming::replace), EISDIR);
  EXPECT_EQ(rename(root_, "empty", root_, "file", Renaming::replace), ENOTDIR);
  EXPECT_EQ(rename(root_, "empty", root_, "directory", Renaming::replace), ENOTEMPTY);
  EXPECT_EQ(found(root_, "empty"), empty_);
  EXPECT_EQ(rename(root_, "directory", root_, "empty", Renaming::replace), 0);
  EXPECT_EQ(found(root_, "empty"), directory_);
  EXPECT_EQ(problem(run_task(loop_, fs_->stat(empty_))), ENOENT);
}

TEST_F(NameSpace, ADirectoryWithEntriesIsNotReplacedEvenIfTheCallerCannotReadIt) {
  FileSystem alice = fs_->as(std::make_shared<const Caller>(Caller{.uid = 1001, .gid = 100}));
  const auto top = run_task(loop_, alice.mkdir(root_, "top", 0700));
  ASSERT_TRUE(top);
  const auto full = run_task(loop_, alice.mkdir(*top, "full", 0300));
  const auto moved = run_task(loop_, alice.mkdir(*top, "moved", 0700));
  const auto unreadable = run_task(loop_, alice.mkdir(*top, "unreadable", 0300));
  ASSERT_TRUE(full && moved && unreadable);
  const auto file = run_task(loop_, alice.create(*full, "file", 0600));
  ASSERT_TRUE(file);
  EXPECT_EQ(problem(run_task(loop_, alice.rename(*top, "moved", *top, "full"))), ENOTEMPTY);
  EXPECT_EQ(run_task(loop_, alice.lookup(*top, "full")).value_or(0), *full);
  EXPECT_EQ(run_task(loop_, alice.lookup(*top, "moved")).value_or(0), *moved);
  EXPECT_EQ(run_task(loop_, alice.lookup(*full, "file")).value_or(0), *file);
  EXPECT_EQ(problem(run_task(loop_, alice.rename(*top, "moved", *top, "unreadable"))), 0);
  EXPECT_EQ(run_task(loop_, alice.lookup(*top, "unreadable")).value_or(0), *moved);
  EXPECT_EQ(problem(run_task(loop_, alice.lookup(*top, "moved"))), ENOENT);
  EXPECT_EQ(problem(run_task(loop_, alice.stat(*unreadable))), ENOENT);
}

// As a client leaves it that dies between the steps of a removal.
TEST_F(NameSpace, ANameWithoutAnObjectCanBeReplacedAndRemoved) {
  const CallerSession session(fs_->shared_session(), fs_->caller());
  const auto parent = run_task(loop_, get_attributes(session, root_));
  ASSERT_TRUE(parent);
  for (const orangefs::Handle object : {file_, empty_, link_}) {
    const orangefs::RemoveRequest body{
        .handle = object, .fs_id = fs_->config().fs_id, .credential = session.credential()};
    ASSERT_TRUE(run_task(loop_, session.ask(object, root_, parent->capability, body)));
  }
  EXPECT_EQ(rename(root_, "directory", root_, "file", Renaming::keep), EEXIST);
  EXPECT_EQ(rename(root_, "directory", root_, "file", Renaming::replace), 0);
  EXPECT_EQ(found(root_, "file"), directory_);
  EXPECT_EQ(remove("empty", Removal::directory), 0);
  EXPECT_EQ(remove("link", Removal::not_directory), 0);
  EXPECT_EQ(found(root_, "empty"), 0U);
}

TEST_F(NameSpace, ADirectoryDoesNotMoveIntoItself) {
  for (const Renaming how : {Renaming::replace, Renaming::keep}) {
    EXPECT_EQ(rename(root_, "directory", directory_, "self", how), EINVAL);
    EXPECT_EQ(rename(root_, "directory", directory_, "inner", how), EINVAL);
  }
  EXPECT_EQ(rename(root_, "empty", file_, "x", Renaming::replace), ENOTDIR);
  EXPECT_EQ(found(root_, "directory"), directory_);
}

TEST_F(NameSpace, BadNamesAreRefused) {
  const std::string too_long(256, 'n');
  const std::string longest(255, 'n');
  EXPECT_EQ(problem(run_task(loop_, fs_->create(root_, too_long, 0644))), ENAMETOOLONG);
  EXPECT_EQ(problem(run_task(loop_, fs_->mkdir(root_, "..", 0755))), EEXIST);
  EXPECT_EQ(problem(run_task(loop_, fs_->symlink(root_, "", "x"))), EINVAL);
  EXPECT_EQ(problem(run_task(loop_, fs_->symlink(root_, "l", std::string(4096, 't')))),
            ENAMETOOLONG);
  EXPECT_EQ(problem(run_task(loop_, fs_->lookup(root_, too_long))), ENAMETOOLONG);
  EXPECT_EQ(problem(run_task(loop_, fs_->lookup(root_, "directory/inner"))), EINVAL);
  EXPECT_EQ(problem(run_task(loop_, fs_->remove(root_, "directory/inner"))), EINVAL);
  EXPECT_EQ(rename(root_, "file", root_, too_long, Renaming::replace), ENAMETOOLONG);
  EXPECT_EQ(rename(root_, "file", root_, ".", Renaming::replace), EINVAL);
  const auto made = run_task(loop_, fs_->create(root_, longest, 0644));
  ASSERT_EQ(problem(made), 0);
  EXPECT_EQ(found(root_, longest), *made);
  const std::string target(4095, 't');
  const auto link = run_task(loop_, fs_->symlink(root_, "l", target));
  ASSERT_EQ(problem(link), 0);
  EXPECT_EQ(run_task(loop_, fs_->readlink(*link)).value_or(""), target);
}

TEST_F(NameSpace, ADirectoryIsListedByPages) {
  std::set<std::string> expected;
  for (int i = 0; i < 1100; ++i) {
    const std::string name = fmt::format("entry-{:04}", i);
    ASSERT_EQ(problem(run_task(loop_, fs_->symlink(empty_, name, "x"))), 0);
    expected.insert(name);
  }
  std::set<std::string> seen;
  std::vector<std::size_t> sizes;
  DirectoryPage page;
  while (!page.end) {
    const auto next = run_task(loop_, fs_->read_directory(empty_, page.next));
    ASSERT_EQ(problem(next), 0);
    page = *next;
    if (!page.entries.empty()) sizes.push_back(page.entries.size());
    for (const DirectoryEntry& entry : page.entries) {
      EXPECT_TRUE(seen.insert(entry.name).second) << entry.name << " came twice";
    }
  }
  EXPECT_EQ(seen, expected);
  EXPECT_EQ(sizes, (std::vector<std::size_t>{512, 512, 76}));
  EXPECT_EQ(run_task(loop_, fs_->readdir(empty_))->size(), 1100U);
  EXPECT_EQ(problem(run_task(loop_, fs_->read_directory(file_))), ENOTDIR);
}

TEST_F(NameSpace, ManyObjectsAreDescribedAtOnce) {
  auto file = run_task(loop_, fs_->open(file_));
  ASSERT_TRUE(file);
  const std::vector<std::byte> data(200'000, std::byte{1});
  ASSERT_TRUE(run_task(loop_, (*file)->write(0, std::span<const std::byte>(data))));
  std::vector<orangefs::Handle> handles = {file_, directory_, link_, 424242};
  for (int i = 0; i < 150; ++i) {
    handles.push_back(
        run_task(loop_, fs_->create(directory_, fmt::format("f{}", i), 0600)).value());
  }
  const auto stats = run_task(loop_, fs_->stat_all(handles));
  ASSERT_EQ(stats.size(), handles.size());
  EXPECT_EQ(problem(stats[3]), ENOENT);
  for (std::size_t i = 0; i < handles.size(); ++i) {
    if (i == 3) continue;
    ASSERT_EQ(problem(stats[i]), 0) << i;
    const Stat alone = run_task(loop_, fs_->stat(handles[i])).value();
    EXPECT_EQ(stats[i]->handle, handles[i]);
    EXPECT_EQ(stats[i]->type, alone.type);
    EXPECT_EQ(stats[i]->size, alone.size);
    EXPECT_EQ(stats[i]->permissions, alone.permissions);
    EXPECT_EQ(stats[i]->mtime, alone.mtime);
    EXPECT_EQ(stats[i]->datafiles, alone.datafiles);
  }
  EXPECT_EQ(stats[0]->size, 200'000U);
  EXPECT_EQ(stats[2]->size, std::string("directory").size());
  EXPECT_TRUE(run_task(loop_, fs_->stat_all({})).empty());
}

TEST_F(NameSpace, ANewEntryShowsInTheTimesOfItsDirectory) {
  AttributeChanges changes;
  changes.mtime = 1'000'000'000;
  ASSERT_TRUE(run_task(loop_, fs_->set_attributes(empty_, changes)));
  EXPECT_EQ(run_task(loop_, fs_->stat(empty_))->mtime, 1'000'000'000U);
  ASSERT_TRUE(run_task(loop_, fs_->create(empty_, "new", 0644)));
  EXPECT_GT(run_task(loop_, fs_->stat(empty_))->mtime, 1'000'000'000U);
  EXPECT_GT(run_task(loop_, fs_->stat_all({empty_}))[0]->mtime, 1'000'000'000U);
}

TEST_F(NameSpace, TheTimeOfAWriteDoesNotReplaceThatOfALaterWrite) {
  const auto after = [&](std::uint64_t mtime, std::uint64_t written_at, std::uint64_t latest) {
    AttributeChanges changes;
    changes.mtime = mtime;
    EXPECT_EQ(problem(run_task(loop_, fs_->set_attributes(file_, changes))), 0);
    EXPECT_EQ(problem(run_task(loop_, fs_->set_time_of_write(file_, written_at, latest))), 0);
    return run_task(loop_, fs_->stat(file_))->mtime;
  };
  EXPECT_EQ(after(1000, 2000, 3000), 2000U);
  EXPECT_EQ(after(2000, 2000, 3000), 2000U);
  EXPECT_EQ(after(2500, 2000, 3000), 2500U) << "another client's";
  EXPECT_EQ(after(9000, 2000, 3000), 2000U) << "a user has set it";
}

// A directory over three dirdata objects: the first has two short pages, the second is empty.
TEST(DistributedListing, AllPlacesAreListedWhateverTheServersPagesAre) {
  asio::io_context loop;
  const SystemClock clock;
  FakeOrangefsServer server(loop);
  int readdirs = 0;
  server.on_request([&](FakeOrangefsServer::Peer& peer,
                        const FakeOrangefsServer::Incoming& incoming) {
    if (const auto* ask = std::get_if<orangefs::ReaddirRequest>(&incoming.request.body)) {
      ++readdirs;
      orangefs::ReaddirResponse page;
      page.token = 0x7ffffffd;
      if (ask->handle == 201 && ask->token == 0x7ffffffe) {
        page.entries = {{.name = "a", .handle = 1}, {.name = "b", .handle = 2}};
        page.token = 77;
      } else if (ask->handle == 201 && ask->token == 77) {
        page.entries = {{.name = "c", .handle = 3}};
      } else if (ask->handle == 203) {
        page.entries = {{.name = "d", .handle = 4}};
      }
      return peer.answer(incoming.tag, {.status = 0, .body = page});
    }
    orangefs::Attributes directory;
    directory.mask = orangefs::kAttrCommonAll | orangefs::kAttrDistDir | orangefs::kAttrCapability;
    directory.type = orangefs::ObjectType::directory;
    directory.distributed.tree_height = 2;
    directory.distributed.bitmap = {7};
    directory.distributed.dirdata_handles = {201, 202, 203};
    peer.answer(incoming.tag, {.status = 0,
                               .body = orangefs::AttributesResponse{.op = orangefs::Op::getattr,
                                                                    .attributes = directory}});
  });
  const MountAddress address{.scheme = "tcp",
                             .host_port = fmt::format("127.0.0.1:{}", server.endpoint().port()),
                             .file_system = "fake"};
  auto mounted = run_task(loop, FileSystem::mount(address, {}, clock));
  ASSERT_TRUE(mounted);
  std::string names;
  DirectoryPage page;
  int pages = 0;
  while (!page.end) {
    const auto next = run_task(loop, (*mounted)->read_directory(100, page.next));
    ASSERT_EQ(problem(next), 0);
    page = *next;
    ++pages;
    for (const DirectoryEntry& entry : page.entries) names += entry.name;
  }
  EXPECT_EQ(names, "abcd");
  EXPECT_EQ(pages, 4);
  EXPECT_EQ(readdirs, 4) << "one READDIR for each";
  EXPECT_EQ(run_task(loop, (*mounted)->readdir(100))->size(), 4U);
  const auto past = run_task(loop, (*mounted)->read_directory(100, {.place = 3}));
  ASSERT_EQ(problem(past), 0);
  EXPECT_TRUE(past->end && past->entries.empty());
  (*mounted)->close();
  drain(loop);
}

}  // namespace
}  // namespace vpfs::client
