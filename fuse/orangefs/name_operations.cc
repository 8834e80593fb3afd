// Operations on names: look-ups, and everything that makes, moves or removes one.
#include <cerrno>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/stat.h>

#include "fuse/orangefs/call.h"
#include "fuse/orangefs/file_system.h"

namespace vpfs::fuse::pvfs {
namespace {

// A flag of renameat2(2); <stdio.h> has it for GNU programs only.
constexpr unsigned kNoReplace = 1;

void answer_entry(Call& call, const client::Stat& object) {
  const fuse_entry_param entry = call.files().entry_of(object);
  fuse_reply_entry(call.take(), &entry);
}

// The attributes of what a name leads to, for the kernel.
net::Task<> answer_object(Call& call, orangefs::Handle handle) {
  const Result<client::Stat> object = co_await call.servers().stat(handle);
  if (!object) co_return call.fail(object.error());
  answer_entry(call, *object);
}

net::Task<> look_up(Call call, orangefs::Handle directory, std::string name) {
  const Result<client::Stat> object = co_await call.servers().stat_name(directory, std::move(name));
  if (!object) co_return call.fail(object.error());
  answer_entry(call, *object);
}

net::Task<> make_file(Call call, orangefs::Handle directory, std::string name,
                      std::uint32_t permissions) {
  const pid_t process = fuse_req_ctx(call.request())->pid;
  std::vector<std::size_t> servers =
      co_await call.files().placement().servers_for(call.servers(), directory, process);
  const Result<std::unique_ptr<client::File>> made = co_await call.servers().create_and_open(
      directory, std::move(name), permissions, 0, std::move(servers));
  if (!made) co_return call.fail(made.error());
  answer_entry(call, (*made)->status());
}

net::Task<> make_directory(Call call, orangefs::Handle directory, std::string name,
                           std::uint32_t permissions) {
  const Result<orangefs::Handle> made =
      co_await call.servers().mkdir(directory, std::move(name), permissions);
  if (!made) co_return call.fail(made.error());
  // A new directory has the layout of the one that it is in.
  const std::optional<Layout> layout =
      co_await call.files().placement().layout_of(call.servers(), directory);
  if (layout) {
    std::string key(kLayoutName);
    std::string text = to_text(*layout);
    (void)co_await call.servers().set_extended(*made, std::move(key), std::move(text));
  }
  co_await answer_object(call, *made);
}

net::Task<> make_link(Call call, orangefs::Handle directory, std::string name, std::string target) {
  const Result<orangefs::Handle> made =
      co_await call.servers().symlink(directory, std::move(name), std::move(target));
  if (!made) co_return call.fail(made.error());
  co_await answer_object(call, *made);
}

net::Task<> read_link(Call call, orangefs::Handle link) {
  const Result<std::string> target = co_await call.servers().readlink(link);
  if (!target) co_return call.fail_object(target.error());
  fuse_reply_readlink(call.take(), target->c_str());
}

// An object that loses its last name in an operation. If it is open through this mount it stays
// until its last close; while it is destroyed it cannot be opened. Outlives the operation.
class LostName {
 public:
  explicit LostName(OpenObjects& objects) : objects_(objects) {}
  ~LostName() {
    for (const orangefs::Handle handle : destroyed_) objects_.forget_end(handle);
  }
  LostName(const LostName&) = delete;
  LostName& operator=(const LostName&) = delete;

  [[nodiscard]] client::Keep keep() {
    return [this](orangefs::Handle handle, client::LastName last) {
      const bool kept = objects_.keep(handle, std::move(last));
      if (!kept) destroyed_.push_back(handle);
      return kept;
    };
  }

 private:
  OpenObjects& objects_;
  std::vector<orangefs::Handle> destroyed_;
};

net::Task<> remove_name(Call call, orangefs::Handle directory, std::string name,
                        client::Removal what) {
  LostName lost(call.files().objects());
  client::Keep keep = lost.keep();
  std::optional<MountWorker::Duty> duty;
  client::Gone gone = [&call, &duty] {
    duty.emplace(call.worker());
    call.succeed();
  };
  const Result<void> removed = co_await call.servers().remove(directory, std::move(name), what,
                                                              std::move(keep), std::move(gone));
  if (duty) co_return;
  if (!removed) co_return call.fail(removed.error());
  call.succeed();
}

net::Task<> move_name(Call call, orangefs::Handle directory, std::string name,
                      orangefs::Handle new_directory, std::string new_name, client::Renaming how) {
  LostName lost(call.files().objects());
  client::Keep keep = lost.keep();
  const Result<void> moved = co_await call.servers().rename(
      directory, std::move(name), new_directory, std::move(new_name), how, std::move(keep));
  if (!moved) co_return call.fail(moved.error());
  call.succeed();
}

// That a name is not there is not kept by the kernel: another node may make it.
void lookup(fuse_req_t request, fuse_ino_t parent, const char* name) {
  Call call(request);
  MountWorker& worker = call.worker();
  const orangefs::Handle directory = call.files().handle_of(parent);
  worker.spawn(look_up(std::move(call), directory, name));
}

// Nothing is kept for what the kernel knows.
void forget(fuse_req_t request, fuse_ino_t /*number*/, std::uint64_t /*lookups*/) {
  fuse_reply_none(request);
}

void forget_multi(fuse_req_t request, std::size_t /*count*/, fuse_forget_data* /*all*/) {
  fuse_reply_none(request);
}

void mknod(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode, dev_t /*device*/) {
  Call call(request);
  // OrangeFS has no devices, pipes and sockets.
  if (!S_ISREG(mode)) return call.fail(EPERM);
  MountWorker& worker = call.worker();
  const orangefs::Handle directory = call.files().handle_of(parent);
  worker.spawn(make_file(std::move(call), directory, name, mode & ALLPERMS));
}

void mkdir(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode) {
  Call call(request);
  MountWorker& worker = call.worker();
  const orangefs::Handle directory = call.files().handle_of(parent);
  worker.spawn(make_directory(std::move(call), directory, name, mode & ALLPERMS));
}

void symlink(fuse_req_t request, const char* target, fuse_ino_t parent, const char* name) {
  Call call(request);
  MountWorker& worker = call.worker();
  const orangefs::Handle directory = call.files().handle_of(parent);
  worker.spawn(make_link(std::move(call), directory, name, target));
}

void readlink(fuse_req_t request, fuse_ino_t number) {
  Call call(request);
  MountWorker& worker = call.worker();
  const orangefs::Handle link = call.files().handle_of(number);
  worker.spawn(read_link(std::move(call), link));
}

void unlink(fuse_req_t request, fuse_ino_t parent, const char* name) {
  Call call(request);
  MountWorker& worker = call.worker();
  const orangefs::Handle directory = call.files().handle_of(parent);
  worker.spawn(remove_name(std::move(call), directory, name, client::Removal::not_directory));
}

void rmdir(fuse_req_t request, fuse_ino_t parent, const char* name) {
  Call call(request);
  MountWorker& worker = call.worker();
  const orangefs::Handle directory = call.files().handle_of(parent);
  worker.spawn(remove_name(std::move(call), directory, name, client::Removal::directory));
}

void rename(fuse_req_t request, fuse_ino_t parent, const char* name, fuse_ino_t new_parent,
            const char* new_name, unsigned flags) {
  Call call(request);
  if ((flags & ~kNoReplace) != 0) return call.fail(EINVAL);
  MountWorker& worker = call.worker();
  const orangefs::Handle directory = call.files().handle_of(parent);
  const orangefs::Handle new_directory = call.files().handle_of(new_parent);
  const auto how = flags == kNoReplace ? client::Renaming::keep : client::Renaming::replace;
  worker.spawn(move_name(std::move(call), directory, name, new_directory, new_name, how));
}

void link(fuse_req_t request, fuse_ino_t /*number*/, fuse_ino_t /*parent*/, const char* /*name*/) {
  // As link(2) has it where a file system knows no hard links.
  fuse_reply_err(request, EPERM);
}

}  // namespace

void add_name_operations(fuse_lowlevel_ops& operations) {
  operations.lookup = lookup;
  operations.forget = forget;
  operations.forget_multi = forget_multi;
  operations.mknod = mknod;
  operations.mkdir = mkdir;
  operations.symlink = symlink;
  operations.readlink = readlink;
  operations.unlink = unlink;
  operations.rmdir = rmdir;
  operations.rename = rename;
  operations.link = link;
}

}  // namespace vpfs::fuse::pvfs
