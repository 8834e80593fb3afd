#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/result.h"
#include "client/orangefs/file.h"
#include "fuse/buffer.h"
#include "fuse/orangefs/held_io.h"
#include "fuse/orangefs/open_file.h"
#include "net/async.h"

// The data of files, between the kernel and the servers.
namespace vpfs::fuse::pvfs {

class MountWorker;

// The worker's own client::File of an open file, opened if it has none yet. It lives as long as
// the open file.
[[nodiscard]] net::Task<Result<client::File*>> file_of(MountWorker& worker, OpenFilePtr file);

// Cuts or extends the file for a process that has it open.
[[nodiscard]] net::Task<Result<void>> truncate(MountWorker& worker, OpenFilePtr file,
                                               std::uint64_t size);

struct IoMessage {
  std::uint64_t unique = 0;  // in the worker's running requests, until it is answered
  OpenFilePtr file;
  std::uint64_t offset = 0;
  std::size_t size = 0;
  bool clears_id_bits = false;  // of a write, for a user other than root
  bool appends = false;         // a process's write to the end of the file
  bool syncs = false;           // it is on stable storage before its answer
  HeldPart held = {};
};

// The file as one more opener has it; null: it is being destroyed.
[[nodiscard]] OpenFilePtr new_open_file(MountWorker& worker, client::CallerPtr opener,
                                        orangefs::Handle handle);
// Closes it for this opener. A file without a name is destroyed when its last opener closes it.
[[nodiscard]] net::Task<> close_file(MountWorker& worker, OpenFilePtr file);

// Waits until the changes by processes that were killed are done. A retry of one may be far behind
// what is asked for now.
[[nodiscard]] net::Task<> abandoned_changes_done(std::shared_ptr<const OpenObject> object);

// The file may end there, and the kernel does not know.
void note_unknown_end(MountWorker& worker, const OpenFile& file, std::uint64_t end);
// The file has been cut. The kernel learns of that from the call's answer.
void note_cut(OpenObject& object);

// Reads what the message asks for, and answers it.
[[nodiscard]] net::Task<> read(MountWorker& worker, IoMessage message);
// Writes the data in `buffer`, and answers. The data are the operation's until then: if the
// process stops waiting they still go where it wanted them.
[[nodiscard]] net::Task<> write(MountWorker& worker, IoMessage message,
                                std::unique_ptr<Buffer> buffer);

// Tells the server when the file was last written, unless it knows.
[[nodiscard]] net::Task<Result<void>> tell_time_of_write(MountWorker& worker, OpenFilePtr file);

}  // namespace vpfs::fuse::pvfs
