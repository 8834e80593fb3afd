// The directory entries and extended attributes of Metadata.

#include <algorithm>
#include <cerrno>

#include "base/result.h"
#include "dataserver/orangefs/metadata.h"
#include "dataserver/orangefs/metadata_keys.h"

namespace vpfs::dataserver {
namespace {

using orangefs::Attributes;
using orangefs::Handle;
using orangefs::ObjectType;

constexpr std::size_t kMostNameSize = 255;
constexpr std::size_t kMostExtendedKeySize = 256;
constexpr std::size_t kMostExtendedValueSize = 8192;
constexpr std::uint32_t kMostEntriesAtOnce = 512;

// READDIR tokens: where a listing begins, and what a listing at its end returns. Real tokens are
// numbers of entries, which leave these two out.
constexpr std::uint64_t kReaddirStart = 0x7ffffffe;
constexpr std::uint64_t kReaddirEnd = 0x7ffffffd;
constexpr std::uint64_t kFirstNumber = 0x80000000;
// Clients keep 48 bits of a token.
constexpr std::uint64_t kEndOfNumbers = 1ULL << 47;

Outcome<void> check_name(std::string_view name) {
  if (name.size() > kMostNameSize) return refuse(ENAMETOOLONG);
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string_view::npos ||
      name.find('\0') != std::string_view::npos) {
    return refuse(EINVAL);
  }
  return {};
}

}  // namespace

Outcome<Attributes> Metadata::dirdata(Handle handle) {
  Outcome<Attributes> object = attributes(handle);
  if (object && object->type != ObjectType::dirdata) return refuse(ENOTDIR);
  return object;
}

void Metadata::touch_dirdata(ChangeSet& changes, Handle handle, Attributes attributes,
                             int difference) {
  attributes.directory.dirent_count += difference;
  attributes.mtime = attributes.ctime = now_seconds();
  put_object(changes, handle, attributes);
}

Outcome<Handle> Metadata::find_entry(Handle dirdata, std::string_view name) {
  VPFS_TRY(check_name(name));
  const Outcome<std::string> bytes = store_.get(entry_key(dirdata, name));
  VPFS_TRY(bytes);
  const Outcome<EntryValue> entry = decode_entry_value(*bytes);
  VPFS_TRY(entry);
  return entry->target;
}

Outcome<void> Metadata::add_entry(Handle dirdata_handle, std::string_view name, Handle target) {
  VPFS_TRY(check_name(name));
  const Outcome<Attributes> directory = dirdata(dirdata_handle);
  VPFS_TRY(directory);
  const Outcome<std::string> present = store_.get(entry_key(dirdata_handle, name));
  if (present) return refuse(EEXIST);
  if (present.error() != std::errc::no_such_file_or_directory)
    return std::unexpected(present.error());

  const std::string counter = order_key(dirdata_handle, 0);
  std::uint64_t number = kFirstNumber;
  const Outcome<std::string> kept = store_.get(counter);
  if (kept) number = from_big_endian(*kept);
  if (number >= kEndOfNumbers) return refuse(EMLINK);

  ChangeSet changes(store_);
  changes.put(counter, big_endian(number + 1));
  changes.put(order_key(dirdata_handle, number), name);
  changes.put(entry_key(dirdata_handle, name), encode({.number = number, .target = target}));
  touch_dirdata(changes, dirdata_handle, *directory, +1);
  return changes.apply();
}

Outcome<Handle> Metadata::remove_entry(Handle dirdata_handle, std::string_view name) {
  VPFS_TRY(check_name(name));
  const Outcome<Attributes> directory = dirdata(dirdata_handle);
  VPFS_TRY(directory);
  const Outcome<std::string> bytes = store_.get(entry_key(dirdata_handle, name));
  VPFS_TRY(bytes);
  const Outcome<EntryValue> entry = decode_entry_value(*bytes);
  VPFS_TRY(entry);

  ChangeSet changes(store_);
  changes.erase(entry_key(dirdata_handle, name));
  changes.erase(order_key(dirdata_handle, entry->number));
  touch_dirdata(changes, dirdata_handle, *directory, -1);
  VPFS_TRY(changes.apply());
  return entry->target;
}

Outcome<Handle> Metadata::change_entry(Handle dirdata_handle, std::string_view name,
                                       Handle target) {
  VPFS_TRY(check_name(name));
  const Outcome<Attributes> directory = dirdata(dirdata_handle);
  VPFS_TRY(directory);
  const Outcome<std::string> bytes = store_.get(entry_key(dirdata_handle, name));
  VPFS_TRY(bytes);
  Outcome<EntryValue> entry = decode_entry_value(*bytes);
  VPFS_TRY(entry);

  const Handle before = entry->target;
  entry->target = target;
  ChangeSet changes(store_);
  changes.put(entry_key(dirdata_handle, name), encode(*entry));
  touch_dirdata(changes, dirdata_handle, *directory, 0);
  VPFS_TRY(changes.apply());
  return before;
}

Outcome<orangefs::ReaddirResponse> Metadata::entries(Handle dirdata_handle, std::uint64_t token,
                                                     std::uint32_t limit) {
  const Outcome<Attributes> directory = dirdata(dirdata_handle);
  VPFS_TRY(directory);
  orangefs::ReaddirResponse response;
  response.directory_version = directory->mtime;
  response.token = kReaddirEnd;
  if (token == kReaddirEnd) return response;
  const std::uint64_t first = token == kReaddirStart ? kFirstNumber : token + 1;
  const std::string prefix = order_prefix(dirdata_handle);
  std::string from = order_key(dirdata_handle, std::max(first, kFirstNumber));
  limit = std::min(limit, kMostEntriesAtOnce);
  while (response.entries.size() < limit) {
    const Outcome<KeyValueStore::Entry> next = store_.first_from(from);
    if (!next && next.error() != std::errc::no_such_file_or_directory)
      return std::unexpected(next.error());
    if (!next || !next->key.starts_with(prefix)) return response;
    const Outcome<Handle> target = find_entry(dirdata_handle, next->value);
    if (!target) return refuse(EIO);
    response.entries.push_back({.name = next->value, .handle = *target});
    from = next->key + '\0';
  }
  if (!response.entries.empty()) {
    response.token = from_big_endian(std::string_view(from).substr(prefix.size(), 8));
  }
  return response;
}

Outcome<std::string> Metadata::extended(Handle handle, std::string_view key) {
  if (key.size() > kMostExtendedKeySize) return refuse(ENAMETOOLONG);
  return store_.get(extended_key(handle, key));
}

Outcome<void> Metadata::set_extended(Handle handle, std::span<const std::string> keys,
                                     std::span<const std::string> values, IfPresent rule) {
  const Outcome<Attributes> object = attributes(handle);
  VPFS_TRY(object);
  if (keys.size() != values.size()) return refuse(EINVAL);
  ChangeSet changes(store_);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].empty()) return refuse(EINVAL);
    if (values[i].size() > kMostExtendedValueSize) return refuse(ENOSPC);
    const Outcome<std::string> present = extended(handle, keys[i]);
    if (!present && present.error() != std::errc::no_such_file_or_directory)
      return std::unexpected(present.error());
    if (present && rule == IfPresent::must_not_be) return refuse(EEXIST);
    if (!present && rule == IfPresent::must_be) return refuse(ENODATA);
    changes.put(extended_key(handle, keys[i]), values[i]);
  }
  return changes.apply();
}

Outcome<void> Metadata::remove_extended(Handle handle, std::string_view key) {
  const Outcome<std::string> present = extended(handle, key);
  VPFS_TRY(present);
  ChangeSet changes(store_);
  changes.erase(extended_key(handle, key));
  return changes.apply();
}

Outcome<std::vector<std::string>> Metadata::extended_keys(Handle handle) {
  const Outcome<Attributes> object = attributes(handle);
  VPFS_TRY(object);
  std::vector<std::string> keys;
  const std::string prefix = extended_key(handle, "");
  std::string from = prefix;
  for (;;) {
    const Outcome<KeyValueStore::Entry> next = store_.first_from(from);
    if (!next && next.error() != std::errc::no_such_file_or_directory)
      return std::unexpected(next.error());
    if (!next || !next->key.starts_with(prefix)) return keys;
    keys.push_back(next->key.substr(prefix.size()));
    from = next->key + '\0';
  }
}

}  // namespace vpfs::dataserver
