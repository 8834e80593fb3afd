// How a mount begins and ends.
#include <csignal>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include "test/fuse/mount_process.h"
#include "test/support/comes_true.h"
#include "test/support/places.h"

namespace vpfs::test {
namespace {

using ::testing::HasSubstr;

// What the program says on its way out, and its exit code in front.
std::string words_of(const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {program("vpfs-mount")};
  command.insert(command.end(), arguments.begin(), arguments.end());
  Process process(command);
  const auto exit = process.wait();
  return std::to_string(exit ? exit->code : -1) + ": " + process.output() + process.errors();
}

TEST(MountCommand, MistakesGetOneClearLine) {
  const TemporaryDirectory scratch;
  const std::string here = scratch.path();
  EXPECT_THAT(words_of({"posix:" + here}), HasSubstr("DIRECTORY is required"));
  EXPECT_THAT(words_of({"/data", here}),
              HasSubstr("2: vpfs-mount: '/data' is not a source: it must be posix:DIRECTORY"));
  EXPECT_THAT(words_of({"posix:" + here, here, "-o", "alow_other"}),
              HasSubstr("2: vpfs-mount: -o alow_other: unknown; did you mean 'allow_other'?"));
  const std::string config = scratch.write("m.yaml", "scheduler: {policy: sqf}");
  EXPECT_THAT(words_of({"posix:" + here, here, "-o", "config=" + config}),
              HasSubstr("m.yaml:1: scheduler.policy:"));
  EXPECT_THAT(words_of({"posix:" + here, here, "-o", "config=/nowhere/m.yaml"}),
              HasSubstr("/nowhere/m.yaml"));
}

TEST(MountCommand, SaysWhatAConfigurationWillDo) {
  const TemporaryDirectory scratch;
  const std::string words =
      words_of({"posix:" + scratch.path().string(), scratch.path(), "--check-config"});
  EXPECT_THAT(words, HasSubstr("0: "));
  EXPECT_THAT(words, HasSubstr("policy sfq"));
  EXPECT_THAT(words, HasSubstr("job-{jobid}"));
}

using Mount = MountTest;

TEST_F(Mount, OfADirectoryThatIsNotThereIsRefused) {
  const TemporaryDirectory scratch;
  const std::string here = scratch.path();
  EXPECT_THAT(words_of({"posix:" + here + "/none", here, "-f"}),
              HasSubstr("1: vpfs-mount: " + here + "/none: No such file or directory"));
  EXPECT_THAT(words_of({"posix:" + here, here + "/none", "-f"}),
              HasSubstr("cannot mount at " + here + "/none: No such file or directory"));
  const std::string file = scratch.write("file", "x");
  EXPECT_THAT(words_of({"posix:" + here, file, "-f"}),
              HasSubstr("cannot mount at " + file + ": it is not a directory"));
}

TEST_F(Mount, IsGoneWhenItsProgramEnds) {
  MountProcess mount;
  EXPECT_TRUE(mount.is_mounted());
  std::ofstream(mount.path() / "file") << "text";
  mount.stop();
  EXPECT_FALSE(std::filesystem::exists(mount.path() / "file"));
  EXPECT_EQ(read_text(mount.below() / "file"), "text");
}

TEST_F(Mount, IsGoneWhenItsProgramIsKilled) {
  MountProcess mount;
  std::ofstream(mount.path() / "file") << "text";
  mount.kill();
  EXPECT_TRUE(comes_true([&] { return !mount.is_mounted(); }));
  mount.start();
  EXPECT_EQ(read_text(mount.path() / "file"), "text");
}

// As a supervisor does that restarts it.
TEST_F(Mount, IsMountedAgainAtOnceWhenItsProgramHasDied) {
  MountProcess mount;
  std::ofstream(mount.path() / "file") << "text";
  for (int i = 0; i < 5; ++i) {
    mount.kill();
    mount.start();
    EXPECT_EQ(read_text(mount.path() / "file"), "text");
  }
}

TEST_F(Mount, ThatOutlivesItsProgramIsNamedByTheNextOne) {
  MountProcess mount({.options = {"allow_other,noauto_unmount"}});
  mount.kill();
  ASSERT_TRUE(mount.is_mounted());
  EXPECT_THAT(words_of({"posix:" + mount.below().string(), mount.path(), "-f"}),
              HasSubstr("another mount is there whose program has died"));
  Process unmount({"fusermount3", "-u", mount.path()});
  const auto exit = unmount.wait();
  EXPECT_TRUE(exit && exit->ok()) << unmount.errors();
}

TEST_F(Mount, EndsItsProgramWhenItIsUnmounted) {
  MountProcess mount;
  Process unmount({"fusermount3", "-u", mount.path()});
  const auto unmounted = unmount.wait();
  ASSERT_TRUE(unmounted && unmounted->ok()) << unmount.errors();
  const auto exit = mount.process().wait();
  EXPECT_TRUE(exit && exit->ok()) << mount.process().errors();
}

TEST_F(Mount, LetsOpenFilesEndBeforeItEnds) {
  MountProcess mount;
  const int file = ::open((mount.path() / "file").c_str(), O_RDWR | O_CREAT, 0644);
  ASSERT_GE(file, 0);
  mount.process().signal(SIGTERM);
  ASSERT_TRUE(comes_true([&] { return !mount.is_mounted(); }));
  EXPECT_EQ(::write(file, "late", 4), 4) << "the name is gone, the file is not";
  EXPECT_TRUE(mount.process().running());
  EXPECT_EQ(::close(file), 0);
  const auto exit = mount.process().wait();
  EXPECT_TRUE(exit && exit->ok()) << mount.process().errors();
  EXPECT_EQ(read_text(mount.below() / "file"), "late");
}

TEST_F(Mount, WaitsForOpenFilesNoLongerThanItIsTold) {
  MountProcess mount({.config = "mount: {drain: 2s}"});
  const int file = ::open((mount.path() / "file").c_str(), O_RDWR | O_CREAT, 0644);
  ASSERT_GE(file, 0);
  mount.process().signal(SIGTERM);
  const auto exit = mount.process().wait();
  EXPECT_TRUE(exit && exit->ok());
  EXPECT_THAT(mount.process().errors(), HasSubstr("files were open for longer than mount.drain"));
  EXPECT_EQ(::write(file, "late", 4), -1);
  EXPECT_EQ(errno, ENOTCONN);
  ::close(file);
}

TEST_F(Mount, MayBeOverTheDirectoryItself) {
  const TemporaryDirectory scratch;
  const std::string path = scratch.path() / "data, and more";
  std::filesystem::create_directories(path);
  std::ofstream(std::filesystem::path(path) / "before") << "below";
  Process mounted({program("vpfs-mount"), "posix:" + path, path});
  const auto exit = mounted.wait();
  ASSERT_TRUE(exit && exit->ok()) << mounted.errors();
  EXPECT_EQ(read_text(path + "/before"), "below");
  std::ofstream(std::filesystem::path(path) / "after") << "text";
  Process unmount({"fusermount3", "-u", path});
  const auto unmounted = unmount.wait();
  ASSERT_TRUE(unmounted && unmounted->ok()) << unmount.errors();
  EXPECT_EQ(read_text(path + "/after"), "text");
}

TEST_F(Mount, GoesToTheBackgroundWhenItIsThere) {
  const TemporaryDirectory scratch;
  const std::string below = scratch.path() / "below";
  const std::string path = scratch.path() / "mount";
  std::filesystem::create_directories(below);
  std::filesystem::create_directories(path);
  EXPECT_THAT(words_of({"posix:" + below, path}), HasSubstr("0: vpfs-mount: ready at " + path));
  std::ofstream(std::filesystem::path(path) / "file") << "text";
  EXPECT_EQ(read_text(below + "/file"), "text");
  Process unmount({"fusermount3", "-u", path});
  const auto exit = unmount.wait();
  EXPECT_TRUE(exit && exit->ok()) << unmount.errors();
}

TEST_F(Mount, IsMadeByMountToo) {
  const TemporaryDirectory scratch;
  const std::string below = scratch.path() / "below";
  const std::string path = scratch.path() / "mount";
  std::filesystem::create_directories(below);
  std::filesystem::create_directories(path);
  const std::string helper = scratch.path() / "mount.vpfs";
  std::filesystem::create_symlink(program("vpfs-mount"), helper);
  // As mount(8) calls it for a line of fstab.
  Process pretended({helper, "posix:" + below, path, "-f", "-o", "rw,noauto,allow_other,_netdev"});
  const auto nothing = pretended.wait();
  EXPECT_TRUE(nothing && nothing->ok()) << pretended.errors();
  Process mounted({helper, "posix:" + below, path, "-n", "-o", "rw,noauto,allow_other,_netdev"});
  const auto exit = mounted.wait();
  ASSERT_TRUE(exit && exit->ok()) << mounted.errors();
  std::ofstream(std::filesystem::path(path) / "file") << "text";
  EXPECT_EQ(read_text(below + "/file"), "text");
  Process unmount({"umount", path});
  const auto unmounted = unmount.wait();
  EXPECT_TRUE(unmounted && unmounted->ok()) << unmount.errors();
}

}  // namespace
}  // namespace vpfs::test
