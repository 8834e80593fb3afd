#pragma once

#include <memory>
#include <string>

#include <dirent.h>
#include <sys/types.h>

#include "fuse/descriptor.h"
#include "fuse/handles.h"

namespace vpfs::fuse {

// The application that opened a file: the process's user and, where it has one, its job.
struct Opener {
  uid_t uid = 0;
  gid_t gid = 0;
  std::string jobid;  // "": none
};

// I/O that was interrupted may outlast the file's release.
struct OpenFile : std::enable_shared_from_this<OpenFile> {
  Descriptor descriptor;
  Opener opener;
  // It had a set-user-id or set-group-id bit, which the file system below may clear with a write.
  bool has_id_bits = false;
};
using OpenFiles = Handles<OpenFile>;
using OpenFilePtr = OpenFiles::Pointer;

// The kernel asks for one listing at a time.
struct OpenDirectory {
  explicit OpenDirectory(DIR* opened) : stream(opened) {}
  ~OpenDirectory() { ::closedir(stream); }
  OpenDirectory(const OpenDirectory&) = delete;
  OpenDirectory& operator=(const OpenDirectory&) = delete;

  DIR* stream;
  off_t offset = 0;
  dirent* next = nullptr;  // did not fit into the last answer
};
using OpenDirectories = Handles<OpenDirectory>;

}  // namespace vpfs::fuse
