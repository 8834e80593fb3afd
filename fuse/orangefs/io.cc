#include "fuse/orangefs/io.h"

#include <cerrno>
#include <ctime>
#include <utility>

#include "client/orangefs/session.h"
#include "fuse/orangefs/worker.h"

namespace vpfs::fuse::pvfs {
namespace {

constexpr std::uint32_t kSetUserId = 04000;
constexpr std::uint32_t kSetGroupId = 02000;
constexpr std::uint32_t kGroupExecutes = 00010;

std::uint64_t now_seconds() {
  return static_cast<std::uint64_t>(std::time(nullptr));
}

// What a write by somebody who is not root leaves of a mode.
std::uint32_t without_id_bits(std::uint32_t permissions) {
  std::uint32_t kept = permissions & ~kSetUserId;
  // Without the group's execute bit, set-group-id once meant mandatory locks.
  if ((permissions & kGroupExecutes) != 0) kept &= ~kSetGroupId;
  return kept;
}

net::Task<Result<void>> clear_id_bits(Worker& worker, const OpenFile& file, client::File& own) {
  const std::uint32_t kept = without_id_bits(own.status().permissions);
  if (kept == own.status().permissions) co_return Result<void>();
  // Only the owner may change a mode, and the writer need not be that.
  const auto owner = std::make_shared<client::Caller>();
  owner->uid = own.status().uid;
  owner->gid = own.status().gid;
  client::FileSystem servers = worker.session().as(owner);
  client::AttributeChanges changes;
  changes.permissions = kept;
  co_return co_await servers.set_attributes(file.handle, changes);
}

void answer(Worker& worker, std::uint64_t unique, const Error& error) {
  worker.running().remove(unique);
  worker.channel().fail(unique, client::errno_of(error));
}

}  // namespace

net::Task<Result<client::File*>> file_of(Worker& worker, OpenFilePtr file) {
  std::unique_ptr<client::File>& own = file->by_worker[worker.index()];
  if (!own) {
    client::FileSystem servers = worker.session().as(file->caller);
    Result<std::unique_ptr<client::File>> opened = co_await servers.open(file->handle);
    if (!opened) co_return std::unexpected(std::move(opened.error()));
    // Another request may have been faster.
    if (!own) own = std::move(*opened);
  }
  co_return own.get();
}

net::Task<> read(Worker& worker, IoMessage message) {
  const Result<client::File*> own = co_await file_of(worker, message.file);
  if (!own) co_return answer(worker, message.unique, own.error());
  std::unique_ptr<Buffer> buffer = worker.take_buffer();
  const std::span<std::byte> into = buffer->data().first(message.size);
  const Result<std::uint64_t> size = co_await (*own)->read(message.offset, into);
  if (size) {
    worker.running().remove(message.unique);
    worker.channel().answer(message.unique, into.first(static_cast<std::size_t>(*size)));
  } else {
    answer(worker, message.unique, size.error());
  }
  worker.give_back(std::move(buffer));
}

net::Task<> write(Worker& worker, IoMessage message, std::unique_ptr<Buffer> buffer) {
  const Result<client::File*> own = co_await file_of(worker, message.file);
  if (!own) co_return answer(worker, message.unique, own.error());
  Result<void> written;
  if (message.clears_id_bits) written = co_await clear_id_bits(worker, *message.file, **own);
  if (written) {
    const std::span<const std::byte> from = buffer->data().first(message.size);
    written = co_await (*own)->write(message.offset, from);
  }
  if (written) {
    message.file->object->written_at = now_seconds();
    worker.running().remove(message.unique);
    worker.channel().answer_write(message.unique, static_cast<std::uint32_t>(message.size));
  } else {
    answer(worker, message.unique, written.error());
  }
  worker.give_back(std::move(buffer));
}

net::Task<Result<void>> tell_time_of_write(Worker& worker, OpenFilePtr file) {
  const std::uint64_t written_at = file->object->written_at.exchange(0);
  if (written_at == 0) co_return Result<void>();
  client::FileSystem servers = worker.session().as(file->caller);
  client::AttributeChanges changes;
  changes.mtime = written_at;
  co_return co_await servers.set_attributes(file->handle, changes);
}

}  // namespace vpfs::fuse::pvfs
