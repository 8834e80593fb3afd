#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/stat.h>

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>

#include "base/clock.h"
#include "base/result.h"
#include "base/saved/saved_state.h"
#include "fuse/credentials.h"
#include "fuse/posix/files/inodes.h"
#include "fuse/posix/files/open_file.h"
#include "fuse/process_jobs.h"

namespace vpfs::fuse {

// The names and attributes of a directory that is mounted elsewhere, as FUSE shows them: every call
// is passed on to the file system below, in the name of the caller. File data are not passed here
// (see IoGate).
//
// A name is one component, and no call follows it. Objects are reached by descriptors, which lead
// to them by /proc/self/fd where a call takes a path (decision 0048 has the table).
//
// Thread-safe. libfuse calls its operations from any thread.
class PosixFileSystem {
 public:
  struct Options {
    std::string source;
    Duration entry_timeout = std::chrono::seconds(1);
    Duration attribute_timeout = std::chrono::seconds(1);
    bool acl = true;     // those of the file system below are checked, if it has any
    bool shared = true;  // several users may use it
  };

  // The jobs and the clock outlive it.
  // In the place of another process: its directory below, which another mount may hide by now, and
  // what that one has told the kernel.
  struct Handed {
    net::Descriptor root;
    bool has_acl = false;
  };
  [[nodiscard]] static Result<std::unique_ptr<PosixFileSystem>> open(Options options,
                                                                     ProcessJobs& jobs,
                                                                     const Clock& clock,
                                                                     Handed* handed = nullptr);

  // A hand-over (files_handover.cc). The directory below, for Handed.
  [[nodiscard]] ObjectPath root_path() { return inodes_.path(inodes_.root()); }
  // What is open: parts with their descriptors, which `keeps` has open.
  struct SavedPart {
    SavedState state;
    std::vector<int> descriptors;
    std::shared_ptr<const void> keeps;
  };
  [[nodiscard]] std::vector<SavedPart> save_open();
  // Objects, by their numbers.
  [[nodiscard]] std::vector<SavedPart> save_objects(std::span<const std::uint64_t> nodes);
  // The other way round.
  [[nodiscard]] Result<void> restore(const SavedState& part,
                                     std::vector<net::Descriptor> descriptors);
  // For MountPoint, with the file system as their owner.
  [[nodiscard]] static const fuse_lowlevel_ops& operations();

  [[nodiscard]] Inode& inode(fuse_ino_t number);
  [[nodiscard]] fuse_ino_t number_of(const Inode& inode);
  // Opens an object that the kernel knows, for calls on it. Null with errno: ESTALE if it is gone.
  [[nodiscard]] ObjectPath path(fuse_ino_t number) { return inodes_.path(inode(number)); }
  [[nodiscard]] Inodes& inodes() { return inodes_; }
  [[nodiscard]] OpenFiles& files() { return open_files_; }
  [[nodiscard]] FileUsers& file_users() { return file_users_; }
  [[nodiscard]] OpenDirectories& directories() { return open_directories_; }
  [[nodiscard]] const Options& options() const { return options_; }
  // Whether files may be opened past the page cache (MountPoint::has_direct_io()). Before threads
  // use it.
  void set_direct_io(bool has_it) { has_direct_io_ = has_it; }
  [[nodiscard]] bool has_direct_io() const { return has_direct_io_; }
  // Calls `tell` from then on when the kernel's attributes of an object may be old. Before threads
  // use it; any thread calls.
  void when_attributes_change(std::function<void(fuse_ino_t)> tell) {
    attributes_change_ = std::move(tell);
  }
  void attributes_changed(fuse_ino_t number) const {
    if (attributes_change_) attributes_change_(number);
  }
  [[nodiscard]] ProcessGroups& groups() { return groups_; }
  [[nodiscard]] ProcessJobs& jobs() { return jobs_; }

  // Looks a name up, for the kernel and on the user's behalf. Returns an errno, or 0 with the
  // entry.
  enum class LookUp {
    asked,
    listed,  // the kernel may do without; a name on which something is mounted has EXDEV
    made,    // by this call
  };
  [[nodiscard]] int look_up(fuse_ino_t parent, const char* name, uid_t user,
                            fuse_entry_param& entry, LookUp why = LookUp::asked);
  // The same of an object that is open, as what has just been made with that name.
  [[nodiscard]] int enter(int opened, const Inodes::Cause& cause, fuse_entry_param& entry);
  // The path that leads to an open object, for calls that take no descriptor.
  [[nodiscard]] static std::string path_to(const net::Descriptor& opened);
  // Gives files of other devices below numbers of their own.
  void number(struct stat& attributes) const;
  // Opens an object that is open with O_PATH. -1 with errno.
  [[nodiscard]] int open_again(const net::Descriptor& path, int flags) const;
  // Whether the directory below has ACLs, as it said when it was mounted.
  [[nodiscard]] bool has_acl() const { return has_acl_; }

 private:
  [[nodiscard]] Result<void> restore_file(const SavedState& from, net::Descriptor descriptor);
  [[nodiscard]] Result<void> restore_directory(const SavedState& from, net::Descriptor descriptor);

  PosixFileSystem(Options options, net::Descriptor root, const struct stat& attributes,
                  net::Descriptor descriptors, ProcessJobs& jobs, const Clock& clock);

  const Options options_;
  Inodes inodes_;
  FileUsers file_users_;
  OpenFiles open_files_;
  OpenDirectories open_directories_;
  net::Descriptor descriptors_;  // /proc/self/fd
  ProcessGroups groups_;
  ProcessJobs& jobs_;
  std::function<void(fuse_ino_t)> attributes_change_;
  bool has_direct_io_ = false;
  bool has_acl_ = false;
};

// The owner of the session of a libfuse request, for its operations.
[[nodiscard]] PosixFileSystem& file_system_of(fuse_req_t request);
// The calling thread takes the caller's place. False: it cannot, and the request has its answer.
[[nodiscard]] bool take_place_of_caller(fuse_req_t request);
// Answers with an errno. ERESTART: the call has not begun (CallAgain).
void answer_error(fuse_req_t request, int problem);

// An operation as libfuse takes it, of one that gets its file system, in the caller's place.
template <auto Operation>
struct InPlaceOfCaller;
template <typename... Arguments, void (*Operation)(fuse_req_t, PosixFileSystem&, Arguments...)>
struct InPlaceOfCaller<Operation> {
  static void call(fuse_req_t request, Arguments... arguments) {
    if (take_place_of_caller(request)) Operation(request, file_system_of(request), arguments...);
  }
};
template <auto Operation>
inline constexpr auto in_place_of_caller = InPlaceOfCaller<Operation>::call;

// The most that one request copies from file to file, so that a share can be kept.
inline constexpr std::size_t kLargestCopy = std::size_t{16} << 20;

// Parts of the table of operations.
void add_name_operations(fuse_lowlevel_ops& operations);
void add_file_operations(fuse_lowlevel_ops& operations);
void add_directory_operations(fuse_lowlevel_ops& operations);
void add_attribute_operations(fuse_lowlevel_ops& operations);

}  // namespace vpfs::fuse
