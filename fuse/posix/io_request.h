#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <sys/types.h>

#include "fuse/buffer.h"
#include "fuse/channel.h"
#include "fuse/posix/files/open_file.h"
#include "fuse/posix/kernel_locks.h"
#include "fuse/posix/message_pipe.h"
#include "stage/held.h"

namespace vpfs::fuse {

// The process that waits for a request, and the user that it counts for.
struct Holder {
  pid_t process = 0;
  uid_t uid = 0;
};

// One request of the kernel that the stage has a say in, from its arrival to its end. While it is
// held it keeps what it needs: a write its data, in memory or in a pipe (HeldMemory); a read its
// numbers; a request on names and attributes its message.
//
// It belongs to the thread that handles it, and to the gate while it is held.
struct IoRequest : stage::Held {
  static constexpr std::size_t kNowhere = SIZE_MAX;

  Channel* channel = nullptr;  // that it came through
  std::uint64_t unique = 0;    // the kernel's number of it
  std::uint64_t inode = 0;     // the kernel's number of the file
  pid_t process = 0;
  uid_t uid = 0;  // its caller
  gid_t gid = 0;
  // The user that its thread and its memory count for: the caller, or the file's opener if it has
  // none.
  uid_t charged = 0;
  bool is_scheduled = true;  // it passes the gate
  bool is_counted = false;   // among the requests that `charged` has
  // Whose it is: of a read or write the file's opener, of others the caller.
  OpenFilePtr file = {};
  Opener caller = {};
  std::uint64_t offset = 0;
  std::unique_ptr<Buffer> data = {};  // of a write, or else they are in the pipe
  MessagePipe pipe = {};
  std::uint64_t kept = 0;               // bytes that count as held
  bool is_of_cache = false;             // a write of the kernel's pages, not of a process
  bool appends = false;                 // a write to the end, wherever that is
  int syncs = 0;                        // RWF_DSYNC or RWF_SYNC of a write, as its process said it
  std::vector<std::byte> message = {};  // for libfuse
  bool passes_cache = false;            // a read of a file that is open for direct I/O
  bool is_direct = false;               // its process wanted direct I/O when it sent it
  std::size_t held_at_file = kNowhere;  // its index in HeldReads
  KernelLocks locks = {};               // of a request on names and attributes
  TimePoint held_until = kNever;        // the gate's own: when it must let it go
  // Where its data are for another process, in SavedData of that number; 0: in none.
  std::uint64_t saved_in = 0;
  std::uint64_t saved_at = 0;
  std::uint64_t moved = 0;
  bool failed = false;
};

// Whether a signal may end a request that a thread works on: its answer is EINTR, and the work goes
// on. A write must not, since it could land on what another process writes once this one has ended.
// What works on names and attributes uses what the kernel forgets after an answer.
[[nodiscard]] inline bool may_be_answered_early(const IoRequest& request) {
  return request.message.empty() && request.kind == IoKind::read;
}

}  // namespace vpfs::fuse
