#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "client/orangefs/calls/caller.h"
#include "client/orangefs/file.h"
#include "fuse/handles.h"
#include "fuse/orangefs/open_objects.h"

namespace vpfs::fuse::pvfs {

// A file that a process has open. Its I/O belongs to the application that opened it.
struct OpenFile : std::enable_shared_from_this<OpenFile> {
  OpenFile(orangefs::Handle opened, client::CallerPtr opener, std::size_t workers)
      : handle(opened), caller(std::move(opener)), by_worker(workers) {}

  const orangefs::Handle handle;
  const client::CallerPtr caller;
  // For a file whose mode forbids what the process that made it may do through this descriptor.
  std::optional<orangefs::Capability> right;
  std::shared_ptr<OpenObject> object;
  // Each worker opens the file when it first has to do with it, and uses no other's.
  struct Opened {
    std::unique_ptr<client::File> by_caller;
    // A process that has a file open may go on whatever becomes of its mode, and one that makes a
    // file may write it even if the mode forbids it. The servers look at the mode each time, but
    // not for root.
    std::unique_ptr<client::File> by_root;
  };
  std::vector<Opened> by_worker;
};
using OpenFiles = Handles<OpenFile>;
using OpenFilePtr = OpenFiles::Pointer;

}  // namespace vpfs::fuse::pvfs
