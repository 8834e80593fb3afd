#include "test/fuse/private_device.h"

#include <cerrno>
#include <cstring>

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

namespace vpfs::test {
namespace {

constexpr const char* kFuseDevice = "/dev/fuse";

bool mount_one(const std::string& device, mode_t mode) {
  struct stat original = {};
  return ::unshare(CLONE_NEWNS) == 0 &&
         ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::stat(kFuseDevice, &original) == 0 &&
         ::mknod(device.c_str(), S_IFCHR | 0600, original.st_rdev) == 0 &&
         ::chmod(device.c_str(), mode) == 0 &&
         ::mount(device.c_str(), kFuseDevice, nullptr, MS_BIND, nullptr) == 0;
}

}  // namespace

PrivateDevice::PrivateDevice(mode_t mode) {
  if (!mount_one(scratch_.path() / "fuse", mode)) {
    why_none_ = std::string("there can be no /dev/fuse of another mode: ") + std::strerror(errno);
  }
}

PrivateDevice::~PrivateDevice() {
  if (why_none_.empty()) ::umount2(kFuseDevice, MNT_DETACH);
}

}  // namespace vpfs::test
