// The part of FileSystem that makes objects.
#include <algorithm>
#include <utility>
#include <variant>

#include "base/result.h"
#include "client/orangefs/change.h"
#include "client/orangefs/directory_hash.h"
#include "client/orangefs/file_system.h"
#include "client/orangefs/names.h"
#include "client/orangefs/object.h"
#include "net/both.h"

namespace vpfs::client {
namespace {

constexpr std::uint32_t kNewFileMask = orangefs::kAttrCommonAll | orangefs::kAttrMetaDistribution |
                                       orangefs::kAttrMetaDatafiles |
                                       orangefs::kAttrMetaMirrorDatafiles;
// The layouts of new files' datafiles.
constexpr std::int32_t kRoundRobin = 2;
constexpr std::int32_t kList = 4;
constexpr std::uint32_t kLinkPermissions = 0777;

constexpr std::uint32_t kSetGroupId = 02000;
constexpr std::uint32_t kGroupExecute = 010;

}  // namespace

orangefs::Attributes FileSystem::new_object(const Directory& parent, orangefs::ObjectType type,
                                            std::uint32_t permissions, std::uint32_t mask) const {
  const Caller& owner = *caller();
  orangefs::Attributes attributes;
  attributes.uid = owner.uid;
  attributes.gid = owner.gid;
  if ((parent.attributes->permissions & kSetGroupId) != 0) {
    attributes.gid = parent.attributes->gid;
    const bool member = owner.uid == 0 || owner.gid == attributes.gid ||
                        std::ranges::find(owner.groups, attributes.gid) != owner.groups.end();
    if (type == orangefs::ObjectType::directory) {
      permissions |= kSetGroupId;
    } else if (!member && (permissions & kGroupExecute) != 0) {
      permissions &= ~kSetGroupId;  // no program runs as a group that its owner is not in
    }
  }
  attributes.permissions = permissions;
  attributes.mask = mask;
  attributes.type = type;
  return attributes;
}

net::Task<Result<orangefs::Handle>> FileSystem::enter_new(Directory& parent, std::string name,
                                                          orangefs::Handle handle,
                                                          std::vector<orangefs::Handle> datafiles) {
  Result<void> entered = co_await enter(parent, std::move(name), handle);
  if (entered) co_return handle;
  // When the transport failed a name may lead to the object.
  if (!is_transport_error(entered.error())) {
    (void)co_await destroy(parent, handle, std::move(datafiles));
  }
  co_return std::unexpected(std::move(entered.error()));
}

net::Task<Result<FileSystem::NewFile>> FileSystem::new_file(orangefs::Handle directory_handle,
                                                            std::uint32_t permissions,
                                                            std::uint32_t datafiles,
                                                            std::vector<std::size_t> servers) {
  Result<Directory> parent = co_await directory(directory_handle);
  VPFS_CO_TRY(parent);
  std::uint32_t holders = 0;
  for (const MountConfig::Server& server : config().servers) holders += server.data.empty() ? 0 : 1;
  if (datafiles == 0) datafiles = config().default_datafiles;
  if (datafiles == 0 || datafiles > holders) datafiles = holders;

  const std::size_t server = session().next_metadata_server();
  const MakeQuestion make = [&](const orangefs::Attributes&) {
    orangefs::CreateRequest body;
    body.fs_id = config().fs_id;
    body.credential = session_.credential();
    body.attributes =
        new_object(*parent, orangefs::ObjectType::metafile, permissions, kNewFileMask);
    body.attributes.distribution = orangefs::SimpleStripe{.strip_size = config().strip_size};
    body.num_datafiles = static_cast<std::int32_t>(servers.empty() ? datafiles : servers.size());
    body.layout.algorithm = servers.empty() ? kRoundRobin : kList;
    for (const std::size_t holder : servers) {
      body.layout.servers.push_back(config().servers.at(holder).alias_text);
    }
    return Question{.server = server, .body = std::move(body)};
  };
  Result<orangefs::Response> response = co_await ask_in(*parent, make);
  VPFS_CO_TRY(response);
  auto& made = std::get<orangefs::CreateResponse>(response->body);
  co_return NewFile{.parent = std::move(*parent),
                    .handle = made.metafile_handle,
                    .datafiles = std::move(made.attributes.datafiles)};
}

net::Task<Result<orangefs::Handle>> FileSystem::create(orangefs::Handle directory, std::string name,
                                                       std::uint32_t permissions,
                                                       std::uint32_t datafiles,
                                                       std::vector<std::size_t> servers) {
  VPFS_CO_TRY(check_new_name(name));
  Change change(session().caches(), session().clock());
  change.name(directory, name);
  Result<NewFile> made = co_await new_file(directory, permissions, datafiles, std::move(servers));
  VPFS_CO_TRY(made);
  Result<orangefs::Handle> entered =
      co_await enter_new(made->parent, std::move(name), made->handle, std::move(made->datafiles));
  if (entered) change.happened();
  co_return entered;
}

net::Task<Result<std::unique_ptr<File>>> FileSystem::create_and_open(
    orangefs::Handle directory, std::string name, std::uint32_t permissions,
    std::uint32_t datafiles, std::vector<std::size_t> servers) {
  VPFS_CO_TRY(check_new_name(name));
  Change change(session().caches(), session().clock());
  change.name(directory, name);
  Result<NewFile> made = co_await new_file(directory, permissions, datafiles, std::move(servers));
  VPFS_CO_TRY(made);
  Caches* const caches = session().caches();
  Caches::NameTicket ticket;
  if (caches != nullptr) ticket = caches->name_ticket(directory, name, session().now());
  auto enter = enter_new(made->parent, name, made->handle, std::move(made->datafiles));
  auto open_it = open(made->handle);
  auto [entered, opened] = co_await net::both(std::move(enter), std::move(open_it));
  VPFS_CO_TRY(entered);
  if (caches != nullptr) {
    caches->name_made(ticket, directory, std::move(name), caller(), made->handle);
    change.keep_names();
  }
  co_return std::move(opened);
}

net::Task<Result<orangefs::Handle>> FileSystem::mkdir(orangefs::Handle directory_handle,
                                                      std::string name, std::uint32_t permissions) {
  VPFS_CO_TRY(check_new_name(name));
  Change change(session().caches(), session().clock());
  change.name(directory_handle, name);
  Result<Directory> parent = co_await directory(directory_handle);
  VPFS_CO_TRY(parent);
  const std::size_t server = session().next_metadata_server();
  const MakeQuestion make = [&](const orangefs::Attributes&) {
    orangefs::MkdirRequest body;
    body.fs_id = config().fs_id;
    body.credential = session_.credential();
    body.attributes = new_object(*parent, orangefs::ObjectType::directory, permissions,
                                 orangefs::kAttrCommonAll | orangefs::kAttrDirHint);
    body.handle_extents = config().servers[server].meta;
    body.layout.algorithm = kRoundRobin;
    return Question{.server = server, .body = std::move(body)};
  };
  Result<orangefs::Response> response = co_await ask_in(*parent, make);
  VPFS_CO_TRY(response);
  const orangefs::Handle made = std::get<orangefs::MkdirResponse>(response->body).handle;
  std::vector<orangefs::Handle> no_datafiles;
  Result<orangefs::Handle> entered =
      co_await enter_new(*parent, std::move(name), made, std::move(no_datafiles));
  if (entered) change.happened();
  co_return entered;
}

net::Task<Result<orangefs::Handle>> FileSystem::symlink(orangefs::Handle directory_handle,
                                                        std::string name, std::string target) {
  Result<void> good = check_new_name(name);
  if (good) good = check_link_target(target);
  VPFS_CO_TRY(good);
  Change change(session().caches(), session().clock());
  change.name(directory_handle, name);
  Result<Directory> parent = co_await directory(directory_handle);
  VPFS_CO_TRY(parent);
  const std::size_t server = session().next_metadata_server();
  const MakeQuestion make = [&](const orangefs::Attributes&) {
    return Question{
        .server = server,
        .body = orangefs::BatchCreateRequest{.fs_id = config().fs_id,
                                             .object_type = orangefs::ObjectType::symlink,
                                             .count = 1,
                                             .handle_extents = config().servers[server].meta}};
  };
  Result<orangefs::Response> response = co_await ask_in(*parent, make);
  VPFS_CO_TRY(response);
  const auto& handles = std::get<orangefs::BatchCreateResponse>(response->body).handles;
  if (handles.empty()) {
    co_return fail("the server gave no handle for the new link",
                   std::make_error_code(std::errc::io_error));
  }
  const orangefs::Handle made = handles.front();
  // The link has no target yet, so do not ask for one.
  Result<orangefs::Attributes> fresh =
      co_await get_attributes(session_, made, kEverything & ~orangefs::kAttrSymlinkTarget);
  VPFS_CO_TRY(fresh);
  orangefs::SetattrRequest body;
  body.handle = made;
  body.fs_id = config().fs_id;
  body.attributes = new_object(*parent, orangefs::ObjectType::symlink, kLinkPermissions,
                               orangefs::kAttrCommonAll | orangefs::kAttrSymlinkTarget);
  // OrangeFS counts the NUL, and a length of zero crashes its server.
  body.attributes.symlink_target_length = static_cast<std::uint32_t>(target.size() + 1);
  body.attributes.symlink_target = std::move(target);
  body.credential = session_.credential();
  response = co_await session_.ask(made, made, std::move(fresh->capability), std::move(body));
  if (!response) {
    (void)co_await destroy_object(*parent, made);
    co_return std::unexpected(std::move(response.error()));
  }
  std::vector<orangefs::Handle> no_datafiles;
  Result<orangefs::Handle> entered =
      co_await enter_new(*parent, std::move(name), made, std::move(no_datafiles));
  if (entered) change.happened();
  co_return entered;
}

}  // namespace vpfs::client
