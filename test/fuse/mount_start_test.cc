// How users and administrators start a mount, of a directory or an OrangeFS: as an ordinary user,
// by mount(8), as a service, with a coordinator, and by mistake.
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <unistd.h>

#include "test/fuse/mount_site.h"
#include "test/support/comes_true.h"
#include "test/support/outcome.h"
#include "test/support/places.h"

namespace vpfs::test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

Outcome outcome_in(const std::string& directory, std::vector<std::string> command) {
  command.insert(command.begin(), {"env", "-C", directory});
  return outcome_of(std::move(command));
}

Outcome vpfs_mount(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), program("vpfs-mount"));
  return outcome_of(std::move(arguments));
}

bool is_mounted(const fs::path& path) {
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    if (line.find(" " + path.string() + " ") != std::string::npos) return true;
  }
  return false;
}

// Runs a script in a mount namespace of its own, which takes everything that it mounts with it.
// Names in braces are filled in.
Outcome run_apart(const TemporaryDirectory& scratch, std::string script) {
  const std::vector<std::pair<std::string, std::string>> names = {
      {"{scratch}", scratch.path()}, {"{vpfs-mount}", program("vpfs-mount")}};
  for (const auto& [name, value] : names) {
    for (std::size_t at = script.find(name); at != std::string::npos; at = script.find(name)) {
      script.replace(at, name.size(), value);
    }
  }
  return outcome_of({"unshare", "--mount", "--propagation", "private", "sh", "-euc", script});
}

using MountStart = EveryMountTest;
INSTANTIATE_TEST_SUITE_P(Mount, MountStart,
                         ::testing::Values(Backend::directory, Backend::embedded, Backend::real),
                         name_of_backend);

// /dev/fuse may be for root alone. The namespace has one for all, which is a file of the test.
constexpr const char* kDeviceForAll = R"(
mknod {scratch}/fuse c 10 229 && chmod 666 {scratch}/fuse || exit 77
mount --bind {scratch}/fuse /dev/fuse || exit 77
as_user() { setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all "$@"; }
as_user true || exit 77
as_user sh -c ': < /dev/fuse' || exit 77
as_user test -x {vpfs-mount} || exit 77
)";

std::set<std::string> sockets_of(const std::string& process) {
  std::set<std::string> all;
  std::error_code error;
  for (const auto& each : fs::directory_iterator("/proc/" + process + "/fd", error)) {
    const std::string target = fs::read_symlink(each.path(), error);
    if (target.starts_with("socket:")) all.insert(target);
  }
  return all;
}

// fusermount3 stays with the mount, and would keep connections open that the program has closed.
TEST_P(MountStart, ItsHelperInheritsNoSocketOfTheProgram) {
  const MountSite site(GetParam());
  MountProcess mount(site.settings());
  const std::string program = std::to_string(mount.process().pid());
  const std::set<std::string> own = sockets_of(program);
  EXPECT_GE(own.size(), is_orangefs() ? 2U : 1U) << "to a server, to the helper";
  const fs::path children = "/proc/" + program + "/task/" + program + "/children";
  std::istringstream helpers(read_text(children));
  std::size_t seen = 0;
  for (std::string helper; helpers >> helper; ++seen) {
    for (const std::string& each : sockets_of(helper)) EXPECT_FALSE(own.contains(each)) << each;
  }
  EXPECT_GE(seen, 1U) << "there is no helper";
  mount.stop();
}

using MountOfADirectory = MountTest;

TEST_F(MountOfADirectory, ItsOwnFilesHaveTheModesOfItsUmask) {
  const TemporaryDirectory folder;
  const std::string log = folder.path() / "mount.log";
  MountProcess mount({.config = "mount: {status_file: '{status_file}', log: '" + log + "'}\n",
                      .wrapper = {"sh", "-c", "umask 027; exec \"$@\"", "sh"}});
  (void)mount.status();
  for (const fs::path& file : {fs::path(log), mount.scratch() / "status.json"}) {
    EXPECT_EQ(fs::status(file).permissions(), fs::perms(0640)) << file;
  }
  mount.stop();
}

TEST_P(MountStart, AnOrdinaryUserMountsForHimself) {
  const MountSite site(GetParam());
  const TemporaryDirectory scratch;
  fs::permissions(scratch.path(), fs::perms(0711));
  for (const char* each : {"mount", "below", "of_root"}) {
    fs::create_directory(scratch.path() / each);
    if (each != std::string("of_root")) {
      ASSERT_EQ(::chown((scratch.path() / each).c_str(), 65534, 65534), 0);
    }
  }
  const std::string source =
      is_orangefs() ? site.source() : "posix:" + (scratch.path() / "below").string();
  const Outcome ended = run_apart(scratch, std::string(kDeviceForAll) + "source=" + source + R"(
cd {scratch}/mount  # it is named by its relative path too
as_user {vpfs-mount} "$source" . -o ro
cd /
grep -q ' {scratch}/mount ro,nosuid,nodev.* fuse.vpfs ' /proc/self/mountinfo
as_user sh -c 'echo x > {scratch}/mount/file' 2> {scratch}/said && exit 1
grep -q 'Read-only' {scratch}/said
as_user fusermount3 -u {scratch}/mount
as_user {vpfs-mount} "$source" {scratch}/mount
as_user sh -c 'umask 027; mkdir {scratch}/mount/d; echo text > {scratch}/mount/d/file'
as_user stat -c 'owner %u mode %a' {scratch}/mount/d/file
as_user cat {scratch}/mount/d/file
# The process that makes a file may write all of it, and none may open it for writing again.
as_user sh -c 'umask 333; seq 200000 > {scratch}/mount/d/constant'
as_user sh -c 'umask 777; seq 5 > {scratch}/mount/d/hidden'
as_user stat -c 'mode %a, %s bytes' {scratch}/mount/d/constant {scratch}/mount/d/hidden
as_user sh -c 'seq 200000 | cmp - {scratch}/mount/d/constant'
as_user sh -c 'echo x >> {scratch}/mount/d/constant' 2> {scratch}/said && exit 1
grep -q 'Permission denied' {scratch}/said
# No other user sees it, not even root.
ls {scratch}/mount 2> {scratch}/said && exit 1
grep -q 'Permission denied' {scratch}/said
as_user fusermount3 -u {scratch}/mount
grep -q {scratch}/mount /proc/self/mountinfo && exit 1
# Not over another user's directory, and not with options that are for root only.
as_user {vpfs-mount} "$source" {scratch}/of_root 2>&1 && exit 1
as_user {vpfs-mount} "$source" {scratch}/mount -o suid 2>&1 && exit 1
grep -q {scratch}/mount /proc/self/mountinfo && exit 1
echo "end of $source"
)");
  if (ended.code == 77) GTEST_SKIP() << "an ordinary user cannot mount here: " << ended.text();
  EXPECT_EQ(ended.code, 0) << ended.text();
  EXPECT_THAT(ended.text(), HasSubstr("owner 65534 mode 640"));
  EXPECT_THAT(ended.text(), HasSubstr("\ntext\n"));
  EXPECT_THAT(ended.text(), HasSubstr("mode 444, 1288895 bytes\nmode 0, 10 bytes\n"));
  EXPECT_THAT(ended.text(), HasSubstr("vpfs-mount: cannot mount at " +
                                      (scratch.path() / "of_root").string() + ":"));
  EXPECT_THAT(ended.text(), HasSubstr("-o suid: only root may mount with it"));
  EXPECT_THAT(ended.text(), HasSubstr("end of " + source));
  // What the user wrote belongs to it on the servers too.
  if (!is_orangefs()) return;
  const MountProcess mount(site.settings());
  EXPECT_THAT(outcome_of({"stat", "-c", "%u:%g %a", mount.path() / "d/file"}).text(),
              HasSubstr("65534:65534 640"));
}

// mount(8) finds its helper in /sbin, which has one in the namespace.
TEST_P(MountStart, IsWhatALineOfFstabSays) {
  const MountSite site(GetParam());
  const TemporaryDirectory scratch;
  for (const char* each : {"mount", "sbin"}) fs::create_directory(scratch.path() / each);
  fs::create_symlink(program("vpfs-mount"), scratch.path() / "sbin/mount.vpfs");
  (void)scratch.write("fstab", site.source() + " " + (scratch.path() / "mount").string() +
                                   " vpfs allow_other,noauto,nofail,_netdev,x-test=1 0 0\n");
  const Outcome ended = run_apart(scratch, R"(
mount -t overlay -o lowerdir={scratch}/sbin:$(readlink -f /sbin) overlay $(readlink -f /sbin) ||
  exit 77
mount -T {scratch}/fstab {scratch}/mount
grep ' {scratch}/mount rw.* fuse.vpfs ' /proc/self/mountinfo
echo text > {scratch}/mount/file
umount {scratch}/mount
grep -q ' {scratch}/mount ' /proc/self/mountinfo && exit 1
mount -T {scratch}/fstab -o ro {scratch}/mount
cat {scratch}/mount/file
touch {scratch}/mount/other 2> {scratch}/said && exit 1
grep -q 'Read-only' {scratch}/said
umount {scratch}/mount
# A mistake is the helper's to tell, and mount(8) fails.
mount -T {scratch}/fstab -o alow_other {scratch}/mount 2>&1 && exit 1
echo "the end"
)");
  if (ended.code == 77) GTEST_SKIP() << "no overlay of /sbin here: " << ended.text();
  EXPECT_EQ(ended.code, 0) << ended.text();
  EXPECT_THAT(ended.text(), HasSubstr("\ntext\n"));
  EXPECT_THAT(ended.text(), HasSubstr("-o alow_other: unknown; did you mean 'allow_other'?"));
  EXPECT_THAT(ended.text(), HasSubstr("the end"));
}

TEST_P(MountStart, SystemdIsToldWhenItIsThere) {
  const MountSite site(GetParam());
  const TemporaryDirectory scratch;
  const std::string name = scratch.path() / "notify";
  const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  ASSERT_LT(name.size(), sizeof address.sun_path);
  std::memcpy(address.sun_path, name.data(), name.size());
  ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const timeval patience = {.tv_sec = 20, .tv_usec = 0};
  ASSERT_EQ(::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
  const fs::path path = scratch.path() / "mount";
  fs::create_directory(path);
  Process mount({program("vpfs-mount"), "-f", site.source(), path, "-o", "allow_other"},
                {{"NOTIFY_SOCKET", name}});
  std::array<char, 256> said = {};
  EXPECT_GT(::recv(socket, said.data(), said.size() - 1, 0), 0) << mount.errors();
  EXPECT_THAT(said.data(), HasSubstr("READY=1"));
  // It is there from now on.
  EXPECT_TRUE(is_mounted(path));
  std::ofstream(path / "file") << "text";
  EXPECT_EQ(read_text(path / "file"), "text");
  const Process::Exit exit = mount.stop();
  EXPECT_TRUE(exit.ok()) << mount.errors();
  ::close(socket);
}

TEST_P(MountStart, MistakesGetOneClearLineAndLeaveNothingBehind) {
  const MountSite site(GetParam());
  const TemporaryDirectory scratch;
  const std::string path = scratch.path() / "mount";
  fs::create_directory(path);
  const std::string file = scratch.write("file", "text");
  const auto mistake = [&](const std::vector<std::string>& arguments, int code) {
    const Outcome ended = vpfs_mount(arguments);
    EXPECT_EQ(ended.code, code) << ended.text();
    EXPECT_THAT(ended.text(), HasSubstr("vpfs-mount: "));
    EXPECT_FALSE(is_mounted(path));
    return ended.text();
  };
  const std::string source = site.source();
  EXPECT_THAT(mistake({source, path + "/none"}, 1), HasSubstr("No such file or directory"));
  EXPECT_THAT(mistake({source, file}, 1), HasSubstr("it is not a directory"));
  EXPECT_THAT(mistake({source, path, "-o", "ro,rw,typo"}, 2), HasSubstr("-o typo: unknown"));
  if (!is_orangefs()) {
    EXPECT_THAT(mistake({"posix:" + file, path}, 1), HasSubstr("Not a directory"));
    EXPECT_THAT(mistake({source + "/none", path}, 1), HasSubstr("No such file or directory"));
    EXPECT_THAT(mistake({"posix:" + scratch.path().string(), path}, 1), HasSubstr("show itself"));
    EXPECT_THAT(mistake({source, path, "-o", "layout=local"}, 2), HasSubstr("-o layout"));
    return;
  }
  const std::string server = source.substr(0, source.rfind('/'));
  EXPECT_THAT(mistake({server + "/nonesuch", path}, 1), HasSubstr("nonesuch"));
  EXPECT_THAT(mistake({server, path}, 2), HasSubstr(server));
  EXPECT_THAT(mistake({source + "/below", path}, 2), HasSubstr("below"));
  EXPECT_THAT(mistake({"tcp://no.such.host.invalid:3334/vpfs", path}, 1),
              HasSubstr("no.such.host.invalid"));
  EXPECT_THAT(mistake({source, path, "-o", "layout=list:s9"}, 1), HasSubstr("s9"));
}

TEST_P(MountStart, ASecondMountAtOnePlaceIsRefusedUnlessAskedFor) {
  const MountSite site(GetParam());
  MountProcess first(site.settings());
  std::ofstream(first.path() / "file") << "text";
  const Outcome refused = vpfs_mount({site.source(), first.path(), "-o", "allow_other"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.text(),
              HasSubstr("a vpfs-mount is there already; unmount it first, or give -o "
                        "stacked"));
  EXPECT_EQ(read_text(first.path() / "file"), "text");
  const Outcome second = vpfs_mount({site.source(), first.path(), "-o", "allow_other,stacked"});
  EXPECT_EQ(second.code, 0) << second.text();
  EXPECT_EQ(read_text(first.path() / "file"), "text");
  EXPECT_EQ(outcome_of({"fusermount3", "-u", first.path()}).code, 0);
  EXPECT_TRUE(first.is_mounted()) << "only the second one is gone";
  EXPECT_EQ(read_text(first.path() / "file"), "text");
}

TEST_P(MountStart, SetUserIdProgramsAndDevicesAreThereIfAskedFor) {
  const MountSite site(GetParam());
  const auto flags = [&](const std::string& options) {
    const MountProcess mount(site.settings({"allow_other", options}));
    struct statvfs status = {};
    EXPECT_EQ(::statvfs(mount.path().c_str(), &status), 0);
    return static_cast<int>(status.f_flag) & (ST_NOSUID | ST_NODEV | ST_NOEXEC);
  };
  for (const std::string unmount : {"auto_unmount,", "noauto_unmount,"}) {
    EXPECT_EQ(flags(unmount + "rw"), ST_NOSUID | ST_NODEV);
    EXPECT_EQ(flags(unmount + "suid"), ST_NODEV);
    EXPECT_EQ(flags(unmount + "dev,noexec"), ST_NOSUID | ST_NOEXEC);
    EXPECT_EQ(flags(unmount + "suid,dev"), 0);
    EXPECT_EQ(flags(unmount + "suid,dev,nosuid,nodev"), ST_NOSUID | ST_NODEV);
  }
}

TEST_P(MountStart, WhatIsBusyIsNotUnmounted) {
  const MountSite site(GetParam());
  MountProcess mount(site.settings());
  fs::create_directory(mount.path() / "d");
  Process user({"env", "-C", mount.path() / "d", "sleep", "60"});
  ASSERT_TRUE(
      comes_true([&] { return read_text(fmt::format("/proc/{}/comm", user.pid())) == "sleep\n"; }));
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"umount", mount.path()},
        std::vector<std::string>{"fusermount3", "-u", mount.path()}}) {
    const Outcome ended = outcome_of(command);
    EXPECT_NE(ended.code, 0);
    EXPECT_THAT(ended.text(), HasSubstr("busy"));
  }
  std::ofstream(mount.path() / "d/file") << "it works on";
  EXPECT_EQ(read_text(mount.path() / "d/file"), "it works on");
  (void)user.kill();
  EXPECT_EQ(outcome_of({"umount", mount.path()}).code, 0);
  const auto exit = mount.process().wait();
  EXPECT_TRUE(exit && exit->ok()) << mount.process().errors();
}

// A relative place is meant as it was when the command was given.
TEST_P(MountStart, PlacesMayBeRelative) {
  const MountSite site(GetParam());
  const TemporaryDirectory scratch;
  fs::create_directories(scratch.path() / "below");
  fs::create_directories(scratch.path() / "mount");
  const std::string source = is_orangefs() ? site.source() : "posix:below";
  const Outcome ended =
      outcome_in(scratch.path(), {program("vpfs-mount"), source, "./mount", "-o", "allow_other"});
  ASSERT_EQ(ended.code, 0) << ended.text();
  std::ofstream(scratch.path() / "mount/file") << "text";
  EXPECT_EQ(read_text(scratch.path() / "mount/file"), "text");
  EXPECT_EQ(outcome_in(scratch.path(), {"fusermount3", "-u", "mount"}).code, 0);
  EXPECT_FALSE(is_mounted(scratch.path() / "mount"));
}

// --- the guide ---

// The indented lines from the one that begins with `first` to the next one that is empty.
std::string example_in(const std::string& guide, const std::string& first) {
  constexpr std::string_view kIndent = "    ";
  std::string text;
  bool inside = false;
  std::istringstream lines(guide);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(std::string(kIndent) + first)) inside = true;
    if (inside && !line.starts_with(kIndent)) break;
    if (inside) text += line.substr(kIndent.size()) + "\n";
  }
  return text;
}

TEST(MountGuide, HasRulesThatAreAConfigurationAsTheyAre) {
  const TemporaryDirectory scratch;
  const std::string example =
      example_in(read_text(source("docs/mount-orangefs.md")), "virtual_pfs:");
  EXPECT_THAT(example, HasSubstr("rules:"));
  const Outcome checked =
      outcome_of({program("vpfs-proxy"), "--check-config", "--config",
                  scratch.write("proxy.yaml",
                                "proxy: {listen: 127.0.0.1:4334, upstream: 127.0.0.1:3334, "
                                "protocol: orangefs}\n" +
                                    example)});
  EXPECT_EQ(checked.code, 0) << checked.text();
  EXPECT_THAT(checked.text(), Not(HasSubstr("warning")));
}

// --- a coordinator ---

using MountCoordinator = MountTest;

TEST_F(MountCoordinator, ThatDoesNotListAMountSeesItOnceItConnects) {
  const TemporaryDirectory scratch;
  const std::string stages = scratch.path() / "stages.sock";
  const std::string control = scratch.path() / "coordinator.sock";
  Process coordinator({program("vpfs-coordinator"), "--config",
                       scratch.write("coordinator.yaml",
                                     fmt::format("name: site\njournal: {0}/journal\npolicy: total\n"
                                                 "period: 50 ms\nlease: 1 s\ntransit: 500 ms\n"
                                                 "stages: {{listen: {{socket: {0}/stages.sock}}}}\n"
                                                 "control: {{socket: {0}/coordinator.sock}}\n",
                                                 scratch.path().string()))});
  ASSERT_TRUE(coordinator.wait_for_line("ready")) << coordinator.errors();
  const auto status = [&] {
    return outcome_of({program("vpfsctl"), "--coordinator", control, "status"}).text();
  };
  EXPECT_THAT(status(), Not(HasSubstr("node7")));
  {
    const MountProcess mount(
        {.config = "control: {socket: '{socket}', name: node7, coordinator: " + stages + "}\n"});
    EXPECT_TRUE(comes_true([&] { return status().find("node7") != std::string::npos; }))
        << status() << mount.ask({"status"});
    EXPECT_THAT(mount.ask({"status"}), HasSubstr(stages));
    std::ofstream(mount.path() / "file") << "text";
    EXPECT_EQ(read_text(mount.below() / "file"), "text");
  }
  EXPECT_EQ(coordinator.stop().code, 0);
}

}  // namespace
}  // namespace vpfs::test
