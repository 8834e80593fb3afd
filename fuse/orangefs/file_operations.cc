// Operations on open files, except on their data (io.h), and on the file system.
#include <cerrno>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/result.h"
#include "fuse/direct_io.h"
#include "fuse/orangefs/call.h"
#include "fuse/orangefs/file_system.h"
#include "fuse/orangefs/id_bits.h"
#include "fuse/orangefs/io.h"

namespace vpfs::fuse::pvfs {
namespace {

constexpr std::uint32_t kOwnersRights = S_IRUSR | S_IWUSR;
constexpr std::uint64_t kBlock = 4096;  // in which statfs counts
constexpr unsigned long kLongestName = 255;

// The kernel has it open, unless no process waits for the answer any more. `reply` gives what
// libfuse returned.
template <typename Reply>
void hand_over(Call& call, OpenFilePtr file, fuse_file_info& info, Reply reply) {
  MountWorker& worker = call.worker();
  info.fh = worker.files().files().add(file);
  info.direct_io = worker.files().has_direct_io() && (info.flags & O_DIRECT) != 0 ? 1 : 0;
  const ParallelWrites parallel(info.direct_io != 0);
  if (reply(call.take(), info) == 0) return;
  worker.files().files().close(info.fh);
  worker.spawn(close_file(worker, std::move(file)));
}

net::Task<Result<client::File*>> open_here(Call& call, OpenFilePtr file, int flags) {
  co_await abandoned_changes_done(file->object);
  Result<client::File*> own = co_await file_of(call.worker(), file);
  if (!own || (flags & O_TRUNC) == 0) co_return own;
  if (!call.begin_change(file->object)) co_return std::unexpected(interrupted());
  const Result<void> cut = co_await (*own)->truncate(0);
  VPFS_CO_TRY(cut);
  note_cut(*file->object);
  file->object->written_at = static_cast<std::uint64_t>(std::time(nullptr));
  if (call.caller()->uid != 0) {
    const Result<void> cleared = co_await clear_id_bits(call.worker(), call.caller(), file->handle);
    if (!cleared) co_return std::unexpected(cleared.error());
  }
  co_return own;
}

net::Task<> open_file(Call call, orangefs::Handle handle, fuse_file_info info) {
  OpenFilePtr file = new_open_file(call.worker(), call.caller(), handle);
  if (!file) co_return call.fail(ESTALE);
  const Result<client::File*> own = co_await open_here(call, file, info.flags);
  if (!own) {
    call.fail_object(own.error());
    co_await close_file(call.worker(), file);
    co_return;
  }
  // The kernel appends where it thinks that the file ends. Another node may have appended since.
  const bool appends = (info.flags & O_APPEND) != 0 && (info.flags & O_ACCMODE) != O_RDONLY;
  if (appends) {
    const Result<client::Stat> now = co_await call.servers().stat(handle);
    if (now) note_unknown_end(call.worker(), *file, now->size);
  }
  // Its size may have changed on another node, and reads end at the size that the kernel knows.
  call.worker().channel().attributes_changed(call.files().number_of(handle));
  hand_over(call, std::move(file), info, [](fuse_req_t request, const fuse_file_info& opened) {
    return fuse_reply_open(request, &opened);
  });
}

struct MadeFile {
  std::unique_ptr<client::File> file;
  client::Stat object;
  std::optional<orangefs::Capability> right;  // OpenFile::right
};

// A process that makes a file may write it through its descriptor even if the mode forbids it, but
// servers look at the mode. A user's mount, which cannot go on as root, makes the file with rights
// for its owner, keeps those, and sets the mode then.
net::Task<Result<MadeFile>> make_open_file(Call& call, orangefs::Handle directory, std::string name,
                                           std::uint32_t permissions) {
  const pid_t process = fuse_req_ctx(call.request())->pid;
  std::vector<std::size_t> servers =
      co_await call.files().placement().servers_for(call.servers(), directory, process);
  const bool is_root = call.worker().session().caller()->uid == 0;
  const std::uint32_t lacking = is_root ? 0 : kOwnersRights & ~permissions;
  std::string first_name = name;
  Result<std::unique_ptr<client::File>> made = co_await call.servers().create_and_open(
      directory, std::move(first_name), permissions | lacking, 0, std::move(servers));
  VPFS_CO_TRY(made);
  client::Stat object = (*made)->status();
  if (lacking == 0) {
    co_return MadeFile{.file = std::move(*made), .object = object, .right = std::nullopt};
  }
  (*made)->keep_right();
  std::optional<orangefs::Capability> right = (*made)->right();
  object.permissions &= ~lacking;
  client::AttributeChanges changes;
  changes.permissions = object.permissions;
  Result<void> set = co_await call.servers().set_attributes(object.handle, changes);
  if (!set) {
    (void)co_await call.servers().remove(directory, std::move(name));
    co_return std::unexpected(std::move(set.error()));
  }
  co_return MadeFile{.file = std::move(*made), .object = object, .right = std::move(right)};
}

net::Task<> create_file(Call call, orangefs::Handle directory, std::string name,
                        std::uint32_t permissions, fuse_file_info info) {
  Result<MadeFile> made = co_await make_open_file(call, directory, std::move(name), permissions);
  if (!made) {
    // Another node was faster. The kernel checks no permission for a file that it takes for new, so
    // it has to look the name up again, and to open what is there.
    const bool outpaced = client::errno_of(made.error()) == EEXIST && (info.flags & O_EXCL) == 0;
    co_return outpaced ? call.fail(ESTALE) : call.fail(made.error());
  }
  const fuse_entry_param entry = call.files().entry_of(made->object);
  OpenFilePtr file = new_open_file(call.worker(), call.caller(), made->object.handle);
  if (!file) co_return call.fail(ESTALE);
  file->right = std::move(made->right);
  file->by_worker[call.worker().index()].by_caller = std::move(made->file);
  hand_over(call, std::move(file), info,
            [&entry](fuse_req_t request, const fuse_file_info& opened) {
              return fuse_reply_create(request, &entry, &opened);
            });
}

net::Task<> flush_file(Call call, OpenFilePtr file) {
  const Result<void> told = co_await tell_time_of_write(call.worker(), std::move(file));
  if (!told) co_return call.fail(told.error());
  call.succeed();
}

net::Task<> sync_file(Call call, OpenFilePtr file) {
  const Result<void> told = co_await tell_time_of_write(call.worker(), file);
  // By the file's handle: another worker may have written to datafiles that are not in the layout
  // of this worker's own client::File.
  const Result<void> flushed = co_await call.servers().flush(file->handle);
  if (!flushed) co_return call.fail_object(flushed.error());
  if (!told) co_return call.fail_object(told.error());
  call.succeed();
}

net::Task<> tell_status(Call call) {
  const Result<client::FileSystemStatus> all = co_await call.servers().statfs();
  if (!all) co_return call.fail(all.error());
  struct statvfs status = {};
  status.f_bsize = kBlock;
  status.f_frsize = kBlock;
  status.f_blocks = all->bytes_total / kBlock;
  status.f_bfree = status.f_bavail = all->bytes_available / kBlock;
  status.f_files = all->handles_total;
  status.f_ffree = status.f_favail = all->handles_available;
  status.f_namemax = kLongestName;
  fuse_reply_statfs(call.take(), &status);
}

void open(fuse_req_t request, fuse_ino_t number, fuse_file_info* info) {
  Call call(request);
  MountWorker& worker = call.worker();
  const orangefs::Handle handle = call.files().handle_of(number);
  worker.spawn(open_file(std::move(call), handle, *info));
}

void create(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode,
            fuse_file_info* info) {
  Call call(request);
  MountWorker& worker = call.worker();
  const orangefs::Handle directory = call.files().handle_of(parent);
  worker.spawn(create_file(std::move(call), directory, name, mode & ALLPERMS, *info));
}

void flush(fuse_req_t request, fuse_ino_t /*number*/, fuse_file_info* info) {
  OpenFilePtr file = OpenFiles::at(info->fh).shared_from_this();
  Call call(request, file->caller);
  MountWorker& worker = call.worker();
  worker.spawn(flush_file(std::move(call), std::move(file)));
}

void release(fuse_req_t request, fuse_ino_t /*number*/, fuse_file_info* info) {
  MountWorker& worker = MountWorker::current();
  OpenFilePtr file = OpenFiles::at(info->fh).shared_from_this();
  worker.files().files().close(info->fh);
  fuse_reply_err(request, 0);
  worker.spawn(close_file(worker, std::move(file)));
}

void fsync(fuse_req_t request, fuse_ino_t /*number*/, int /*only_data*/, fuse_file_info* info) {
  OpenFilePtr file = OpenFiles::at(info->fh).shared_from_this();
  Call call(request, file->caller);
  MountWorker& worker = call.worker();
  worker.spawn(sync_file(std::move(call), std::move(file)));
}

void statfs(fuse_req_t request, fuse_ino_t /*number*/) {
  Call call(request);
  MountWorker& worker = call.worker();
  worker.spawn(tell_status(std::move(call)));
}

}  // namespace

void add_file_operations(fuse_lowlevel_ops& operations) {
  operations.open = open;
  operations.create = create;
  operations.flush = flush;
  operations.release = release;
  operations.fsync = fsync;
  operations.statfs = statfs;
}

}  // namespace vpfs::fuse::pvfs
