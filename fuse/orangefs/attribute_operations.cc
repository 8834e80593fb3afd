// Operations on attributes, extended ones too.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/stat.h>
#include <sys/xattr.h>

#include "fuse/orangefs/call.h"
#include "fuse/orangefs/file_system.h"
#include "fuse/orangefs/id_bits.h"
#include "fuse/orangefs/io.h"

namespace vpfs::fuse::pvfs {
namespace {

void answer_attributes(Call& call, const client::Stat& object) {
  const struct stat attributes = call.files().attributes_of(object);
  const double timeout = call.files().attribute_seconds();
  fuse_reply_attr(call.take(), &attributes, timeout);
}

// The kernel asks for a directory's permissions whenever something was made or removed in it.
bool answer_known_directory(Call& call, orangefs::Handle handle) {
  const std::optional<client::Caches::KnownDirectory> known =
      call.servers().known_directory(handle);
  if (!known) return false;
  const Duration left = known->until - call.servers().session().now();
  if (left <= Duration::zero()) return false;
  const struct stat attributes = call.files().attributes_of(known->stat);
  fuse_reply_attr(call.take(), &attributes, std::chrono::duration<double>(left).count());
  return true;
}

net::Task<> get_attributes(Call call, orangefs::Handle handle) {
  const Result<client::Stat> object = co_await call.servers().stat(handle);
  if (!object) co_return call.fail_object(object.error());
  answer_attributes(call, *object);
}

// Servers keep seconds since 1970 in 32 bits. Like other file systems of Linux, the mount takes the
// nearest time that they can keep.
std::uint64_t time_kept(const timespec& time, time_t earliest) {
  constexpr time_t kLatest = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint64_t>(std::clamp(time.tv_sec, earliest, kLatest));
}

constexpr time_t kEarliestAccess = 0;
// Servers keep it with microseconds below it. They take it for one without if the seconds are zero,
// and so tell the microseconds as seconds.
constexpr time_t kEarliestChange = 1;

client::AttributeChanges changes_of(const struct stat& wanted, int which) {
  client::AttributeChanges changes;
  if ((which & FUSE_SET_ATTR_UID) != 0) changes.uid = wanted.st_uid;
  if ((which & FUSE_SET_ATTR_GID) != 0) changes.gid = wanted.st_gid;
  if ((which & FUSE_SET_ATTR_MODE) != 0) changes.permissions = wanted.st_mode & ALLPERMS;
  if ((which & FUSE_SET_ATTR_ATIME_NOW) != 0) {
    changes.atime_now = true;
  } else if ((which & FUSE_SET_ATTR_ATIME) != 0) {
    changes.atime = time_kept(wanted.st_atim, kEarliestAccess);
  }
  if ((which & FUSE_SET_ATTR_MTIME_NOW) != 0) {
    changes.mtime_now = true;
  } else if ((which & FUSE_SET_ATTR_MTIME) != 0) {
    changes.mtime = time_kept(wanted.st_mtim, kEarliestChange);
  }
  return changes;
}

bool is_empty(const client::AttributeChanges& changes) {
  return !changes.uid && !changes.gid && !changes.permissions && !changes.atime && !changes.mtime &&
         !changes.atime_now && !changes.mtime_now;
}

// In the name of the call until its answer, so that `file` must be closed after that.
net::Task<Result<void>> cut(Call& call, OpenFilePtr file, bool is_open, std::uint64_t size,
                            bool clears) {
  co_await abandoned_changes_done(file->object);
  if (!call.begin_change(file->object)) co_return std::unexpected(interrupted());
  Result<void> cut;
  if (is_open) {
    cut = co_await truncate(call.worker(), file, size);
  } else {
    cut = co_await call.servers().truncate(file->handle, size);
  }
  if (cut) note_cut(*file->object);
  if (!cut || !clears) co_return cut;
  co_return co_await clear_id_bits(call.worker(), call.caller(), file->handle);
}

net::Task<> change_attributes(Call& call, OpenFilePtr file, bool is_open, orangefs::Handle handle,
                              struct stat wanted, int which) {
  client::AttributeChanges changes = changes_of(wanted, which);
  const bool clears = call.caller()->uid != 0 && !changes.permissions;
  // A new owner clears the bits whoever gives the file away, unlike new contents.
  if ((changes.uid || changes.gid) && !changes.permissions) {
    const Result<client::Stat> before = co_await call.servers().stat(handle);
    if (!before) co_return call.fail_object(before.error());
    changes.permissions = mode_after_change(*before);
  }
  if (file) {
    const auto size = static_cast<std::uint64_t>(wanted.st_size);
    const Result<void> done = co_await cut(call, file, is_open, size, clears);
    if (!done) co_return call.fail_object(done.error());
    // The servers leave that to the client, as with a write.
    if (!changes.mtime && !changes.mtime_now)
      changes.mtime = static_cast<std::uint64_t>(std::time(nullptr));
  }
  if (changes.mtime || changes.mtime_now) call.files().objects().forget_write(handle);
  if (!is_empty(changes)) {
    const Result<void> set = co_await call.servers().set_attributes(handle, changes);
    if (!set) co_return call.fail_object(set.error());
  }
  const Result<client::Stat> object = co_await call.servers().stat(handle);
  if (!object) co_return call.fail_object(object.error());
  answer_attributes(call, *object);
}

// `file`: the process has it open; null: it gave a path.
net::Task<> set_attributes(Call call, OpenFilePtr file, orangefs::Handle handle, struct stat wanted,
                           int which) {
  MountWorker& worker = call.worker();
  const bool cuts = (which & FUSE_SET_ATTR_SIZE) != 0;
  const bool is_open = file != nullptr;
  if (cuts && !is_open) {
    file = new_open_file(worker, call.caller(), handle);
    if (!file) co_return call.fail(ESTALE);
  }
  co_await change_attributes(call, cuts ? file : nullptr, is_open, handle, wanted, which);
  if (cuts && !is_open) co_await close_file(worker, std::move(file));
}

// OrangeFS keeps what users attach to their files. Capabilities, labels and ACLs of the kernel it
// does not know.
bool is_kept(std::string_view name) {
  return name.starts_with("user.");
}

// Servers say the same of a missing attribute as of a missing object.
int errno_of_extended(const Error& error) {
  const int number = client::errno_of(error);
  return number == ENOENT ? ENODATA : number;
}

net::Task<> set_extended(Call call, orangefs::Handle handle, std::string name, std::string value,
                         client::SetMode mode) {
  if (name == kLayoutName) {
    const Result<client::Stat> object = co_await call.servers().stat(handle);
    if (!object) co_return call.fail_object(object.error());
    // A file keeps the servers that it was made on.
    if (object->type != orangefs::ObjectType::directory) co_return call.fail(EPERM);
    if (!call.files().placement().check(value)) co_return call.fail(EINVAL);
  }
  const bool is_layout = name == kLayoutName;
  const Result<void> set =
      co_await call.servers().set_extended(handle, std::move(name), std::move(value), mode);
  if (is_layout) call.files().placement().forget(handle);
  if (!set) co_return call.fail(set.error());
  call.succeed();
}

net::Task<> remove_extended(Call call, orangefs::Handle handle, std::string name) {
  const Result<void> removed = co_await call.servers().remove_extended(handle, std::move(name));
  call.files().placement().forget(handle);
  if (!removed) co_return call.fail(errno_of_extended(removed.error()));
  call.succeed();
}

// With size 0 the process asks how long the text is.
void answer_text(Call& call, std::string_view text, std::size_t size) {
  if (size == 0) {
    fuse_reply_xattr(call.take(), text.size());
  } else if (text.size() > size) {
    call.fail(ERANGE);
  } else {
    fuse_reply_buf(call.take(), text.data(), text.size());
  }
}

// A directory's own layout or the mount's; of a file, the servers that have its data.
net::Task<> get_layout(Call call, orangefs::Handle handle, std::size_t size) {
  Placement& placement = call.files().placement();
  const Result<client::Stat> object = co_await call.servers().stat(handle);
  if (!object) co_return call.fail_object(object.error());
  if (object->type == orangefs::ObjectType::directory) {
    const std::optional<Layout> own = co_await placement.layout_of(call.servers(), handle);
    co_return answer_text(call, to_text(own ? *own : placement.layout()), size);
  }
  if (object->type != orangefs::ObjectType::metafile) co_return call.fail(ENODATA);
  const Result<std::vector<std::size_t>> servers = co_await call.servers().servers_of(handle);
  if (!servers) co_return call.fail(servers.error());
  answer_text(call, placement.text_of(*servers), size);
}

net::Task<> get_extended(Call call, orangefs::Handle handle, std::string name, std::size_t size) {
  const Result<std::string> value = co_await call.servers().get_extended(handle, std::move(name));
  if (!value) co_return call.fail(errno_of_extended(value.error()));
  answer_text(call, *value, size);
}

net::Task<> list_extended(Call call, orangefs::Handle handle, std::size_t size) {
  const Result<std::vector<std::string>> names = co_await call.servers().list_extended(handle);
  if (!names) co_return call.fail(names.error());
  std::string text;
  for (const std::string& name : *names) {
    if (is_kept(name)) text.append(name).push_back('\0');
  }
  answer_text(call, text, size);
}

void getattr(fuse_req_t request, fuse_ino_t number, fuse_file_info* /*info*/) {
  Call call(request);
  MountWorker& worker = call.worker();
  const orangefs::Handle handle = call.files().handle_of(number);
  if (answer_known_directory(call, handle)) return;
  worker.spawn(get_attributes(std::move(call), handle));
}

void setattr(fuse_req_t request, fuse_ino_t number, struct stat* wanted, int which,
             fuse_file_info* info) {
  // Before a signal can be told, after which another worker may close the file.
  OpenFilePtr file = info == nullptr ? nullptr : OpenFiles::at(info->fh).shared_from_this();
  Call call(request);
  MountWorker& worker = call.worker();
  const orangefs::Handle handle = call.files().handle_of(number);
  worker.spawn(set_attributes(std::move(call), std::move(file), handle, *wanted, which));
}

void setxattr(fuse_req_t request, fuse_ino_t number, const char* name, const char* value,
              std::size_t size, int flags) {
  Call call(request);
  if (!is_kept(name)) return call.fail(EOPNOTSUPP);
  const client::SetMode mode = flags == XATTR_CREATE    ? client::SetMode::create
                               : flags == XATTR_REPLACE ? client::SetMode::replace
                                                        : client::SetMode::any;
  MountWorker& worker = call.worker();
  const orangefs::Handle handle = call.files().handle_of(number);
  std::string content(value, size);
  worker.spawn(set_extended(std::move(call), handle, name, std::move(content), mode));
}

void removexattr(fuse_req_t request, fuse_ino_t number, const char* name) {
  Call call(request);
  if (!is_kept(name)) return call.fail(EOPNOTSUPP);
  MountWorker& worker = call.worker();
  const orangefs::Handle handle = call.files().handle_of(number);
  worker.spawn(remove_extended(std::move(call), handle, name));
}

void getxattr(fuse_req_t request, fuse_ino_t number, const char* name, std::size_t size) {
  Call call(request);
  // The kernel itself asks for some before it runs a program.
  if (!is_kept(name)) return call.fail(EOPNOTSUPP);
  MountWorker& worker = call.worker();
  const orangefs::Handle handle = call.files().handle_of(number);
  if (name == kLayoutName) return worker.spawn(get_layout(std::move(call), handle, size));
  worker.spawn(get_extended(std::move(call), handle, name, size));
}

void listxattr(fuse_req_t request, fuse_ino_t number, std::size_t size) {
  Call call(request);
  MountWorker& worker = call.worker();
  const orangefs::Handle handle = call.files().handle_of(number);
  worker.spawn(list_extended(std::move(call), handle, size));
}

}  // namespace

void add_attribute_operations(fuse_lowlevel_ops& operations) {
  operations.getattr = getattr;
  operations.setattr = setattr;
  operations.setxattr = setxattr;
  operations.getxattr = getxattr;
  operations.listxattr = listxattr;
  operations.removexattr = removexattr;
}

}  // namespace vpfs::fuse::pvfs
