#include "fuse/posix/file_system.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "fuse/mount_point.h"

namespace vpfs::fuse {
namespace {

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

void init(void* owner, fuse_conn_info* connection) {
  ask_for_limits(*connection);
  const auto want = [&](unsigned capability) {
    if ((connection->capable & capability) != 0) connection->want |= capability;
  };
  // Modes come with the caller's mask beside them, so that a default ACL can take its place.
  want(FUSE_CAP_DONT_MASK);
  const auto& files = *static_cast<PosixFileSystem*>(owner);
  if (files.options().acl) want(FUSE_CAP_POSIX_ACL);
}

}  // namespace

Result<std::unique_ptr<PosixFileSystem>> PosixFileSystem::open(Options options, ProcessJobs& jobs,
                                                               const Clock& clock) {
  const auto problem = [](const std::string& what) {
    return fail(fmt::format("{}: {}", what, std::generic_category().message(errno)),
                {errno, std::generic_category()});
  };
  Descriptor root(::open(options.source.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root) return problem(options.source);
  struct stat attributes = {};
  if (::fstat(root.get(), &attributes) != 0) return problem(options.source);
  Descriptor descriptors(::open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!descriptors) return problem("/proc/self/fd");
  return std::unique_ptr<PosixFileSystem>(new PosixFileSystem(
      std::move(options), std::move(root), attributes, std::move(descriptors), jobs, clock));
}

PosixFileSystem::PosixFileSystem(Options options, Descriptor root, const struct stat& attributes,
                                 Descriptor descriptors, ProcessJobs& jobs, const Clock& clock)
    : options_(std::move(options)),
      inodes_(std::move(root), attributes),
      descriptors_(std::move(descriptors)),
      groups_(clock),
      jobs_(jobs) {}

const fuse_lowlevel_ops& PosixFileSystem::operations() {
  static const fuse_lowlevel_ops all = [] {
    fuse_lowlevel_ops table = {};
    table.init = init;
    add_name_operations(table);
    add_file_operations(table);
    add_directory_operations(table);
    add_attribute_operations(table);
    return table;
  }();
  return all;
}

Inode& PosixFileSystem::inode(fuse_ino_t number) {
  if (number == FUSE_ROOT_ID) return inodes_.root();
  return *reinterpret_cast<Inode*>(number);  // NOLINT: number_of() made it
}

fuse_ino_t PosixFileSystem::number_of(const Inode& inode) {
  if (&inode == &inodes_.root()) return FUSE_ROOT_ID;
  return reinterpret_cast<fuse_ino_t>(&inode);  // NOLINT: the kernel's name for it
}

int PosixFileSystem::look_up(fuse_ino_t parent, const char* name, fuse_entry_param& entry) {
  const int directory = inode(parent).descriptor.get();
  entry = {};
  entry.attr_timeout = seconds(options_.attribute_timeout);
  entry.entry_timeout = seconds(options_.entry_timeout);
  if (::fstatat(directory, name, &entry.attr, AT_SYMLINK_NOFOLLOW) != 0) return errno;
  Inode* found = inodes_.look_up(entry.attr);
  if (found == nullptr) {
    Descriptor opened(::openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!opened) return errno;
    // The name may have got another object meanwhile.
    if (::fstatat(opened.get(), "", &entry.attr, AT_EMPTY_PATH) != 0) return errno;
    found = &inodes_.look_up(std::move(opened), entry.attr);
  }
  entry.ino = number_of(*found);
  number(entry.attr);
  return 0;
}

int PosixFileSystem::enter(int opened, fuse_entry_param& entry) {
  entry = {};
  entry.attr_timeout = seconds(options_.attribute_timeout);
  entry.entry_timeout = seconds(options_.entry_timeout);
  if (::fstat(opened, &entry.attr) != 0) return errno;
  Inode* found = inodes_.look_up(entry.attr);
  if (found == nullptr) {
    const std::string name = std::to_string(opened);
    Descriptor path(::openat(descriptors_.get(), name.c_str(), O_PATH | O_CLOEXEC));
    if (!path) return errno;
    found = &inodes_.look_up(std::move(path), entry.attr);
  }
  entry.ino = number_of(*found);
  number(entry.attr);
  return 0;
}

std::string PosixFileSystem::path_of(const Inode& inode) {
  return fmt::format("/proc/self/fd/{}", inode.descriptor.get());
}

void PosixFileSystem::number(struct stat& attributes) const {
  const dev_t own = inodes_.root_device();
  if (attributes.st_dev != own) attributes.st_ino ^= (attributes.st_dev + 1) << 40U;
}

int PosixFileSystem::open_again(const Inode& inode, int flags) const {
  const std::string name = std::to_string(inode.descriptor.get());
  return ::openat(descriptors_.get(), name.c_str(), (flags & ~O_NOFOLLOW) | O_CLOEXEC);
}

PosixFileSystem& file_system_for(fuse_req_t request) {
  auto& files = *static_cast<PosixFileSystem*>(fuse_req_userdata(request));
  const fuse_ctx* const caller = fuse_req_ctx(request);
  become(caller->uid, caller->gid, caller->pid, files.groups());
  return files;
}

}  // namespace vpfs::fuse
