#include "fuse/posix/files/file_handle.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "fuse/credentials.h"

namespace vpfs::fuse {
namespace {

// The kernel's structure ends with the handle's bytes.
struct Room {
  alignas(file_handle) std::array<std::byte, sizeof(file_handle) + MAX_HANDLE_SZ> bytes = {};

  file_handle* get() { return reinterpret_cast<file_handle*>(bytes.data()); }           // NOLINT
  char* data() { return reinterpret_cast<char*>(bytes.data() + sizeof(file_handle)); }  // NOLINT
};

std::optional<FileHandle> handle_of(int directory, const char* name, int flags) {
  Room room;
  room.get()->handle_bytes = MAX_HANDLE_SZ;
  int mount = 0;
  if (::name_to_handle_at(directory, name, room.get(), &mount, flags) != 0) return std::nullopt;
  return FileHandle{.type = room.get()->handle_type,
                    .bytes = std::string(room.data(), room.get()->handle_bytes),
                    .mount = mount};
}

// File systems whose handles open an object for as long as it is there, whatever their caches
// have dropped. Others may say ESTALE to a handle of their own.
bool keeps_handles(int descriptor) {
  constexpr std::uint32_t kLustre = 0x0bd00bd0;
  constexpr std::array<std::uint32_t, 6> kFileSystems = {
      EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, TMPFS_MAGIC, NFS_SUPER_MAGIC, kLustre};
  struct statfs status = {};
  return ::fstatfs(descriptor, &status) == 0 &&
         std::ranges::find(kFileSystems, static_cast<std::uint32_t>(status.f_type)) !=
             kFileSystems.end();
}

}  // namespace

std::optional<FileHandle> FileHandle::of(int descriptor) {
  return handle_of(descriptor, "", AT_EMPTY_PATH);
}

std::optional<FileHandle> FileHandle::of(int directory, const char* name) {
  return handle_of(directory, name, 0);
}

int FileHandle::open(int anchor, int flags) const {
  Room room;
  if (bytes.size() > MAX_HANDLE_SZ) {
    errno = ESTALE;
    return -1;
  }
  room.get()->handle_bytes = static_cast<unsigned>(bytes.size());
  room.get()->handle_type = type;
  std::memcpy(room.data(), bytes.data(), bytes.size());
  return ::open_by_handle_at(anchor, room.get(), flags | O_CLOEXEC);
}

HandleAnchor::HandleAnchor(int directory) {
  if (!keeps_handles(directory)) return;
  const std::optional<FileHandle> handle = FileHandle::of(directory);
  if (!handle) return;
  const OwnCapabilities own;
  // It must not be opened with O_PATH.
  net::Descriptor anchor(::open(fmt::format("/proc/self/fd/{}", directory).c_str(),
                                O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const net::Descriptor again(anchor ? handle->open(anchor.get(), O_PATH) : -1);
  if (!again) return;
  anchor_ = std::move(anchor);
  mount_ = handle->mount;
}

}  // namespace vpfs::fuse
