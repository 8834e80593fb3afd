// The part of FileSystem that changes directory entries: it enters, removes and renames objects.
#include <tuple>
#include <utility>
#include <variant>

#include <spdlog/spdlog.h>

#include "base/result.h"
#include "client/orangefs/change.h"
#include "client/orangefs/directory_hash.h"
#include "client/orangefs/file_system.h"
#include "client/orangefs/names.h"
#include "client/orangefs/object.h"
#include "net/both.h"
#include "net/gather.h"

namespace vpfs::client {
namespace {

constexpr int kRenameAttempts = 5;
constexpr std::size_t kMostDatafilesAtOnce = 64;

Error error_of(const char* message, std::errc code) {
  return {.message = message, .code = std::make_error_code(code)};
}

bool is_missing(const Error& error) {
  return error.code == std::errc::no_such_file_or_directory;
}

// Logs that a datafile of a removed file is left. A check of the file system finds it.
void note_left(const Result<void>& removed, orangefs::Handle file) {
  if (removed || is_missing(removed.error())) return;
  spdlog::warn("a datafile of {}, which is gone, is left: {}", file, removed.error().message);
}

Result<void> may_remove(const orangefs::Attributes& object, Removal what) {
  const bool directory = object.type == orangefs::ObjectType::directory;
  if (what == Removal::directory && !directory) {
    return std::unexpected(error_of("remove: not a directory", std::errc::not_a_directory));
  }
  if (what == Removal::not_directory && directory) {
    return std::unexpected(error_of("remove: a directory", std::errc::is_a_directory));
  }
  return {};
}

}  // namespace

net::Task<Result<void>> FileSystem::enter(Directory& parent, std::string name,
                                          orangefs::Handle handle) {
  const MakeQuestion make = [&](const orangefs::Attributes& directory) {
    const orangefs::Handle place = dirdata_of(directory.distributed, name);
    return Question{.server = session().server_of(place),
                    .body = orangefs::CrdirentRequest{.credential = session_.credential(),
                                                      .name = name,
                                                      .new_handle = handle,
                                                      .parent_handle = parent.handle,
                                                      .dirdata_handle = place,
                                                      .fs_id = config().fs_id},
                    .by_layout = true};
  };
  bool repeated = false;
  Result<orangefs::Response> response = co_await ask_in(parent, make, &repeated);
  if (response) co_return Result<void>();
  if (repeated && response.error().code == std::errc::file_exists) {
    const Result<orangefs::Handle> present = co_await find(parent, std::move(name));
    if (present && *present == handle) co_return Result<void>();
    // The name may lead to the new object.
    if (!present && !is_missing(present.error())) co_return std::unexpected(present.error());
  }
  co_return std::unexpected(std::move(response.error()));
}

net::Task<Result<std::optional<orangefs::Handle>>> FileSystem::leave(Directory& parent,
                                                                     std::string name) {
  const MakeQuestion make = [&](const orangefs::Attributes& directory) {
    const orangefs::Handle place = dirdata_of(directory.distributed, name);
    return Question{.server = session().server_of(place),
                    .body =
                        orangefs::RmdirentRequest{
                            .name = name, .dirdata_handle = place, .fs_id = config().fs_id},
                    .by_layout = true};
  };
  bool repeated = false;
  Result<orangefs::Response> response = co_await ask_in(parent, make, &repeated);
  if (response) co_return std::get<orangefs::HandleResponse>(response->body).handle;
  if (repeated && is_missing(response.error())) co_return std::nullopt;
  co_return std::unexpected(std::move(response.error()));
}

net::Task<Result<orangefs::Handle>> FileSystem::redirect(Directory& parent, std::string name,
                                                         orangefs::Handle handle) {
  const MakeQuestion make = [&](const orangefs::Attributes& directory) {
    const orangefs::Handle place = dirdata_of(directory.distributed, name);
    return Question{.server = session().server_of(place),
                    .body = orangefs::ChdirentRequest{.name = name,
                                                      .new_handle = handle,
                                                      .dirdata_handle = place,
                                                      .fs_id = config().fs_id},
                    .by_layout = true};
  };
  Result<orangefs::Response> response = co_await ask_in(parent, make);
  VPFS_CO_TRY(response);
  co_return std::get<orangefs::HandleResponse>(response->body).handle;
}

net::Task<Result<void>> FileSystem::destroy_object(Directory& parent, orangefs::Handle handle) {
  const MakeQuestion make = [&](const orangefs::Attributes&) {
    return Question{
        .server = session().server_of(handle),
        .body = orangefs::RemoveRequest{
            .handle = handle, .fs_id = config().fs_id, .credential = session_.credential()}};
  };
  Result<orangefs::Response> response = co_await ask_in(parent, make);
  VPFS_CO_TRY(response);
  co_return Result<void>();
}

// The metafile goes first. With it gone the file is gone; without its datafiles it would still be
// there for others, and empty.
net::Task<Result<void>> FileSystem::destroy(Directory& parent, orangefs::Handle handle,
                                            std::vector<orangefs::Handle> datafiles, Gone gone) {
  Result<void> metafile = co_await destroy_object(parent, handle);
  if (!metafile && !is_missing(metafile.error())) co_return metafile;
  if (gone) gone();
  const auto destroy_one = [&](std::size_t i) { return destroy_object(parent, datafiles[i]); };
  const std::vector<Result<void>> removed =
      co_await net::gather(datafiles.size(), kMostDatafilesAtOnce, destroy_one);
  for (const Result<void>& datafile : removed) note_left(datafile, handle);
  co_return Result<void>();
}

net::Task<Result<void>> FileSystem::destroy_all(Directory& parent, orangefs::Handle handle,
                                                orangefs::Attributes attributes, Gone gone) {
  std::vector<orangefs::Handle> datafiles;
  if (attributes.type == orangefs::ObjectType::metafile)
    datafiles = std::move(attributes.datafiles);
  co_return co_await destroy(parent, handle, std::move(datafiles), std::move(gone));
}

Caches::AttributesPtr FileSystem::removable(orangefs::Handle directory, const std::string& name,
                                            Removal what, orangefs::Handle& object) const {
  Caches* const caches = session().caches();
  if (caches == nullptr) return nullptr;
  const TimePoint now = session().now();
  const auto known = caches->name(directory, name, *caller(), now);
  if (!known) return nullptr;
  object = *known;
  Caches::AttributesPtr held = caches->attributes(*known, *caller(), now);
  const bool ready = held && held->type != orangefs::ObjectType::directory;
  return ready && may_remove(*held, what) ? held : nullptr;
}

net::Task<Result<void>> FileSystem::remove(orangefs::Handle directory_handle, std::string name,
                                           Removal what, Keep keep, Gone gone) {
  if (Result<void> good = check_name(name); !good) co_return good;
  Change change(session().caches(), session().clock());
  change.name(directory_handle, name);
  Result<Directory> parent = co_await directory(directory_handle);
  VPFS_CO_TRY(parent);
  // What the name should lead to, and what it does lead to when it is removed.
  orangefs::Handle object = 0;
  Result<orangefs::Attributes> found;
  Result<std::optional<orangefs::Handle>> left;
  if (const Caches::AttributesPtr held = removable(directory_handle, name, what, object)) {
    change.object(object);
    if (held->type == orangefs::ObjectType::metafile && is_stuffed(*held)) {
      // Another client may have made it larger, with more datafiles.
      auto leave_it = leave(*parent, name);
      auto ask_again = get_attributes(session_, object);
      std::tie(left, found) = co_await net::both(std::move(leave_it), std::move(ask_again));
    } else {
      found = *held;
      left = co_await leave(*parent, name);
    }
  } else {
    const Result<orangefs::Handle> looked_up = co_await find(*parent, name);
    VPFS_CO_TRY(looked_up);
    object = *looked_up;
    change.object(object);
    // Every check comes before the name is removed.
    found = co_await get_attributes(session_, object);
    if (!found && !is_missing(found.error())) co_return std::unexpected(std::move(found.error()));
    if (found) {
      if (Result<void> good = may_remove(*found, what); !good) co_return good;
      if (found->type == orangefs::ObjectType::directory) {
        Result<void> empty = co_await check_empty(object);
        if (!empty) co_return empty;
      }
    }
    left = co_await leave(*parent, name);
  }
  VPFS_CO_TRY(left);
  // A retry may hide which object the name had. Keep the object then: an object without a name is
  // better than a name without an object.
  const std::optional<orangefs::Handle>& led_to = *left;
  if (!led_to) co_return Result<void>();
  const orangefs::Handle lost = *led_to;
  Result<void> destroyed;
  if (lost != object) {  // renamed meanwhile
    change.object(lost);
    found = co_await get_attributes(session_, lost);
    if (found) destroyed = may_remove(*found, what);
  }
  if (found && destroyed && keep && keep(lost, last_name(*parent))) {
    change.happened();
    co_return destroyed;
  }
  if (found && destroyed) {
    Gone tell = [&change, gone = std::move(gone)] {
      change.happened();
      change.forget();
      if (gone) gone();
    };
    destroyed = co_await destroy_all(*parent, lost, std::move(*found), std::move(tell));
  } else if (!found && !is_missing(found.error())) {
    destroyed = std::unexpected(std::move(found.error()));
  }
  // The directory may have got an entry meanwhile, or a server is down: restore the name.
  if (!destroyed) (void)co_await enter(*parent, std::move(name), lost);
  co_return destroyed;
}

net::Task<Result<void>> FileSystem::rename(orangefs::Handle old_parent, std::string name,
                                           orangefs::Handle new_parent, std::string new_name,
                                           Renaming how, Keep keep) {
  Result<void> good = check_name(name);
  if (good) good = check_name(new_name);
  if (!good) co_return good;
  Change change(session().caches(), session().clock());
  change.name(old_parent, name);
  change.name(new_parent, new_name);
  Result<Directory> source = co_await directory(old_parent);
  VPFS_CO_TRY(source);
  Result<orangefs::Handle> moved = co_await find(*source, name);
  VPFS_CO_TRY(moved);
  Result<Directory> target = co_await directory(new_parent);
  VPFS_CO_TRY(target);
  if (*moved == new_parent) {
    co_return std::unexpected(
        error_of("rename: a directory into itself", std::errc::invalid_argument));
  }
  if (old_parent == new_parent && name == new_name) {
    if (how == Renaming::replace) co_return Result<void>();
    co_return std::unexpected(error_of("rename: the name exists", std::errc::file_exists));
  }
  if (how == Renaming::keep) {
    Result<void> kept =
        co_await move(*source, std::move(name), *target, std::move(new_name), *moved);
    if (kept) change.happened();
    co_return kept;
  }
  for (int attempts = 1;; ++attempts) {
    Result<orangefs::Handle> replaced = co_await find(*target, new_name);
    if (replaced && *replaced == *moved) co_return Result<void>();
    Result<void> renamed;
    std::errc outpaced = std::errc::file_exists;
    if (replaced) {
      outpaced = std::errc::no_such_file_or_directory;
      change.object(*replaced);
      renamed = co_await replace(*source, name, *target, new_name, *moved, *replaced, keep);
    } else if (is_missing(replaced.error())) {
      renamed = co_await move(*source, name, *target, new_name, *moved);
    } else {
      renamed = std::unexpected(std::move(replaced.error()));
      co_return renamed;
    }
    if (renamed) change.happened();
    // Another client may have taken or removed the new name meanwhile.
    if (renamed || renamed.error().code != outpaced || attempts == kRenameAttempts) {
      co_return renamed;
    }
    // ... or the old one.
    const Result<orangefs::Handle> still = co_await find(*source, name);
    VPFS_CO_TRY(still);
    if (*still != *moved) co_return renamed;
  }
}

net::Task<Result<void>> FileSystem::move(Directory& source, std::string name, Directory& target,
                                         std::string new_name, orangefs::Handle moved) {
  Result<void> entered = co_await enter(target, new_name, moved);
  if (!entered) co_return entered;
  const Result<std::optional<orangefs::Handle>> left = co_await leave(source, name);
  if (!left) {
    if (!is_transport_error(left.error())) (void)co_await leave(target, std::move(new_name));
    co_return std::unexpected(left.error());
  }
  // Another client gave the old name to another object meanwhile.
  const std::optional<orangefs::Handle>& led_to = *left;
  if (led_to && *led_to != moved) (void)co_await enter(source, std::move(name), *led_to);
  co_return Result<void>();
}

net::Task<Result<void>> FileSystem::make_replaceable(Directory& source, Directory& target,
                                                     orangefs::Handle replaced,
                                                     const orangefs::Attributes& old_object,
                                                     orangefs::Handle moved) {
  const Result<orangefs::Attributes> new_object = co_await get_attributes(session_, moved);
  VPFS_CO_TRY(new_object);
  const bool is_directory = old_object.type == orangefs::ObjectType::directory;
  if (is_directory != (new_object->type == orangefs::ObjectType::directory)) {
    co_return std::unexpected(
        error_of("rename: one is a directory, the other is not",
                 is_directory ? std::errc::is_a_directory : std::errc::not_a_directory));
  }
  if (!is_directory) co_return Result<void>();
  Result<void> good = co_await check_empty(replaced);
  if (good) good = co_await check_changeable(source);
  if (good) good = co_await check_changeable(target);
  if (!good) co_return good;
  good = co_await destroy_object(target, replaced);
  if (!good && is_missing(good.error())) co_return Result<void>();
  co_return good;
}

net::Task<Result<void>> FileSystem::check_changeable(Directory& directory) {
  const auto may_change = [&directory] {
    constexpr std::uint32_t kNeeded = orangefs::kCapWrite | orangefs::kCapExecute;
    return (directory.attributes->capability.op_mask & kNeeded) == kNeeded;
  };
  if (!may_change() && directory.cached) {
    Result<Directory> fresh = co_await fresh_directory(directory.handle);
    VPFS_CO_TRY(fresh);
    directory = std::move(*fresh);
  }
  if (may_change()) co_return Result<void>();
  co_return std::unexpected(
      error_of("rename: a directory may not be changed", std::errc::permission_denied));
}

net::Task<> FileSystem::undo_redirect(Directory& target, std::string new_name,
                                      orangefs::Handle before, bool destroyed) {
  if (destroyed) {
    (void)co_await leave(target, std::move(new_name));
  } else {
    (void)co_await redirect(target, std::move(new_name), before);
  }
}

net::Task<Result<void>> FileSystem::replace(Directory& source, std::string name, Directory& target,
                                            std::string new_name, orangefs::Handle moved,
                                            orangefs::Handle replaced, const Keep& keep) {
  Result<orangefs::Attributes> old_object = co_await get_attributes(session_, replaced);
  if (!old_object && !is_missing(old_object.error())) {
    co_return std::unexpected(std::move(old_object.error()));
  }
  if (old_object) {
    Result<void> good = co_await make_replaceable(source, target, replaced, *old_object, moved);
    if (!good) co_return good;
  } else {
    old_object = orangefs::Attributes{};  // a name without an object may be replaced
  }
  const bool destroyed = old_object->type == orangefs::ObjectType::directory;
  Result<orangefs::Handle> changed = co_await redirect(target, new_name, moved);
  VPFS_CO_TRY(changed);
  const orangefs::Handle gone = *changed;
  if (gone != replaced && gone != moved) {  // another client was faster
    old_object = co_await get_attributes(session_, gone);
    const bool is_file = old_object && old_object->type != orangefs::ObjectType::directory;
    if (destroyed || !is_file) {
      co_await undo_redirect(target, std::move(new_name), gone, false);
      co_return std::unexpected(error_of("rename: the new name leads elsewhere by now",
                                         std::errc::no_such_file_or_directory));
    }
  }
  const Result<std::optional<orangefs::Handle>> left = co_await leave(source, std::move(name));
  if (!left) {
    // Both names lead to the object now. A retry of the change would hide what it replaced.
    if (!is_transport_error(left.error()) && gone != moved) {
      co_await undo_redirect(target, std::move(new_name), gone, destroyed);
    }
    co_return std::unexpected(left.error());
  }
  // A retry finds the new handle in place; what the first attempt replaced is unknown.
  if (gone == moved || destroyed) co_return Result<void>();
  if (keep && keep(gone, last_name(target))) co_return Result<void>();
  co_return co_await destroy_all(target, gone, std::move(*old_object));
}

net::Task<Result<void>> FileSystem::destroy(orangefs::Handle file, LastName last) {
  Change change(session().caches(), session().clock());
  change.object(file);
  FileSystem remover = as(std::move(last.remover));
  Result<orangefs::Attributes> found = co_await get_attributes(remover.session_, file);
  if (!found && is_missing(found.error())) co_return Result<void>();
  VPFS_CO_TRY(found);
  // A capability that has run out is renewed, unless the directory is gone too.
  Directory parent{
      .handle = last.directory, .attributes = std::move(last.attributes), .cached = true};
  Result<void> destroyed = co_await remover.destroy(parent, file, found->datafiles);
  if (destroyed || is_transport_error(destroyed.error())) co_return destroyed;
  Result<Directory> top = co_await remover.directory(root());
  if (!top) co_return destroyed;
  co_return co_await remover.destroy(*top, file, std::move(found->datafiles));
}

}  // namespace vpfs::client
