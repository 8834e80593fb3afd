// Directories without ACLs, as NFS and Lustre have them: the kernel must not take their answers for
// errors of what a user does. A preloaded double gives the answers (acl_double.cc).
#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "test/fuse/mount_process.h"
#include "test/fuse/users.h"
#include "test/support/places.h"

namespace vpfs::test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

mode_t mode_of(const fs::path& path) {
  struct stat its = {};
  return ::stat(path.c_str(), &its) == 0 ? its.st_mode & 07777 : 0;
}

std::string names_of_attributes(const fs::path& path) {
  std::array<char, 1024> room = {};
  const ssize_t size = ::listxattr(path.c_str(), room.data(), room.size());
  return size < 0 ? "an error" : std::string(room.data(), static_cast<std::size_t>(size));
}

// What an ordinary user does; 0 if all of it works.
int use(const fs::path& folder) {
  ::umask(027);
  const fs::path own = folder / "own";
  if (::mkdir(own.c_str(), 0777) != 0) return 1;
  if (mode_of(own) != 0750) return 2;
  const int file = ::open((own / "file").c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0666);
  if (file < 0 || ::write(file, "text", 4) != 4 || ::close(file) != 0) return 3;
  if (mode_of(own / "file") != 0640) return 4;
  if (read_text(own / "file") != "text") return 5;
  if (read_text(folder / "readable") != "root's") return 6;
  if (::open((folder / "secret").c_str(), O_RDONLY | O_CLOEXEC) >= 0 || errno != EACCES) return 7;
  if (::symlink("file", (own / "link").c_str()) != 0) return 8;
  if (::chmod((own / "file").c_str(), 0600) != 0 || mode_of(own / "file") != 0600) return 9;
  if (::setxattr((own / "file").c_str(), "user.x", "1", 1, 0) != 0) return 10;
  if (names_of_attributes(own / "file").find("user.x") == std::string::npos) return 11;
  // As `ls -l` asks. Both answers mean that there is none.
  const ssize_t acl = ::getxattr((own / "file").c_str(), "system.posix_acl_access", nullptr, 0);
  if (acl >= 0 || (errno != EOPNOTSUPP && errno != ENODATA)) return 12;
  std::error_code error;
  std::set<std::string> names;
  for (const auto& each : fs::directory_iterator(own, error)) names.insert(each.path().filename());
  if (error || names != std::set<std::string>{"file", "link"}) return 13;
  if (::rename((own / "file").c_str(), (folder / "moved").c_str()) != 0) return 14;
  if (::access((folder / "moved").c_str(), R_OK | W_OK) != 0) return 15;
  if (::unlink((own / "link").c_str()) != 0 || ::rmdir(own.c_str()) != 0) return 16;
  return ::chdir((folder / "others").c_str()) == 0 ? 17 : errno == EACCES ? 0 : 18;
}

class MountWithoutAcls : public MountTest,
                         public ::testing::WithParamInterface<std::string_view> {};

TEST_P(MountWithoutAcls, IsUsedByAnOrdinaryUserAsTheDirectoryItself) {
  MountProcess mount({.wrapper = {"env", "LD_PRELOAD=" VPFS_ACL_DOUBLE,
                                  "VPFS_ACL_DOUBLE=" + std::string(GetParam())}});
  fs::permissions(mount.scratch(), fs::perms::all);
  fs::permissions(mount.below(), fs::perms::all);
  std::ofstream(mount.below() / "readable") << "root's";
  fs::permissions(mount.below() / "readable", static_cast<fs::perms>(0644));
  std::ofstream(mount.below() / "secret") << "root's";
  fs::permissions(mount.below() / "secret", static_cast<fs::perms>(0600));
  fs::create_directory(mount.below() / "others");
  fs::permissions(mount.below() / "others", static_cast<fs::perms>(0700));
  EXPECT_EQ(as_user(kAlice, {}, [&] { return use(mount.path()); }), 0);
  struct stat its = {};
  ASSERT_EQ(::stat((mount.below() / "moved").c_str(), &its), 0);
  EXPECT_EQ(its.st_uid, kAlice);
  EXPECT_THAT(mount.process().errors(), HasSubstr("the double was asked for an ACL"));
}

INSTANTIATE_TEST_SUITE_P(Mount, MountWithoutAcls,
                         ::testing::Values("nfs", "lustre", "lustre_noacl", "mixed"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace vpfs::test
