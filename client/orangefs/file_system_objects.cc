// The part of FileSystem that lists directories, and all kinds of attributes.
#include <algorithm>
#include <cerrno>
#include <iterator>
#include <memory>
#include <utility>
#include <variant>

#include "base/result.h"
#include "client/orangefs/change.h"
#include "client/orangefs/file_system.h"
#include "client/orangefs/object.h"
#include "net/gather.h"

namespace vpfs::client {
namespace {

// Tokens of READDIR and LISTEATTR.
constexpr std::uint64_t kListStart = 0x7ffffffe;
constexpr std::uint64_t kListEnd = 0x7ffffffd;
constexpr std::uint32_t kEntriesAtOnce = 512;  // PVFS_REQ_LIMIT_DIRENT_COUNT
constexpr std::size_t kMostPlacesAtOnce = 64;
constexpr std::int64_t kLargestValue = 8192;  // of an extended attribute
constexpr std::int64_t kLargestKey = 256;
constexpr std::size_t kLargestList = 65536;  // of keys with their NULs; XATTR_LIST_MAX
constexpr std::size_t kKeysAtOnce = 8;       // more are invalid

// Keys end with a NUL on the wire.
std::string wire_key(std::string key) {
  key.push_back('\0');
  return key;
}

}  // namespace

net::Task<Result<DirectoryPage>> FileSystem::page_of(Directory& directory, DirectoryCursor from) {
  DirectoryPage page;
  page.end = from.place >= directory.attributes->distributed.dirdata_handles.size();
  if (page.end) co_return page;
  const MakeQuestion make = [&](const orangefs::Attributes& its) {
    const std::vector<orangefs::Handle>& places = its.distributed.dirdata_handles;
    const orangefs::Handle place = places[std::min(from.place, places.size() - 1)];
    return Question{.server = session().server_of(place),
                    .body = orangefs::ReaddirRequest{.handle = place,
                                                     .fs_id = config().fs_id,
                                                     .dirent_limit = kEntriesAtOnce,
                                                     .token = from.token},
                    .by_layout = true};
  };
  Result<orangefs::Response> response = co_await ask_in(directory, make);
  VPFS_CO_TRY(response);
  auto& part = std::get<orangefs::ReaddirResponse>(response->body);
  page.entries.reserve(part.entries.size());
  for (auto& entry : part.entries) {
    page.entries.push_back({.name = std::move(entry.name), .handle = entry.handle});
  }
  // A server may give fewer entries than it was asked for, and still have more.
  page.next = {.place = from.place, .token = part.token};
  if (page.entries.empty() || part.token == kListEnd) {
    page.next = {.place = from.place + 1, .token = kListStart};
    page.end = page.next.place >= directory.attributes->distributed.dirdata_handles.size();
  }
  co_return page;
}

net::Task<Result<DirectoryPage>> FileSystem::read_directory(orangefs::Handle handle,
                                                            DirectoryCursor from) {
  Result<Directory> found = co_await directory(handle);
  VPFS_CO_TRY(found);
  co_return co_await page_of(*found, from);
}

net::Task<Result<std::vector<DirectoryEntry>>> FileSystem::readdir(orangefs::Handle handle) {
  Result<Directory> found = co_await directory(handle);
  VPFS_CO_TRY(found);
  const std::size_t places = found->attributes->distributed.dirdata_handles.size();
  const auto list_one = [&](std::size_t i) { return entries_at(*found, i); };
  auto parts = co_await net::gather(places, kMostPlacesAtOnce, list_one);
  std::vector<DirectoryEntry> entries;
  for (Result<std::vector<DirectoryEntry>>& part : parts) {
    VPFS_CO_TRY(part);
    std::ranges::move(*part, std::back_inserter(entries));
  }
  co_return entries;
}

net::Task<Result<std::vector<DirectoryEntry>>> FileSystem::entries_at(Directory& directory,
                                                                      std::size_t place) {
  std::vector<DirectoryEntry> entries;
  DirectoryCursor at{.place = place};
  while (at.place == place) {
    Result<DirectoryPage> page = co_await page_of(directory, at);
    VPFS_CO_TRY(page);
    std::ranges::move(page->entries, std::back_inserter(entries));
    at = page->next;
  }
  co_return entries;
}

net::Task<Result<void>> FileSystem::check_empty(orangefs::Handle handle) {
  DirectoryPage page;
  while (!page.end && page.entries.empty()) {
    Result<DirectoryPage> next = co_await read_directory(handle, page.next);
    if (!next && next.error().code == std::errc::permission_denied) co_return Result<void>();
    VPFS_CO_TRY(next);
    page = std::move(*next);
  }
  if (page.entries.empty()) co_return Result<void>();
  co_return fail("the directory has entries", std::make_error_code(std::errc::directory_not_empty));
}

orangefs::SetattrRequest FileSystem::request_of(orangefs::Handle handle,
                                                const AttributeChanges& changes) const {
  orangefs::SetattrRequest body;
  body.handle = handle;
  body.fs_id = config().fs_id;
  body.credential = session_.credential();
  orangefs::Attributes& wanted = body.attributes;
  const auto set = [&wanted](const auto& value, auto& field, std::uint32_t mask) {
    if (!value) return;
    field = *value;
    wanted.mask |= mask;
  };
  set(changes.uid, wanted.uid, orangefs::kAttrUid);
  set(changes.gid, wanted.gid, orangefs::kAttrGid);
  set(changes.permissions, wanted.permissions, orangefs::kAttrPermissions);
  set(changes.atime, wanted.atime, orangefs::kAttrAtime | orangefs::kAttrAtimeSet);
  set(changes.mtime, wanted.mtime, orangefs::kAttrMtime | orangefs::kAttrMtimeSet);
  // Without the bit of a given time the server takes its own.
  if (changes.atime_now) wanted.mask |= orangefs::kAttrAtime;
  if (changes.mtime_now) wanted.mask |= orangefs::kAttrMtime;
  // Servers do not do that by themselves for a symbolic link.
  wanted.mask |= orangefs::kAttrCtime;
  return body;
}

net::Task<Result<void>> FileSystem::set_attributes(orangefs::Handle handle,
                                                   AttributeChanges changes) {
  Change change(session().caches(), session().clock());
  change.object(handle);
  const orangefs::SetattrRequest body = request_of(handle, changes);
  const UseAttributes use = [&](const Caches::AttributesPtr& held) -> net::Task<Result<void>> {
    Result<void> set = co_await send(handle, held, body);
    const bool directory = held->type == orangefs::ObjectType::directory;
    const bool new_time = changes.mtime || changes.mtime_now;
    if (set && directory && new_time) set = co_await set_times_of_parts(held, body);
    co_return set;
  };
  co_return co_await with_attributes(handle, use);
}

net::Task<Result<void>> FileSystem::set_time_of_write(orangefs::Handle file,
                                                      std::uint64_t written_at,
                                                      std::uint64_t latest) {
  Change change(session().caches(), session().clock());
  Result<orangefs::Attributes> found = co_await get_attributes(session_, file);
  VPFS_CO_TRY(found);
  if (found->mtime >= written_at && found->mtime <= latest) co_return Result<void>();
  change.object(file);
  AttributeChanges changes;
  changes.mtime = written_at;
  orangefs::SetattrRequest body = request_of(file, changes);
  auto held = std::make_shared<const orangefs::Attributes>(std::move(*found));
  co_return co_await send(file, std::move(held), std::move(body));
}

net::Task<Result<void>> FileSystem::set_times_of_parts(Caches::AttributesPtr held,
                                                       orangefs::SetattrRequest body) {
  body.attributes.mask &= orangefs::kAttrMtime | orangefs::kAttrMtimeSet;
  const std::vector<orangefs::Handle>& parts = held->distributed.dirdata_handles;
  const auto set_one = [&](std::size_t i) {
    orangefs::SetattrRequest part = body;
    part.handle = parts[i];
    return send(parts[i], held, std::move(part));
  };
  for (Result<void>& set : co_await net::gather(parts.size(), kMostPlacesAtOnce, set_one)) {
    if (!set) co_return std::move(set);
  }
  co_return Result<void>();
}

net::Task<Result<void>> FileSystem::send(orangefs::Handle handle, Caches::AttributesPtr held,
                                         orangefs::RequestBody body, bool* repeated) {
  orangefs::Capability capability = held->capability;
  Result<orangefs::Response> response =
      co_await session_.ask(handle, handle, std::move(capability), std::move(body), repeated);
  VPFS_CO_TRY(response);
  co_return Result<void>();
}

net::Task<Result<void>> FileSystem::truncate(orangefs::Handle file, std::uint64_t size) {
  const UseAttributes use = [&](const Caches::AttributesPtr& held) -> net::Task<Result<void>> {
    return client::truncate(session_, file, *held, size);
  };
  co_return co_await with_attributes(file, use);
}

net::Task<Result<void>> FileSystem::flush(orangefs::Handle file) {
  const UseAttributes use = [&](const Caches::AttributesPtr& held) -> net::Task<Result<void>> {
    return client::flush(session_, file, held->datafiles);
  };
  co_return co_await with_attributes(file, use);
}

net::Task<Result<std::string>> FileSystem::readlink(orangefs::Handle link) {
  const Result<HeldAttributes> found = co_await held_attributes(session_, link);
  VPFS_CO_TRY(found);
  if (found->attributes->type != orangefs::ObjectType::symlink) {
    co_return fail("not a symbolic link", std::make_error_code(std::errc::invalid_argument));
  }
  co_return found->attributes->symlink_target;
}

net::Task<Result<std::string>> FileSystem::get_extended(orangefs::Handle handle, std::string key) {
  orangefs::GeteattrRequest body{.handle = handle,
                                 .fs_id = config().fs_id,
                                 .keys = {wire_key(std::move(key))},
                                 .value_sizes = {kLargestValue}};
  orangefs::Capability none;
  Result<orangefs::Response> response =
      co_await session_.ask(handle, handle, std::move(none), std::move(body));
  VPFS_CO_TRY(response);
  auto& answer = std::get<orangefs::EattrResponse>(response->body);
  if (!answer.errors.empty() && answer.errors[0] != 0) {
    co_return status_error("extended attribute", answer.errors[0]);
  }
  if (answer.values.empty()) {
    co_return fail("extended attribute: no value", std::make_error_code(std::errc::io_error));
  }
  co_return std::move(answer.values.front());
}

net::Task<Result<void>> FileSystem::set_extended(orangefs::Handle handle, std::string key,
                                                 std::string value, SetMode mode) {
  if (std::cmp_greater(value.size(), kLargestValue)) {
    co_return fail("extended attribute: the value is too large",
                   std::make_error_code(std::errc::argument_list_too_long));
  }
  // Real servers take the flags and do not look at them.
  if (mode != SetMode::any) {
    const Result<std::string> present = co_await get_extended(handle, key);
    const bool missing = !present && present.error().code == std::errc::no_such_file_or_directory;
    if (!present && !missing) co_return std::unexpected(present.error());
    if (present && mode == SetMode::create) {
      co_return fail("extended attribute: it exists", std::make_error_code(std::errc::file_exists));
    }
    if (missing && mode == SetMode::replace) {
      co_return fail("extended attribute: it does not exist", {ENODATA, std::generic_category()});
    }
  }
  const orangefs::SeteattrRequest body{.handle = handle,
                                       .fs_id = config().fs_id,
                                       .flags = static_cast<std::int32_t>(mode),
                                       .keys = {wire_key(key)},
                                       .values = {std::move(value)}};
  bool repeated = false;
  const UseAttributes use = [&](const Caches::AttributesPtr& held) -> net::Task<Result<void>> {
    return send(handle, held, body, &repeated);
  };
  Result<void> done = co_await with_attributes(handle, use);
  if (!done && repeated && done.error().code == std::errc::file_exists) {
    // The request whose answer was lost may have made it.
    const Result<std::string> present = co_await get_extended(handle, std::move(key));
    if (present && *present == body.values.front()) co_return Result<void>();
  }
  co_return done;
}

net::Task<Result<void>> FileSystem::remove_extended(orangefs::Handle handle, std::string key) {
  const orangefs::DeleattrRequest body{
      .handle = handle, .fs_id = config().fs_id, .key = wire_key(std::move(key))};
  bool repeated = false;
  const UseAttributes use = [&](const Caches::AttributesPtr& held) -> net::Task<Result<void>> {
    return send(handle, held, body, &repeated);
  };
  Result<void> done = co_await with_attributes(handle, use);
  // The request whose answer was lost has removed it.
  const bool is_gone = !done && done.error().code == std::errc::no_such_file_or_directory;
  if (repeated && is_gone) co_return Result<void>();
  co_return done;
}

net::Task<Result<std::vector<std::string>>> FileSystem::list_extended(orangefs::Handle handle) {
  std::vector<std::string> keys;
  std::size_t size = 0;
  for (std::uint64_t token = kListStart; token != kListEnd;) {
    orangefs::ListeattrRequest body{
        .handle = handle,
        .fs_id = config().fs_id,
        .token = token,
        .key_sizes = std::vector<std::int64_t>(kKeysAtOnce, kLargestKey)};
    orangefs::Capability none;
    Result<orangefs::Response> response =
        co_await session_.ask(handle, handle, std::move(none), std::move(body));
    VPFS_CO_TRY(response);
    auto& answer = std::get<orangefs::ListeattrResponse>(response->body);
    for (std::string& key : answer.keys) {
      if (const std::size_t end = key.find('\0'); end != std::string::npos) key.resize(end);
      size += key.size() + 1;
      keys.push_back(std::move(key));
    }
    if (size > kLargestList) {
      co_return fail("extended attributes: the list is too long",
                     std::make_error_code(std::errc::argument_list_too_long));
    }
    if (answer.keys.size() < kKeysAtOnce || answer.token == token) break;
    token = answer.token;
  }
  co_return keys;
}

}  // namespace vpfs::client
