#include "fuse/orangefs/io.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <functional>
#include <optional>
#include <utility>

#include <asio/steady_timer.hpp>
#include <spdlog/spdlog.h>

#include "base/result.h"
#include "client/orangefs/session.h"
#include "fuse/orangefs/id_bits.h"
#include "fuse/orangefs/mount_worker.h"

namespace vpfs::fuse::pvfs {
namespace {

// How often operations that wait for abandoned changes look whether these are done.
constexpr Duration kLookForChanges = std::chrono::milliseconds(10);

// By how many seconds the clock of another node may be ahead. A later time was set by a user.
constexpr std::uint64_t kClocksDiffer = 60;

std::uint64_t now_seconds() {
  return static_cast<std::uint64_t>(std::time(nullptr));
}

// Nothing has the number of a file that another node has destroyed.
int errno_of_object(const Error& error) {
  const int number = client::errno_of(error);
  return number == ENOENT ? ESTALE : number;
}

net::Task<Result<client::File*>> opened_as(MountWorker& worker, client::CallerPtr caller,
                                           const OpenFile& file,
                                           std::unique_ptr<client::File>& own) {
  if (!own) {
    client::FileSystem servers = worker.session().as(std::move(caller));
    std::optional<orangefs::Capability> right = file.right;
    Result<std::unique_ptr<client::File>> opened =
        co_await servers.open(file.handle, std::move(right));
    VPFS_CO_TRY(opened);
    // Another request may have been faster.
    if (!own) own = std::move(*opened);
  }
  co_return own.get();
}

// With the same job.
client::CallerPtr root_for(const client::Caller& caller) {
  const auto root = std::make_shared<client::Caller>(caller);
  root->uid = 0;
  root->gid = 0;
  root->groups.clear();
  return root;
}

template <typename Value>
using Operation = std::function<net::Task<Result<Value>>(client::File&)>;

// What a process does with a file that it has open. The kernel has looked at the mode then, so a
// mount of root goes on where the servers refuse: git writes files that it has made read-only.
template <typename Value>
net::Task<Result<Value>> on_file(MountWorker& worker, OpenFilePtr file,
                                 const Operation<Value>& operation) {
  OpenFile::Opened& opened = file->by_worker[worker.index()];
  if (!opened.by_root) {
    const Result<client::File*> own = co_await file_of(worker, file);
    VPFS_CO_TRY(own);
    Result<Value> result = co_await operation(**own);
    const bool refused = !result && client::errno_of(result.error()) == EACCES;
    if (!refused || worker.session().caller()->uid != 0) co_return result;
  }
  client::CallerPtr root = root_for(*file->caller);
  const Result<client::File*> own =
      co_await opened_as(worker, std::move(root), *file, opened.by_root);
  VPFS_CO_TRY(own);
  co_return co_await operation(**own);
}

// Where an append begins that the kernel has begin at an offset. Abandoned writes may have made the
// file longer, and abandoned truncations shorter. Another node may have cut it since.
net::Task<std::uint64_t> end_of(MountWorker& worker, OpenFilePtr file, std::uint64_t offset) {
  client::FileSystem servers = worker.session();
  const Result<client::Stat> now = co_await servers.stat(file->handle);
  std::atomic<std::uint64_t>& furthest = file->object->abandoned_end;
  std::uint64_t before = furthest;
  while (now && now->size < before && !furthest.compare_exchange_weak(before, now->size)) {
  }
  if (now && file->object->was_cut_unseen) co_return now->size;
  co_return std::max(offset, furthest.load());
}

net::Task<Result<void>> write_from(MountWorker& worker, const IoMessage& message,
                                   const Buffer& buffer) {
  if (message.clears_id_bits) {
    Result<void> cleared =
        co_await clear_id_bits(worker, message.file->caller, message.file->handle);
    if (!cleared) co_return cleared;
  }
  const std::span<const std::byte> from = buffer.data().first(message.size);
  const Operation<void> write_here = [&](client::File& own) {
    return own.write(message.offset, from);
  };
  Result<void> written = co_await on_file(worker, message.file, write_here);
  if (written && message.clears_id_bits) {
    // Their owner may have set them since. What is known is not asked again.
    written = co_await clear_id_bits(worker, message.file->caller, message.file->handle);
  }
  if (written && message.syncs) {
    client::FileSystem servers = worker.session().as(message.file->caller);
    written = co_await servers.flush(message.file->handle);
  }
  co_return written;
}

}  // namespace

void note_cut(OpenObject& object) {
  object.abandoned_end = 0;
  object.was_cut_unseen = false;
}

void note_unknown_end(MountWorker& worker, const OpenFile& file, std::uint64_t end) {
  std::atomic<std::uint64_t>& furthest = file.object->abandoned_end;
  std::uint64_t before = furthest;
  while (before < end && !furthest.compare_exchange_weak(before, end)) {
  }
  worker.channel().attributes_changed(worker.files().number_of(file.handle));
}

net::Task<Result<client::File*>> file_of(MountWorker& worker, OpenFilePtr file) {
  std::unique_ptr<client::File>& own = file->by_worker[worker.index()].by_caller;
  co_return co_await opened_as(worker, file->caller, *file, own);
}

net::Task<Result<void>> truncate(MountWorker& worker, OpenFilePtr file, std::uint64_t size) {
  const Operation<void> cut = [size](client::File& own) { return own.truncate(size); };
  co_return co_await on_file(worker, file, cut);
}

net::Task<> read(MountWorker& worker, IoMessage message) {
  std::unique_ptr<Buffer> buffer = worker.take_buffer(message.size);
  const std::span<std::byte> into = buffer->data().first(message.size);
  const Operation<std::uint64_t> read_here = [&](client::File& own) {
    return own.read(message.offset, into);
  };
  const Result<std::uint64_t> size = co_await on_file(worker, message.file, read_here);
  worker.running().remove(message.unique);
  if (size) {
    worker.channel().answer(message.unique, into.first(static_cast<std::size_t>(*size)));
  } else {
    worker.channel().fail(message.unique, errno_of_object(size.error()));
  }
  worker.give_back(std::move(buffer));
}

OpenFilePtr new_open_file(MountWorker& worker, client::CallerPtr opener, orangefs::Handle handle) {
  auto file = std::make_shared<OpenFile>(handle, std::move(opener), worker.files().workers());
  // Before the servers are asked, so that a removal of the name meanwhile leaves the file.
  file->object = worker.files().objects().open(handle);
  return file->object ? file : nullptr;
}

net::Task<> close_file(MountWorker& worker, OpenFilePtr file) {
  const MountWorker::Duty duty(worker);
  co_await abandoned_changes_done(file->object);
  (void)co_await tell_time_of_write(worker, file);
  std::optional<client::LastName> last = worker.files().objects().close(file->handle);
  if (!last) co_return;
  client::FileSystem servers = worker.session();
  const Result<void> destroyed = co_await servers.destroy(file->handle, std::move(*last));
  if (!destroyed) {
    spdlog::warn("the removed file {} keeps its space: {}", file->handle,
                 destroyed.error().message);
  }
  worker.files().objects().forget_end(file->handle);
}

net::Task<> abandoned_changes_done(std::shared_ptr<const OpenObject> object) {
  if (object->abandoned_changes == 0) co_return;
  asio::steady_timer timer(co_await asio::this_coro::executor);
  while (object->abandoned_changes > 0) {
    timer.expires_after(kLookForChanges);
    co_await timer.async_wait(net::kUseTask);
  }
}

net::Task<> write(MountWorker& worker, IoMessage message, std::unique_ptr<Buffer> buffer) {
  const std::shared_ptr<OpenObject> object = message.file->object;
  co_await abandoned_changes_done(object);
  if (worker.running().begin_change(message.unique, object)) {
    const std::uint64_t kernels_offset = message.offset;
    const bool is_unsure = object->was_cut_unseen || message.offset < object->abandoned_end;
    if (message.appends && is_unsure) {
      message.offset = co_await end_of(worker, message.file, message.offset);
    }
    const Result<void> written = co_await write_from(worker, message, *buffer);
    if (written) {
      ++object->writes;
      object->written_at = now_seconds();
    }
    const bool is_awaited = worker.running().remove(message.unique);
    if (written && (!is_awaited || message.offset != kernels_offset)) {
      note_unknown_end(worker, *message.file, message.offset + message.size);
    }
    if (!is_awaited) {
      --object->abandoned_changes;
    } else if (written) {
      worker.channel().answer_write(message.unique, static_cast<std::uint32_t>(message.size));
    } else {
      worker.channel().fail(message.unique, errno_of_object(written.error()));
    }
  }
  worker.give_back(std::move(buffer));
}

net::Task<Result<void>> tell_time_of_write(MountWorker& worker, OpenFilePtr file) {
  std::uint64_t written_at = file->object->written_at;
  if (written_at == 0) co_return Result<void>();
  const std::uint64_t latest = now_seconds() + kClocksDiffer;
  client::FileSystem servers = worker.session().as(file->caller);
  Result<void> told = co_await servers.set_time_of_write(file->handle, written_at, latest);
  // As in on_file(): the mode may have changed since.
  const bool refused = !told && client::errno_of(told.error()) == EACCES;
  if (refused && worker.session().caller()->uid == 0) {
    client::FileSystem as_root = worker.session().as(root_for(*file->caller));
    told = co_await as_root.set_time_of_write(file->handle, written_at, latest);
  }
  // Until then others are told that time here, and after a failure the next close tries again.
  if (told) file->object->written_at.compare_exchange_strong(written_at, 0);
  co_return told;
}

}  // namespace vpfs::fuse::pvfs
