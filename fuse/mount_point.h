#pragma once

#include <atomic>
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
  // The same of a mount that another process has made, with what that one offers: descriptors,
  // borrowed by an Offer. The error says what does not fit.
  struct Offer {
    int device = -1;
    int unmounter = -1;    // while it is open, fusermount3 does not unmount; -1: there is none
    std::string greeting;  // the kernel's
    std::string options;   // that the kernel and libfuse were given
  };
  [[nodiscard]] Offer offer() const;
  struct Handed {
    net::Descriptor device;
    net::Descriptor unmounter;
    std::string greeting;
    std::string options;
  };
  [[nodiscard]] static Result<std::unique_ptr<MountPoint>> take_over(
      const Options& options, const fuse_lowlevel_ops& operations, void* owner, Handed handed);
  // Another process unmounts from now on; or this process does, after take_over().
  void leave() { mounted_ = false; }
  void take_charge() { mounted_ = true; }
  // Unmounts.
  ~MountPoint();
  MountPoint(const MountPoint&) = delete;
  MountPoint& operator=(const MountPoint&) = delete;

  // Another descriptor for the mount's messages. The mount lasts while one is open.
  [[nodiscard]] Result<std::unique_ptr<Channel>> add_channel(bool non_blocking);
  // The same of one that another process has added: requests that came there are answered there.
  [[nodiscard]] Result<std::unique_ptr<Channel>> adopt_channel(net::Descriptor descriptor);

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
  void look_at_greeting();
  void unmount_as_another();
  void read_ahead_far(std::size_t size);
  [[nodiscard]] Result<void> allow_suid_and_devices(const Options& options);

  std::string directory_;
  const fuse_lowlevel_ops& operations_;
  void* owner_;
  std::vector<std::string> arguments_;  // of libfuse
  fuse_session* session_ = nullptr;
  net::Descriptor first_;  // of the mount; others are its clones
  std::atomic<bool> mounted_ = false;
  net::Descriptor unmounter_;  // fusermount3 unmounts when no process has it open any more
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
