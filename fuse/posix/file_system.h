#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <sys/stat.h>

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>

#include "base/clock.h"
#include "base/result.h"
#include "fuse/posix/credentials.h"
#include "fuse/posix/inodes.h"
#include "fuse/posix/open_file.h"
#include "fuse/process_jobs.h"

namespace vpfs::fuse {

// The names and attributes of a directory that is mounted elsewhere, as FUSE shows them: every call
// is passed on to the file system below, in the name of the caller. File data are not passed here
// (see IoGate).
//
// Thread-safe. libfuse calls its operations from any thread.
class PosixFileSystem {
 public:
  struct Options {
    std::string source;
    Duration entry_timeout = std::chrono::seconds(1);
    Duration attribute_timeout = std::chrono::seconds(1);
    bool acl = true;  // those of the file system below are checked
  };

  // The jobs and the clock outlive it.
  [[nodiscard]] static Result<std::unique_ptr<PosixFileSystem>> open(Options options,
                                                                     ProcessJobs& jobs,
                                                                     const Clock& clock);
  // For MountPoint, with the file system as their owner.
  [[nodiscard]] static const fuse_lowlevel_ops& operations();

  [[nodiscard]] Inode& inode(fuse_ino_t number);
  [[nodiscard]] fuse_ino_t number_of(const Inode& inode);
  [[nodiscard]] Inodes& inodes() { return inodes_; }
  [[nodiscard]] OpenFiles& files() { return open_files_; }
  [[nodiscard]] OpenDirectories& directories() { return open_directories_; }
  [[nodiscard]] const Options& options() const { return options_; }
  // Whether files may be opened past the page cache (MountPoint::has_direct_io()). Before threads
  // use it.
  void set_direct_io(bool has_it) { has_direct_io_ = has_it; }
  [[nodiscard]] bool has_direct_io() const { return has_direct_io_; }
  [[nodiscard]] ProcessGroups& groups() { return groups_; }
  [[nodiscard]] ProcessJobs& jobs() { return jobs_; }

  // Looks a name up, for the kernel. Returns an errno, or 0 with the entry.
  [[nodiscard]] int look_up(fuse_ino_t parent, const char* name, fuse_entry_param& entry);
  // The same of an object that is open.
  [[nodiscard]] int enter(int opened, fuse_entry_param& entry);
  // The path of an object, for calls that take no descriptor.
  [[nodiscard]] static std::string path_of(const Inode& inode);
  // Gives files of other devices below numbers of their own.
  void number(struct stat& attributes) const;
  // Opens an object that was opened with O_PATH. -1 with errno.
  [[nodiscard]] int open_again(const Inode& inode, int flags) const;

 private:
  PosixFileSystem(Options options, Descriptor root, const struct stat& attributes,
                  Descriptor descriptors, ProcessJobs& jobs, const Clock& clock);

  const Options options_;
  Inodes inodes_;
  OpenFiles open_files_;
  OpenDirectories open_directories_;
  Descriptor descriptors_;  // /proc/self/fd
  ProcessGroups groups_;
  ProcessJobs& jobs_;
  bool has_direct_io_ = false;
};

// The owner of the session of a libfuse request, for its operations, with the calling thread in
// the caller's place.
[[nodiscard]] PosixFileSystem& file_system_for(fuse_req_t request);

// Parts of the table of operations.
void add_name_operations(fuse_lowlevel_ops& operations);
void add_file_operations(fuse_lowlevel_ops& operations);
void add_directory_operations(fuse_lowlevel_ops& operations);
void add_attribute_operations(fuse_lowlevel_ops& operations);

}  // namespace vpfs::fuse
