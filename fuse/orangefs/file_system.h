#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <sys/stat.h>

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>

#include "base/clock.h"
#include "client/orangefs/file_system.h"
#include "fuse/orangefs/callers.h"
#include "fuse/orangefs/open_directory.h"
#include "fuse/orangefs/open_file.h"
#include "fuse/orangefs/open_objects.h"
#include "fuse/orangefs/placement.h"
#include "fuse/process_groups.h"
#include "fuse/process_jobs.h"

namespace vpfs::fuse::pvfs {

// What the workers of a mounted OrangeFS share. Names and attributes are with the servers, and with
// the kernel for as long as the timeouts say; what is here is what processes have open.
//
// The kernel's number of an object is its handle, except that the root directory is 1. Thread-safe.
class OrangefsFileSystem {
 public:
  struct Options {
    Duration entry_timeout = std::chrono::seconds(1);
    Duration attribute_timeout = std::chrono::seconds(1);
    bool local_locks = false;      // those of one mount are not seen by others
    Layout layout = {};            // of new files
    std::string virtual_pfs = {};  // which all requests ask for; "": none
  };

  // Jobs and clock outlive it.
  OrangefsFileSystem(Options options, const client::MountConfig& config, std::size_t workers,
                     ProcessJobs& jobs, const Clock& clock)
      : options_(std::move(options)),
        root_(config.root),
        workers_(workers),
        placement_(options_.layout, config, options_.attribute_timeout, clock),
        groups_(clock),
        callers_(options_.virtual_pfs, groups_, jobs, clock) {}

  // For MountPoint, with the file system as their owner.
  [[nodiscard]] const fuse_lowlevel_ops& operations() const;

  [[nodiscard]] orangefs::Handle handle_of(fuse_ino_t number) const {
    return number == FUSE_ROOT_ID ? root_ : number;
  }
  [[nodiscard]] fuse_ino_t number_of(orangefs::Handle handle) const {
    return handle == root_ ? FUSE_ROOT_ID : handle;
  }
  // The attributes as the kernel has them, times of writes here included.
  [[nodiscard]] struct stat attributes_of(const client::Stat& object) const;
  [[nodiscard]] fuse_entry_param entry_of(const client::Stat& object) const;
  [[nodiscard]] double attribute_seconds() const;

  // Whether files may be opened past the page cache (MountPoint::has_direct_io()). Before workers
  // start.
  void set_direct_io(bool has_it) { has_direct_io_ = has_it; }
  [[nodiscard]] bool has_direct_io() const { return has_direct_io_; }
  [[nodiscard]] std::size_t workers() const { return workers_; }
  [[nodiscard]] Callers& callers() { return callers_; }
  [[nodiscard]] Placement& placement() { return placement_; }
  [[nodiscard]] OpenObjects& objects() { return objects_; }
  [[nodiscard]] OpenFiles& files() { return files_; }
  [[nodiscard]] OpenDirectories& directories() { return directories_; }
  [[nodiscard]] ListedPages& listed_pages() { return listed_pages_; }

 private:
  static constexpr std::uint64_t kListedPages = std::uint64_t{256} << 20;  // bytes

  const Options options_;
  const orangefs::Handle root_;
  const std::size_t workers_;
  bool has_direct_io_ = false;
  Placement placement_;
  ProcessGroups groups_;
  Callers callers_;
  OpenObjects objects_;
  OpenFiles files_;
  ListedPages listed_pages_{kListedPages};
  OpenDirectories directories_;
};

// Parts of the table of operations.
void add_name_operations(fuse_lowlevel_ops& operations);
void add_file_operations(fuse_lowlevel_ops& operations);
void add_directory_operations(fuse_lowlevel_ops& operations);
void add_attribute_operations(fuse_lowlevel_ops& operations);

}  // namespace vpfs::fuse::pvfs
