#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "fuse/channel.h"
#include "net/descriptor.h"

struct fuse_lowlevel_ops;
struct fuse_conn_info;

namespace vpfs::fuse {

// A mounted file system.
class MountPoint {
 public:
  struct Options {
    std::string source;  // as `mount` shows it
    std::string directory;
    bool allow_other = false;
    bool allow_root = false;
    bool read_only = false;
    // The mount goes when this process does, however it ends.
    bool auto_unmount = true;
    std::size_t read_ahead = kLargestIo;     // of the kernel, if root mounts
    std::size_t largest_write = kLargestIo;  // of the kernel
    // Requests that no process waits for, which the kernel gives at once. 0: as ask_for_limits().
    std::uint16_t most_background = 0;
    // On top of another mount of vpfs-mount at the directory. Without it that is an error.
    bool stacked = false;
    std::vector<std::string> others = {};  // for the kernel: "nosuid", "dev", ...
  };

  // Mounts, as root or through fusermount3, and greets the kernel. `operations` and `owner` (the
  // user data of libfuse) outlive the mount point. The kernel checks permissions by modes and
  // ACLs, as for any file system. operations.init() calls ask_for_limits().
  [[nodiscard]] static Result<std::unique_ptr<MountPoint>> mount(
      const Options& options, const fuse_lowlevel_ops& operations, void* owner);
  // Unmounts.
  ~MountPoint();
  MountPoint(const MountPoint&) = delete;
  MountPoint& operator=(const MountPoint&) = delete;

  // Another descriptor for the mount's messages. The mount lasts while one is open.
  [[nodiscard]] Result<std::unique_ptr<Channel>> add_channel(bool non_blocking);

  // Whether a file may be opened for direct I/O past the kernel's page cache, and be mapped all the
  // same. Kernels do since Linux 6.6.
  [[nodiscard]] bool has_direct_io() const { return has_direct_io_; }

  // No path leads to the mount any more. Files that are open stay so; once the last is closed, the
  // channels end. Does nothing if it is unmounted already. Any thread.
  void unmount();

 private:
  MountPoint(const Options& options, const fuse_lowlevel_ops& operations, void* owner);
  [[nodiscard]] Result<void> greet(const Options& options);
  [[nodiscard]] Result<std::unique_ptr<Channel>> new_channel(net::Descriptor descriptor);
  [[nodiscard]] std::vector<std::byte> answer_greeting(Channel& channel);
  void read_ahead_far(std::size_t size);
  [[nodiscard]] Result<void> allow_suid_and_devices(const Options& options);

  std::string directory_;
  const fuse_lowlevel_ops& operations_;
  void* owner_;
  std::vector<std::string> arguments_;  // of libfuse
  fuse_session* session_ = nullptr;
  net::Descriptor first_;  // of the mount; others are its clones
  bool mounted_ = false;
  bool has_direct_io_ = false;
  std::vector<std::byte> greeting_;  // the kernel's
};

// The sizes and numbers that every backend asks the kernel for: reads and writes of 1 MiB, and as
// many requests in the background as the machine's memory allows, so that held requests of one
// application do not keep those of others back.
void ask_for_limits(fuse_conn_info& connection);
// The part of the machine's memory that they may take.
[[nodiscard]] std::uint64_t background_memory();

}  // namespace vpfs::fuse
