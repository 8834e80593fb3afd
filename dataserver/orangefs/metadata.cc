#include "dataserver/orangefs/metadata.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/result.h"
#include "dataserver/orangefs/metadata_keys.h"

namespace vpfs::dataserver {
namespace {

using orangefs::Attributes;
using orangefs::Handle;
using orangefs::ObjectType;

// Owner and permissions of a new object; all times are now.
Attributes fresh(const Attributes& wanted, ObjectType type, std::uint64_t now) {
  Attributes attributes;
  attributes.uid = wanted.uid;
  attributes.gid = wanted.gid;
  attributes.permissions = wanted.permissions;
  attributes.atime = attributes.mtime = attributes.ctime = now;
  attributes.type = type;
  attributes.mask = orangefs::kAttrCommonAll;
  return attributes;
}

// Clients want the length with the closing NUL, or zero for no target.
void set_target(Attributes& link, const std::string& target) {
  link.symlink_target = target;
  link.symlink_target_length = target.empty() ? 0 : static_cast<std::uint32_t>(target.size() + 1);
}

}  // namespace

Metadata::Metadata(KeyValueStore& store, const HandleRanges& ranges, std::uint32_t self,
                   WallClock clock)
    : store_(store),
      ranges_(ranges),
      self_(self),
      clock_(std::move(clock)),
      first_serial_(ranges.first_serial(clock_().count())) {}

std::uint64_t Metadata::now_seconds() const {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::seconds>(clock_()).count());
}

Outcome<void> Metadata::open() {
  if (ranges_.server_of(HandleRanges::kRoot) != self_) return {};
  const Outcome<Attributes> root = attributes(HandleRanges::kRoot);
  if (root) return {};
  if (root.error() != std::errc::no_such_file_or_directory) return std::unexpected(root.error());
  ChangeSet changes(store_);
  const Outcome<std::uint64_t> serial = take_serials(changes, 1);
  VPFS_TRY(serial);
  Attributes wanted;
  wanted.permissions = 0777;
  make_directory(changes, HandleRanges::kRoot, ranges_.meta_handle(self_, *serial), wanted);
  return changes.apply();
}

Outcome<std::uint64_t> Metadata::take_serials(ChangeSet& changes, std::uint64_t count) {
  std::uint64_t next = first_serial_;
  const Outcome<std::string> kept = store_.get(kSerialKey);
  if (kept) {
    next = std::max(next, from_big_endian(*kept));
  } else if (kept.error() != std::errc::no_such_file_or_directory) {
    return std::unexpected(kept.error());
  }
  if (next + count > ranges_.serial_limit()) return refuse(ENOSPC);
  changes.put(kSerialKey, big_endian(next + count));
  return next;
}

void Metadata::put_object(ChangeSet& changes, Handle handle, const Attributes& attributes) {
  changes.put(object_key(handle), encode(attributes));
}

Outcome<Attributes> Metadata::attributes(Handle handle) {
  const Outcome<std::string> bytes = store_.get(object_key(handle));
  VPFS_TRY(bytes);
  return decode_attributes(*bytes);
}

Outcome<void> Metadata::set_attributes(Handle handle, const Attributes& wanted) {
  Outcome<Attributes> object = attributes(handle);
  VPFS_TRY(object);
  const std::uint64_t now = now_seconds();
  const auto has = [&](std::uint32_t bit) { return (wanted.mask & bit) != 0; };
  if (has(orangefs::kAttrUid)) object->uid = wanted.uid;
  if (has(orangefs::kAttrGid)) object->gid = wanted.gid;
  if (has(orangefs::kAttrPermissions)) object->permissions = wanted.permissions;
  if (has(orangefs::kAttrAtime)) object->atime = has(orangefs::kAttrAtimeSet) ? wanted.atime : now;
  if (has(orangefs::kAttrMtime)) object->mtime = has(orangefs::kAttrMtimeSet) ? wanted.mtime : now;
  if (has(orangefs::kAttrSymlinkTarget)) {
    if (object->type != ObjectType::symlink) return refuse(EINVAL);
    set_target(*object, wanted.symlink_target);
  }
  // Real servers leave that of a symbolic link unless they are asked.
  if (object->type != ObjectType::symlink || has(orangefs::kAttrCtime)) object->ctime = now;

  ChangeSet changes(store_);
  put_object(changes, handle, *object);
  if (object->type == ObjectType::directory && has(orangefs::kAttrMtime)) {
    // Clients take a directory's times from its dirdata.
    const Handle entries = object->distributed.dirdata_handles.front();
    Outcome<Attributes> kept = dirdata(entries);
    VPFS_TRY(kept);
    kept->mtime = object->mtime;
    kept->ctime = now;
    put_object(changes, entries, *kept);
  }
  return changes.apply();
}

Outcome<Attributes> Metadata::create_file(const Attributes& wanted,
                                          std::span<const std::uint32_t> placement,
                                          Handle* handle) {
  ChangeSet changes(store_);
  const Outcome<std::uint64_t> serial = take_serials(changes, 1);
  VPFS_TRY(serial);
  Attributes file = fresh(wanted, ObjectType::metafile, now_seconds());
  file.mask |=
      orangefs::kAttrMetaDistribution | orangefs::kAttrMetaDatafiles | orangefs::kAttrMetaUnstuffed;
  file.distribution = wanted.distribution;
  for (const std::uint32_t server : placement) {
    file.datafiles.push_back(ranges_.datafile_handle(self_, server, *serial));
  }
  *handle = ranges_.meta_handle(self_, *serial);
  put_object(changes, *handle, file);
  VPFS_TRY(changes.apply());
  return file;
}

void Metadata::make_directory(ChangeSet& changes, Handle directory, Handle dirdata,
                              const Attributes& wanted) {
  Attributes object = fresh(wanted, ObjectType::directory, now_seconds());
  object.mask |= orangefs::kAttrDistDir | orangefs::kAttrDirHint;
  object.distributed.split_size = 100;
  object.distributed.bitmap = {1};
  object.distributed.dirdata_handles = {dirdata};
  object.directory = wanted.directory;
  object.directory.dirent_count = 0;
  put_object(changes, directory, object);

  Attributes entries = fresh(wanted, ObjectType::dirdata, now_seconds());
  entries.mask |= orangefs::kAttrDirentCount;
  put_object(changes, dirdata, entries);
}

Outcome<Handle> Metadata::create_directory(const Attributes& wanted) {
  ChangeSet changes(store_);
  const Outcome<std::uint64_t> serial = take_serials(changes, 2);
  VPFS_TRY(serial);
  const Handle directory = ranges_.meta_handle(self_, *serial);
  make_directory(changes, directory, ranges_.meta_handle(self_, *serial + 1), wanted);
  VPFS_TRY(changes.apply());
  return directory;
}

Outcome<Handle> Metadata::create_symlink(const Attributes& wanted) {
  ChangeSet changes(store_);
  const Outcome<std::uint64_t> serial = take_serials(changes, 1);
  VPFS_TRY(serial);
  Attributes link = fresh(wanted, ObjectType::symlink, now_seconds());
  link.mask |= orangefs::kAttrSymlinkTarget;
  set_target(link, wanted.symlink_target);
  const Handle handle = ranges_.meta_handle(self_, *serial);
  put_object(changes, handle, link);
  VPFS_TRY(changes.apply());
  return handle;
}

Outcome<Attributes> Metadata::remove(Handle handle) {
  Outcome<Attributes> object = attributes(handle);
  if (!object) return object;
  if (object->type == ObjectType::dirdata || handle == HandleRanges::kRoot) return refuse(EPERM);
  ChangeSet changes(store_);
  if (object->type == ObjectType::directory) {
    const Handle entries = object->distributed.dirdata_handles.front();
    const Outcome<Attributes> kept = dirdata(entries);
    VPFS_TRY(kept);
    if (kept->directory.dirent_count != 0) return refuse(ENOTEMPTY);
    changes.erase(object_key(entries));
    changes.erase(order_key(entries, 0));
  }
  VPFS_TRY(erase_with_prefix(changes, extended_key(handle, "")));
  changes.erase(object_key(handle));
  VPFS_TRY(changes.apply());
  return object;
}

Outcome<void> Metadata::erase_with_prefix(ChangeSet& changes, std::string_view prefix) {
  std::string from(prefix);
  for (;;) {
    const Outcome<KeyValueStore::Entry> entry = store_.first_from(from);
    if (!entry && entry.error() != std::errc::no_such_file_or_directory)
      return std::unexpected(entry.error());
    if (!entry || !entry->key.starts_with(prefix)) return {};
    changes.erase(entry->key);
    from = entry->key + '\0';
  }
}

Outcome<std::vector<Handle>> Metadata::handles(Handle from, std::uint32_t limit) {
  std::vector<Handle> found;
  std::string next = object_key(from);
  while (found.size() < limit) {
    const Outcome<KeyValueStore::Entry> entry = store_.first_from(next);
    if (!entry && entry.error() != std::errc::no_such_file_or_directory)
      return std::unexpected(entry.error());
    if (!entry || !entry->key.starts_with("o")) break;
    found.push_back(from_big_endian(std::string_view(entry->key).substr(1)));
    next = entry->key + '\0';
  }
  return found;
}

}  // namespace vpfs::dataserver
