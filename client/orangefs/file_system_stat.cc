// The part of FileSystem that describes objects.
#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "base/result.h"
#include "client/orangefs/file_system.h"
#include "client/orangefs/object.h"
#include "client/orangefs/strip_walk.h"
#include "net/both.h"
#include "net/gather.h"

namespace vpfs::client {
namespace {

constexpr std::size_t kMostStatsAtOnce = 64;
constexpr int kMostLookUps = 5;  // of a name that others replace all the time
constexpr std::uint32_t kPartMask = orangefs::kAttrCommonAll | orangefs::kAttrDataSize;

// The objects that know the rest: a file's datafiles its size, a directory's dirdata its times.
std::vector<orangefs::Handle> parts_of(const orangefs::Attributes& object) {
  const bool striped = object.type == orangefs::ObjectType::metafile && !is_stuffed(object);
  if (striped) return object.datafiles;
  if (object.type == orangefs::ObjectType::directory) return object.distributed.dirdata_handles;
  return {};
}

// A directory changed when one of its dirdata objects did, as far as they could be asked.
void take_times(Stat& stat, std::span<const Result<orangefs::Attributes>> dirdata) {
  for (const Result<orangefs::Attributes>& part : dirdata) {
    if (!part) continue;
    stat.mtime = std::max(stat.mtime, part->mtime);
    stat.ctime = std::max(stat.ctime, part->ctime);
  }
}

// `parts` has the attributes of all parts_of(object).
Result<void> complete(Stat& stat, const orangefs::Attributes& object,
                      std::span<const Result<orangefs::Attributes>> parts) {
  if (object.type == orangefs::ObjectType::directory) {
    take_times(stat, parts);
    return {};
  }
  if (parts.empty()) return {};
  const Result<std::int64_t> strip_size = strip_size_of(object);
  VPFS_TRY(strip_size);
  std::int64_t size = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    VPFS_TRY(parts[i]);
    const orangefs::Placement placement{.server_nr = static_cast<std::uint32_t>(i),
                                        .server_ct = static_cast<std::uint32_t>(parts.size())};
    size = std::max(size, logical_end(*strip_size, placement, parts[i]->size));
  }
  stat.size = static_cast<std::uint64_t>(size);
  return {};
}

// A server may name as many as its answer has room for, of each object of a list.
Result<void> check_parts(const orangefs::Attributes& object) {
  if (object.type == orangefs::ObjectType::metafile) return check_extent(object);
  return check_dirdata(object);
}

bool is_gone(const Error& error) {
  return error.code == std::errc::no_such_file_or_directory;
}

// Whether stat() of the object alone may do better than a list of many.
bool may_ask_alone(const Error& error) {
  return !is_transport_error(error) && !is_gone(error);
}

}  // namespace

std::optional<Caches::KnownDirectory> FileSystem::known_directory(orangefs::Handle handle) const {
  Caches* const caches = session().caches();
  if (caches == nullptr) return std::nullopt;
  return caches->directory(handle, *caller(), session().now());
}

net::Task<Result<Stat>> FileSystem::stat_directory(orangefs::Handle handle,
                                                   Caches::AttributesPtr held) {
  Caches& caches = *session().caches();
  const Caches::DirectoryTicket ticket = caches.directory_ticket(handle, session().now());
  VPFS_CO_TRY(check_parts(*held));
  const std::vector<orangefs::Handle> dirdata = parts_of(*held);
  auto ask_it = get_attributes(session_, handle);
  auto ask_parts = list_attributes(session_, dirdata, kPartMask);
  auto [found, parts] = co_await net::both(std::move(ask_it), std::move(ask_parts));
  VPFS_CO_TRY(found);
  VPFS_CO_TRY(check_parts(*found));
  std::vector<orangefs::Handle> now = parts_of(*found);
  // It was split meanwhile.
  if (now != dirdata) parts = co_await list_attributes(session_, std::move(now), kPartMask);
  Stat stat = stat_from(handle, *found);
  take_times(stat, parts);
  caches.put_directory(ticket, handle, caller(), stat);
  co_return stat;
}

net::Task<Result<Stat>> FileSystem::stat(orangefs::Handle handle) {
  Caches* const caches = session().caches();
  Caches::DirectoryTicket ticket;
  if (caches != nullptr) {
    Caches::AttributesPtr held = caches->attributes(handle, *caller(), session().now());
    if (held && held->type == orangefs::ObjectType::directory) {
      co_return co_await stat_directory(handle, std::move(held));
    }
    ticket = caches->directory_ticket(handle, session().now());
  }
  Result<orangefs::Attributes> found = co_await get_attributes(session_, handle);
  VPFS_CO_TRY(found);
  Stat stat = stat_from(handle, *found);
  if (found->type == orangefs::ObjectType::metafile) {
    const Result<std::uint64_t> size = co_await file_size(session_, handle, std::move(*found));
    VPFS_CO_TRY(size);
    stat.size = *size;
  } else if (found->type == orangefs::ObjectType::directory) {
    VPFS_CO_TRY(check_parts(*found));
    std::vector<orangefs::Handle> dirdata = parts_of(*found);
    const std::vector<Result<orangefs::Attributes>> parts =
        co_await list_attributes(session_, std::move(dirdata), kPartMask);
    take_times(stat, parts);
    if (caches != nullptr) caches->put_directory(ticket, handle, caller(), stat);
  }
  co_return stat;
}

net::Task<Result<Stat>> FileSystem::stat_name(orangefs::Handle directory, std::string name) {
  for (int look_ups = 1;; ++look_ups) {
    const Result<orangefs::Handle> found = co_await lookup(directory, name);
    VPFS_CO_TRY(found);
    Result<Stat> object = co_await stat(*found);
    if (object || !is_gone(object.error()) || look_ups == kMostLookUps) co_return object;
    if (Caches* const caches = session().caches()) caches->forget_name(directory, name);
  }
}

net::Task<Result<Stat>> FileSystem::owner_and_mode(orangefs::Handle handle) {
  const Result<HeldAttributes> held = co_await held_attributes(session_, handle);
  VPFS_CO_TRY(held);
  co_return stat_from(handle, *held->attributes);
}

net::Task<std::vector<Result<Stat>>> FileSystem::stat_all(std::vector<orangefs::Handle> handles) {
  std::vector<Result<orangefs::Attributes>> objects =
      co_await list_attributes(session_, handles, kEverything & ~orangefs::kAttrCapability);
  for (Result<orangefs::Attributes>& object : objects) {
    if (!object) continue;
    if (Result<void> good = check_parts(*object); !good) object = std::unexpected(good.error());
  }
  std::vector<orangefs::Handle> parts;
  std::vector<std::size_t> first_part;
  for (const Result<orangefs::Attributes>& object : objects) {
    first_part.push_back(parts.size());
    if (!object) continue;
    const std::vector<orangefs::Handle> its = parts_of(*object);
    parts.insert(parts.end(), its.begin(), its.end());
  }
  first_part.push_back(parts.size());
  const std::vector<Result<orangefs::Attributes>> described =
      co_await list_attributes(session_, std::move(parts), kPartMask);

  std::vector<Result<Stat>> stats;
  std::vector<std::size_t> alone;
  for (std::size_t i = 0; i < handles.size(); ++i) {
    Result<Stat> stat;
    Result<void> good;
    if (objects[i]) {
      stat = stat_from(handles[i], *objects[i]);
      good =
          complete(*stat, *objects[i],
                   std::span(described).subspan(first_part[i], first_part[i + 1] - first_part[i]));
    } else {
      good = std::unexpected(objects[i].error());
    }
    if (!good) {
      if (may_ask_alone(good.error())) alone.push_back(i);
      stat = std::unexpected(std::move(good.error()));
    }
    stats.push_back(std::move(stat));
  }
  const auto stat_one = [&](std::size_t i) { return this->stat(handles[alone[i]]); };
  auto again = co_await net::gather(alone.size(), kMostStatsAtOnce, stat_one);
  for (std::size_t i = 0; i < alone.size(); ++i) stats[alone[i]] = std::move(again[i]);
  co_return stats;
}

}  // namespace vpfs::client
