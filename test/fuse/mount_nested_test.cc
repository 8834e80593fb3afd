// A mount within the directory that is mounted, whose program does not answer.
#include <cerrno>
#include <chrono>
#include <csignal>
#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/fuse/call_of.h"
#include "test/fuse/mount_process.h"
#include "test/fuse/users.h"

namespace vpfs::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// After it, names and attributes that the kernel keeps are old.
constexpr auto kKept = 1100ms;

// The directory below has a mount in it, with a file.
class MountNested : public MountTest {
 protected:
  void SetUp() override {
    MountTest::SetUp();
    if (IsSkipped()) return;
    inner_.emplace(
        MountProcess::Settings{.options = {"allow_other", "attr_timeout=0s", "entry_timeout=0s"}});
    fs::permissions(inner_->scratch(), fs::perms::all);
    fs::permissions(inner_->below(), fs::perms::all);
    const int file = ::open((inner_->below() / "file").c_str(), O_CREAT | O_CLOEXEC, 0644);
    ASSERT_GE(file, 0);
    ::close(file);
    outer_.emplace(MountProcess::Settings{.below = inner_->scratch()});
    fs::permissions(outer_->scratch(), fs::perms::all);
  }
  void TearDown() override {
    if (!inner_) return;
    go_on();
    calls_.clear();
    outer_.reset();
  }

  [[nodiscard]] fs::path directory() const { return outer_->path(); }
  [[nodiscard]] fs::path nested() const { return outer_->path() / "mount"; }
  void stop() { ::kill(inner_->process().pid(), SIGSTOP); }
  void go_on() { ::kill(inner_->process().pid(), SIGCONT); }
  // A call that goes into the nested mount, and has begun.
  CallOf& enter(uid_t uid) {
    const std::string name = nested() / "file";
    calls_.emplace_back(uid, [name] { return ::access(name.c_str(), R_OK) == 0 ? 0 : errno; });
    std::this_thread::sleep_for(300ms);
    return calls_.back();
  }
  // What the user's call returns; nothing if it waits.
  std::optional<int> try_as(uid_t uid, const std::function<int()>& act) {
    return calls_.emplace_back(uid, act).result(5s);
  }
  // Everything but entering the nested mount.
  void expect_directory_works_for(uid_t uid) {
    const std::string all = directory();
    EXPECT_EQ(try_as(uid,
                     [all] {
                       DIR* const stream = ::opendir(all.c_str());
                       if (stream == nullptr) return errno;
                       bool has_mount = false;
                       while (const dirent* const each = ::readdir(stream)) {
                         if (std::string(each->d_name) == "mount") has_mount = true;
                       }
                       return has_mount ? 0 : ENOENT;
                     }),
              0)
        << "a listing";
    const std::string name = directory() / ("new-" + std::to_string(made_++));
    EXPECT_EQ(try_as(uid, [name] { return ::access(name.c_str(), F_OK) == 0 ? 0 : errno; }), ENOENT)
        << "a name that is not there";
    EXPECT_EQ(
        try_as(uid,
               [name] { return ::open(name.c_str(), O_CREAT | O_RDWR, 0644) >= 0 ? 0 : errno; }),
        0)
        << "a new file";
    EXPECT_EQ(try_as(uid, [name] { return ::unlink(name.c_str()) == 0 ? 0 : errno; }), 0);
  }

  std::optional<MountProcess> inner_;
  std::optional<MountProcess> outer_;
  std::deque<CallOf> calls_;
  int made_ = 0;
};

TEST_F(MountNested, ThatHangsHoldsUpOnlyProcessesThatEnterIt) {
  ASSERT_EQ(enter(kAlice).result(5s), 0);
  stop();
  std::this_thread::sleep_for(kKept);
  CallOf& inside = enter(kMallory);
  expect_directory_works_for(kAlice);
  std::this_thread::sleep_for(kKept);
  expect_directory_works_for(kAlice);
  EXPECT_EQ(inside.result(0ms), std::nullopt) << "it waits";
  go_on();
  EXPECT_EQ(inside.result(5s), 0);
  EXPECT_EQ(enter(kAlice).result(5s), 0);
}

// Nothing of it is known when it is seen for the first time.
TEST_F(MountNested, ThatHangsBeforeItIsSeenHoldsUpNoOtherProcess) {
  stop();
  expect_directory_works_for(kAlice);
  CallOf& inside = enter(kMallory);
  expect_directory_works_for(kAlice);
  EXPECT_EQ(inside.result(0ms), std::nullopt) << "it waits";
  go_on();
  EXPECT_EQ(inside.result(5s), 0);
}

// What is known of it for a look-up may be old, so a program that asks gets what it has now.
TEST_F(MountNested, ShowsItsOwnAttributes) {
  struct stat before = {};
  ASSERT_EQ(::stat(nested().c_str(), &before), 0);
  for (const auto mode : {fs::perms::owner_all, fs::perms::all}) {
    fs::permissions(inner_->below(), mode);
    std::this_thread::sleep_for(kKept);
    struct stat now = {};
    ASSERT_EQ(::stat(nested().c_str(), &now), 0);
    EXPECT_EQ(now.st_mode & 07777, static_cast<mode_t>(mode));
    EXPECT_EQ(now.st_ino, before.st_ino);
  }
}

}  // namespace
}  // namespace vpfs::test
