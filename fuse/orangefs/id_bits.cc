#include "fuse/orangefs/id_bits.h"

#include <memory>
#include <utility>

#include "base/result.h"
#include "client/orangefs/file_system.h"
#include "fuse/orangefs/mount_worker.h"

namespace vpfs::fuse::pvfs {
namespace {

constexpr std::uint32_t kSetUserId = 04000;
constexpr std::uint32_t kSetGroupId = 02000;
constexpr std::uint32_t kGroupExecutes = 00010;

}  // namespace

std::optional<std::uint32_t> mode_after_change(const client::Stat& object) {
  if (object.type != orangefs::ObjectType::metafile) return std::nullopt;
  std::uint32_t kept = object.permissions & ~kSetUserId;
  // Without the group's execute bit, set-group-id once meant mandatory locks.
  if ((object.permissions & kGroupExecutes) != 0) kept &= ~kSetGroupId;
  return kept == object.permissions ? std::nullopt : std::optional(kept);
}

net::Task<Result<void>> clear_id_bits(MountWorker& worker, client::CallerPtr caller,
                                      orangefs::Handle handle) {
  client::FileSystem servers = worker.session().as(std::move(caller));
  const Result<client::Stat> known = co_await servers.owner_and_mode(handle);
  VPFS_CO_TRY(known);
  if (!mode_after_change(*known)) co_return Result<void>();
  // A mode that is out of date must not come back.
  const Result<client::Stat> object = co_await servers.stat(handle);
  VPFS_CO_TRY(object);
  client::AttributeChanges changes;
  changes.permissions = mode_after_change(*object);
  if (!changes.permissions) co_return Result<void>();
  // Only the owner may change a mode, and the caller need not be that.
  const auto owner = std::make_shared<client::Caller>();
  owner->uid = object->uid;
  owner->gid = object->gid;
  client::FileSystem as_owner = worker.session().as(owner);
  co_return co_await as_owner.set_attributes(handle, changes);
}

}  // namespace vpfs::fuse::pvfs
