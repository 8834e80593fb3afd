// The second half of FileSystem: renaming, listing, and all kinds of attributes.
#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

#include "client/orangefs/directory_hash.h"
#include "client/orangefs/file_system.h"
#include "client/orangefs/object.h"
#include "net/gather.h"

namespace vpfs::client {
namespace {

// Tokens of READDIR and LISTEATTR.
constexpr std::uint64_t kListStart = 0x7ffffffe;
constexpr std::uint64_t kListEnd = 0x7ffffffd;
constexpr std::uint32_t kEntriesAtOnce = 128;
constexpr std::size_t kMostPlacesAtOnce = 64;
constexpr std::int64_t kLargestValue = 8192;  // of an extended attribute
constexpr std::int64_t kLargestKey = 256;
constexpr std::size_t kKeysAtOnce = 8;  // more are invalid

// Keys end with a NUL on the wire.
std::string wire_key(std::string key) {
  key.push_back('\0');
  return key;
}

}  // namespace

net::Task<Result<void>> FileSystem::rename(orangefs::Handle old_parent, std::string name,
                                           orangefs::Handle new_parent, std::string new_name) {
  Result<orangefs::Handle> moved = co_await lookup(old_parent, name);
  if (!moved) co_return std::unexpected(std::move(moved.error()));
  Result<Directory> source = co_await directory(old_parent);
  if (!source) co_return std::unexpected(std::move(source.error()));
  Result<Directory> target = co_await directory(new_parent);
  if (!target) co_return std::unexpected(std::move(target.error()));

  Result<orangefs::Handle> replaced = co_await lookup(new_parent, new_name);
  if (!replaced) {
    if (replaced.error().code != std::errc::no_such_file_or_directory) {
      co_return std::unexpected(std::move(replaced.error()));
    }
    Result<void> entered = co_await enter(*target, std::move(new_name), *moved);
    if (!entered) co_return entered;
    const Result<std::optional<orangefs::Handle>> left = co_await leave(*source, std::move(name));
    if (!left) co_return std::unexpected(left.error());
    co_return Result<void>();
  }
  if (*replaced == *moved) co_return Result<void>();
  co_return co_await replace(*source, std::move(name), *target, std::move(new_name), *moved,
                             *replaced);
}

net::Task<Result<void>> FileSystem::replace(const Directory& source, std::string name,
                                            const Directory& target, std::string new_name,
                                            orangefs::Handle moved, orangefs::Handle replaced) {
  Result<orangefs::Attributes> old_object = co_await get_attributes(*session_, replaced);
  if (!old_object) co_return std::unexpected(std::move(old_object.error()));
  const bool is_directory = old_object->type == orangefs::ObjectType::directory;
  const Result<orangefs::Attributes> new_object = co_await get_attributes(*session_, moved);
  if (!new_object) co_return std::unexpected(new_object.error());
  if (is_directory != (new_object->type == orangefs::ObjectType::directory)) {
    co_return fail("rename: one is a directory, the other is not",
                   std::make_error_code(is_directory ? std::errc::is_a_directory
                                                     : std::errc::not_a_directory));
  }
  if (is_directory) {
    const Result<std::vector<DirectoryEntry>> entries = co_await readdir(replaced);
    if (!entries) co_return std::unexpected(entries.error());
    if (!entries->empty()) {
      co_return fail("rename: the target has entries",
                     std::make_error_code(std::errc::directory_not_empty));
    }
  }
  const orangefs::Handle place = dirdata_of(target.layout, new_name);
  orangefs::ChdirentRequest body{.name = std::move(new_name),
                                 .new_handle = moved,
                                 .dirdata_handle = place,
                                 .fs_id = config().fs_id};
  Result<orangefs::Response> changed =
      co_await ask(place, target.handle, target.capability, std::move(body));
  if (!changed) co_return std::unexpected(std::move(changed.error()));
  const Result<std::optional<orangefs::Handle>> left = co_await leave(source, std::move(name));
  if (!left) co_return std::unexpected(left.error());
  const orangefs::Handle gone = std::get<orangefs::HandleResponse>(changed->body).handle;
  // A retry finds the new handle in place; what the first attempt replaced is unknown.
  if (gone == moved) co_return Result<void>();
  if (gone != replaced) {  // another client was faster
    old_object = co_await get_attributes(*session_, gone);
    if (!old_object) co_return std::unexpected(std::move(old_object.error()));
  }
  co_return co_await destroy_all(target, gone, std::move(*old_object));
}

net::Task<Result<std::vector<DirectoryEntry>>> FileSystem::readdir(orangefs::Handle handle) {
  const Result<Directory> found = co_await directory(handle);
  if (!found) co_return std::unexpected(found.error());
  const std::vector<orangefs::Handle>& places = found->layout.dirdata_handles;
  const auto list_one = [&](std::size_t i) { return entries_at(places[i], *found); };
  auto parts = co_await net::gather(places.size(), kMostPlacesAtOnce, list_one);
  std::vector<DirectoryEntry> entries;
  for (Result<std::vector<DirectoryEntry>>& part : parts) {
    if (!part) co_return std::unexpected(std::move(part.error()));
    std::ranges::move(*part, std::back_inserter(entries));
  }
  co_return entries;
}

net::Task<Result<std::vector<DirectoryEntry>>> FileSystem::entries_at(orangefs::Handle place,
                                                                      const Directory& directory) {
  std::vector<DirectoryEntry> entries;
  for (std::uint64_t token = kListStart; token != kListEnd;) {
    const orangefs::ReaddirRequest body{
        .handle = place, .fs_id = config().fs_id, .dirent_limit = kEntriesAtOnce, .token = token};
    Result<orangefs::Response> response =
        co_await ask(place, directory.handle, directory.capability, body);
    if (!response) co_return std::unexpected(std::move(response.error()));
    auto& part = std::get<orangefs::ReaddirResponse>(response->body);
    for (auto& entry : part.entries) {
      entries.push_back({.name = std::move(entry.name), .handle = entry.handle});
    }
    if (part.entries.size() < kEntriesAtOnce) break;
    token = part.token;
  }
  co_return entries;
}

net::Task<Result<void>> FileSystem::set_attributes(orangefs::Handle handle,
                                                   AttributeChanges changes) {
  Result<orangefs::Attributes> found = co_await get_attributes(*session_, handle);
  if (!found) co_return std::unexpected(std::move(found.error()));
  orangefs::SetattrRequest body;
  body.handle = handle;
  body.fs_id = config().fs_id;
  body.credential = session_->credential();
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
  Result<orangefs::Response> response =
      co_await ask(handle, handle, std::move(found->capability), std::move(body));
  if (!response) co_return std::unexpected(std::move(response.error()));
  co_return Result<void>();
}

net::Task<Result<void>> FileSystem::truncate(orangefs::Handle file, std::uint64_t size) {
  Result<orangefs::Attributes> found = co_await get_attributes(*session_, file);
  if (!found) co_return std::unexpected(std::move(found.error()));
  co_return co_await client::truncate(*session_, file, std::move(*found), size);
}

net::Task<Result<void>> FileSystem::flush(orangefs::Handle file) {
  Result<orangefs::Attributes> found = co_await get_attributes(*session_, file);
  if (!found) co_return std::unexpected(std::move(found.error()));
  co_return co_await client::flush(*session_, file, std::move(found->datafiles));
}

net::Task<Result<FileSystemStatus>> FileSystem::statfs() {
  std::vector<Session::Addressed> requests;
  requests.reserve(config().servers.size());
  for (std::size_t i = 0; i < config().servers.size(); ++i) {
    requests.push_back({.server = i,
                        .request = {.capability = {},
                                    .hints = {},
                                    .body = orangefs::StatfsRequest{.fs_id = config().fs_id}}});
  }
  const auto results = co_await session_->call_all(std::move(requests));
  if (Result<void> good = all_good(results); !good) {
    co_return std::unexpected(std::move(good.error()));
  }
  FileSystemStatus total;
  for (const Result<orangefs::Response>& result : results) {
    const auto& part = std::get<orangefs::StatfsResponse>(result->body);
    total.bytes_available += part.bytes_available;
    total.bytes_total += part.bytes_total;
    total.handles_available += part.handles_available;
    total.handles_total += part.handles_total;
  }
  co_return total;
}

net::Task<Result<std::string>> FileSystem::get_extended(orangefs::Handle handle, std::string key) {
  orangefs::GeteattrRequest body{.handle = handle,
                                 .fs_id = config().fs_id,
                                 .keys = {wire_key(std::move(key))},
                                 .value_sizes = {kLargestValue}};
  orangefs::Capability none;
  Result<orangefs::Response> response =
      co_await ask(handle, handle, std::move(none), std::move(body));
  if (!response) co_return std::unexpected(std::move(response.error()));
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
  Result<orangefs::Attributes> found = co_await get_attributes(*session_, handle);
  if (!found) co_return std::unexpected(std::move(found.error()));
  orangefs::SeteattrRequest body{.handle = handle,
                                 .fs_id = config().fs_id,
                                 .flags = static_cast<std::int32_t>(mode),
                                 .keys = {wire_key(std::move(key))},
                                 .values = {std::move(value)}};
  Result<orangefs::Response> response =
      co_await ask(handle, handle, std::move(found->capability), std::move(body));
  if (!response) co_return std::unexpected(std::move(response.error()));
  co_return Result<void>();
}

net::Task<Result<void>> FileSystem::remove_extended(orangefs::Handle handle, std::string key) {
  Result<orangefs::Attributes> found = co_await get_attributes(*session_, handle);
  if (!found) co_return std::unexpected(std::move(found.error()));
  orangefs::DeleattrRequest body{
      .handle = handle, .fs_id = config().fs_id, .key = wire_key(std::move(key))};
  Result<orangefs::Response> response =
      co_await ask(handle, handle, std::move(found->capability), std::move(body));
  if (!response) co_return std::unexpected(std::move(response.error()));
  co_return Result<void>();
}

net::Task<Result<std::vector<std::string>>> FileSystem::list_extended(orangefs::Handle handle) {
  std::vector<std::string> keys;
  for (std::uint64_t token = kListStart; token != kListEnd;) {
    orangefs::ListeattrRequest body{
        .handle = handle,
        .fs_id = config().fs_id,
        .token = token,
        .key_sizes = std::vector<std::int64_t>(kKeysAtOnce, kLargestKey)};
    orangefs::Capability none;
    Result<orangefs::Response> response =
        co_await ask(handle, handle, std::move(none), std::move(body));
    if (!response) co_return std::unexpected(std::move(response.error()));
    auto& answer = std::get<orangefs::ListeattrResponse>(response->body);
    for (std::string& key : answer.keys) {
      if (const std::size_t end = key.find('\0'); end != std::string::npos) key.resize(end);
      keys.push_back(std::move(key));
    }
    if (answer.keys.size() < kKeysAtOnce) break;
    token = answer.token;
  }
  co_return keys;
}

}  // namespace vpfs::client
