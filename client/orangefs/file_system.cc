#include "client/orangefs/file_system.h"

#include <algorithm>
#include <cerrno>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/result.h"
#include "client/orangefs/names.h"
#include "client/orangefs/object.h"

// Mounting, and how a view finds objects. file_system_stat.cc describes them, file_system_new.cc
// makes them, file_system_entries.cc removes and renames them, file_system_objects.cc lists them
// and changes their attributes.
namespace vpfs::client {
namespace {

constexpr std::uint32_t kDirectoryMask = orangefs::kAttrCommonAll | orangefs::kAttrDistDir |
                                         orangefs::kAttrDirHint | orangefs::kAttrCapability;

}  // namespace

net::Task<Result<std::unique_ptr<FileSystem>>> FileSystem::mount(MountAddress address,
                                                                 SessionOptions options,
                                                                 const Clock& clock) {
  CallerPtr caller = std::make_shared<const Caller>(options.caller);
  Result<std::shared_ptr<Session>> session =
      co_await Session::open(std::move(address), std::move(options), clock);
  VPFS_CO_TRY(session);
  co_return std::make_unique<FileSystem>(std::move(*session), std::move(caller));
}

net::Task<Result<FileSystem::Directory>> FileSystem::directory(orangefs::Handle handle) {
  Result<HeldAttributes> held = co_await held_attributes(session_, handle, kDirectoryMask);
  VPFS_CO_TRY(held);
  const orangefs::Attributes& attributes = *held->attributes;
  if (attributes.type != orangefs::ObjectType::directory) {
    co_return fail("not a directory", std::make_error_code(std::errc::not_a_directory));
  }
  if (attributes.distributed.dirdata_handles.empty()) {
    co_return fail("the directory has no dirdata object",
                   std::make_error_code(std::errc::io_error));
  }
  co_return Directory{
      .handle = handle, .attributes = std::move(held->attributes), .cached = held->cached};
}

net::Task<Result<FileSystem::Directory>> FileSystem::fresh_directory(orangefs::Handle handle) {
  if (Caches* const caches = session().caches()) caches->forget_attributes(handle);
  return directory(handle);
}

net::Task<Result<orangefs::Response>> FileSystem::ask_in(Directory& parent,
                                                         const MakeQuestion& make, bool* repeated) {
  for (;;) {
    const Caches::AttributesPtr used = parent.attributes;
    const bool cached = parent.cached;
    Question question = make(*used);
    VPFS_CO_TRY(question.server);
    orangefs::Capability capability = used->capability;
    Result<orangefs::Response> response = co_await session_.ask_server(
        *question.server, parent.handle, std::move(capability), std::move(question.body), repeated);
    if (response || !cached || !may_be_stale(response.error())) co_return response;
    // If the request did not use the layout, the object is missing indeed.
    const bool missing = response.error().code == std::errc::no_such_file_or_directory;
    if (missing && !question.by_layout) co_return response;
    if (parent.attributes != used) continue;  // another request in this directory was refused too
    Result<Directory> fresh = co_await fresh_directory(parent.handle);
    VPFS_CO_TRY(fresh);
    parent = std::move(*fresh);
  }
}

net::Task<Result<void>> FileSystem::with_attributes(orangefs::Handle handle,
                                                    const UseAttributes& use) {
  for (;;) {
    Result<HeldAttributes> held = co_await held_attributes(session_, handle);
    VPFS_CO_TRY(held);
    // Another client may make a stuffed file larger, and its data go to more datafiles then.
    const bool may_grow =
        held->attributes->type == orangefs::ObjectType::metafile && is_stuffed(*held->attributes);
    if (!held->cached || !may_grow) {
      Result<void> used = co_await use(held->attributes);
      if (used || !held->cached || !may_be_stale(used.error())) co_return used;
    }
    session().caches()->forget_attributes(handle);
  }
}

net::Task<Result<orangefs::Handle>> FileSystem::lookup(orangefs::Handle directory_handle,
                                                       std::string name) {
  VPFS_CO_TRY(check_name(name));
  if (Caches* const caches = session().caches()) {
    const auto known = caches->name(directory_handle, name, *caller(), session().now());
    if (known) co_return *known;
  }
  Result<Directory> parent = co_await directory(directory_handle);
  VPFS_CO_TRY(parent);
  co_return co_await find(*parent, std::move(name));
}

net::Task<Result<orangefs::Handle>> FileSystem::find(Directory& parent, std::string name) {
  Caches* const caches = session().caches();
  Caches::NameTicket ticket;
  if (caches != nullptr) ticket = caches->name_ticket(parent.handle, name, session().now());
  const MakeQuestion make = [&](const orangefs::Attributes&) {
    return Question{.server = session().server_of(parent.handle),
                    .body = orangefs::LookupPathRequest{.path = name,
                                                        .fs_id = config().fs_id,
                                                        .starting_handle = parent.handle,
                                                        .attribute_mask = orangefs::kAttrCommonAll,
                                                        .credential = session_.credential()}};
  };
  Result<orangefs::Response> response = co_await ask_in(parent, make);
  VPFS_CO_TRY(response);
  const auto& found = std::get<orangefs::LookupPathResponse>(response->body).handles;
  if (found.empty()) {
    co_return fail("not found", std::make_error_code(std::errc::no_such_file_or_directory));
  }
  if (caches != nullptr) {
    caches->put_name(ticket, parent.handle, std::move(name), caller(), found.front());
  }
  co_return found.front();
}

net::Task<Result<orangefs::Handle>> FileSystem::resolve(std::string path) {
  orangefs::Handle handle = root();
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    if (end > begin) {
      Result<orangefs::Handle> next = co_await lookup(handle, path.substr(begin, end - begin));
      if (!next) {
        co_return fail(fmt::format("{}: {}", path, next.error().message), next.error().code);
      }
      handle = *next;
    }
    begin = end + 1;
  }
  co_return handle;
}

net::Task<Result<std::vector<std::size_t>>> FileSystem::servers_of(orangefs::Handle file) {
  const Result<orangefs::Attributes> found = co_await get_attributes(session_, file);
  VPFS_CO_TRY(found);
  std::vector<std::size_t> servers;
  for (const orangefs::Handle datafile : found->datafiles) {
    const Result<std::size_t> server = session().server_of(datafile);
    VPFS_CO_TRY(server);
    servers.push_back(*server);
  }
  co_return servers;
}

net::Task<Result<std::unique_ptr<File>>> FileSystem::open(
    orangefs::Handle handle, std::optional<orangefs::Capability> right) {
  co_return co_await File::open(session_.shared_session(), caller(), handle, std::move(right));
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
  const auto results = co_await session().call_all(std::move(requests));
  VPFS_CO_TRY(all_good(results));
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

}  // namespace vpfs::client
