#include "client/orangefs/file_system.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "client/orangefs/directory_hash.h"
#include "client/orangefs/object.h"

namespace vpfs::client {
namespace {

constexpr std::uint32_t kDirectoryMask = orangefs::kAttrCommonAll | orangefs::kAttrDistDir |
                                         orangefs::kAttrDirHint | orangefs::kAttrCapability;
constexpr std::uint32_t kNewFileMask = orangefs::kAttrCommonAll | orangefs::kAttrMetaDistribution |
                                       orangefs::kAttrMetaDatafiles |
                                       orangefs::kAttrMetaMirrorDatafiles;
// The layouts of new files' datafiles.
constexpr std::int32_t kRoundRobin = 2;
constexpr std::int32_t kList = 4;
constexpr std::uint32_t kLinkPermissions = 0777;

orangefs::Attributes new_object(const SessionOptions& options, orangefs::ObjectType type,
                                std::uint32_t permissions, std::uint32_t mask) {
  orangefs::Attributes attributes;
  attributes.uid = options.uid;
  attributes.gid = options.gid;
  attributes.permissions = permissions;
  attributes.mask = mask;
  attributes.type = type;
  return attributes;
}

}  // namespace

FileSystem::FileSystem(std::unique_ptr<Session> session) : session_(std::move(session)) {}
FileSystem::~FileSystem() {
  close();
}

net::Task<Result<std::unique_ptr<FileSystem>>> FileSystem::mount(MountAddress address,
                                                                 SessionOptions options,
                                                                 const Clock& clock) {
  Result<std::unique_ptr<Session>> session =
      co_await Session::open(std::move(address), std::move(options), clock);
  if (!session) co_return std::unexpected(std::move(session.error()));
  co_return std::make_unique<FileSystem>(std::move(*session));
}

net::Task<Result<orangefs::Response>> FileSystem::ask(orangefs::Handle target,
                                                      orangefs::Handle object,
                                                      orangefs::Capability capability,
                                                      orangefs::RequestBody body, bool* repeated) {
  const Result<std::size_t> server = session_->server_of(target);
  if (!server) co_return std::unexpected(server.error());
  orangefs::Request request{.capability = std::move(capability),
                            .hints = session_->hints(object),
                            .body = std::move(body)};
  co_return co_await session_->call(*server, std::move(request), repeated);
}

net::Task<Result<FileSystem::Directory>> FileSystem::directory(orangefs::Handle handle) {
  Result<orangefs::Attributes> attributes =
      co_await get_attributes(*session_, handle, kDirectoryMask);
  if (!attributes) co_return std::unexpected(std::move(attributes.error()));
  if (attributes->type != orangefs::ObjectType::directory) {
    co_return fail("not a directory", std::make_error_code(std::errc::not_a_directory));
  }
  if (attributes->distributed.dirdata_handles.empty()) {
    co_return fail("the directory has no dirdata object",
                   std::make_error_code(std::errc::io_error));
  }
  co_return Directory{.handle = handle,
                      .capability = std::move(attributes->capability),
                      .layout = std::move(attributes->distributed)};
}

net::Task<Result<orangefs::Handle>> FileSystem::lookup(orangefs::Handle directory_handle,
                                                       std::string name) {
  Result<Directory> parent = co_await directory(directory_handle);
  if (!parent) co_return std::unexpected(std::move(parent.error()));
  orangefs::LookupPathRequest body{.path = std::move(name),
                                   .fs_id = config().fs_id,
                                   .starting_handle = directory_handle,
                                   .attribute_mask = orangefs::kAttrCommonAll,
                                   .credential = session_->credential()};
  Result<orangefs::Response> response = co_await ask(
      directory_handle, directory_handle, std::move(parent->capability), std::move(body));
  if (!response) co_return std::unexpected(std::move(response.error()));
  const auto& found = std::get<orangefs::LookupPathResponse>(response->body).handles;
  if (found.empty()) {
    co_return fail("not found", std::make_error_code(std::errc::no_such_file_or_directory));
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

net::Task<Result<Stat>> FileSystem::stat(orangefs::Handle handle) {
  Result<orangefs::Attributes> found = co_await get_attributes(*session_, handle);
  if (!found) co_return std::unexpected(std::move(found.error()));
  Stat stat{.handle = handle,
            .type = found->type,
            .uid = found->uid,
            .gid = found->gid,
            .permissions = found->permissions & 07777U,
            .atime = found->atime,
            .mtime = found->mtime,
            .ctime = found->ctime};
  if (found->type == orangefs::ObjectType::symlink) stat.size = found->symlink_target.size();
  if (found->type == orangefs::ObjectType::metafile) {
    stat.datafiles = static_cast<std::uint32_t>(found->datafiles.size());
    stat.strip_size = strip_size_of(*found).value_or(0);
    const Result<std::uint64_t> size = co_await file_size(*session_, handle, std::move(*found));
    if (!size) co_return std::unexpected(size.error());
    stat.size = *size;
  }
  co_return stat;
}

net::Task<Result<std::unique_ptr<File>>> FileSystem::open(orangefs::Handle handle) {
  co_return co_await File::open(*session_, handle);
}

std::size_t FileSystem::next_metadata_server() {
  const std::vector<MountConfig::Server>& servers = config().servers;
  do {
    turn_ = (turn_ + 1) % servers.size();
  } while (servers[turn_].meta.empty());
  return turn_;
}

net::Task<Result<void>> FileSystem::enter(const Directory& parent, std::string name,
                                          orangefs::Handle handle) {
  const orangefs::Handle place = dirdata_of(parent.layout, name);
  orangefs::CrdirentRequest body{.credential = session_->credential(),
                                 .name = name,
                                 .new_handle = handle,
                                 .parent_handle = parent.handle,
                                 .dirdata_handle = place,
                                 .fs_id = config().fs_id};
  Result<orangefs::Response> response =
      co_await ask(place, parent.handle, parent.capability, std::move(body));
  if (response) co_return Result<void>();
  if (response.error().code == std::errc::file_exists) {
    const Result<orangefs::Handle> present = co_await lookup(parent.handle, std::move(name));
    if (present && *present == handle) co_return Result<void>();
  }
  co_return std::unexpected(std::move(response.error()));
}

net::Task<Result<std::optional<orangefs::Handle>>> FileSystem::leave(const Directory& parent,
                                                                     std::string name) {
  const orangefs::Handle place = dirdata_of(parent.layout, name);
  orangefs::RmdirentRequest body{
      .name = std::move(name), .dirdata_handle = place, .fs_id = config().fs_id};
  bool repeated = false;
  Result<orangefs::Response> response =
      co_await ask(place, parent.handle, parent.capability, std::move(body), &repeated);
  if (response) co_return std::get<orangefs::HandleResponse>(response->body).handle;
  if (repeated && response.error().code == std::errc::no_such_file_or_directory) {
    co_return std::nullopt;
  }
  co_return std::unexpected(std::move(response.error()));
}

net::Task<> FileSystem::undo(const Directory& parent, const Error& failure, orangefs::Handle handle,
                             std::vector<orangefs::Handle> datafiles) {
  if (is_transport_error(failure)) co_return;
  (void)co_await destroy(parent, handle, std::move(datafiles));
}

net::Task<Result<void>> FileSystem::destroy_object(const Directory& parent,
                                                   orangefs::Handle handle) {
  orangefs::RemoveRequest body{
      .handle = handle, .fs_id = config().fs_id, .credential = session_->credential()};
  Result<orangefs::Response> response =
      co_await ask(handle, parent.handle, parent.capability, std::move(body));
  if (!response) co_return std::unexpected(std::move(response.error()));
  co_return Result<void>();
}

net::Task<Result<void>> FileSystem::destroy(const Directory& parent, orangefs::Handle handle,
                                            std::vector<orangefs::Handle> datafiles) {
  datafiles.push_back(handle);
  for (const orangefs::Handle object : datafiles) {
    const Result<void> gone = co_await destroy_object(parent, object);
    if (!gone && gone.error().code != std::errc::no_such_file_or_directory) co_return gone;
  }
  co_return Result<void>();
}

net::Task<Result<void>> FileSystem::destroy_all(const Directory& parent, orangefs::Handle handle,
                                                orangefs::Attributes attributes) {
  std::vector<orangefs::Handle> datafiles;
  if (attributes.type == orangefs::ObjectType::metafile)
    datafiles = std::move(attributes.datafiles);
  co_return co_await destroy(parent, handle, std::move(datafiles));
}

net::Task<Result<orangefs::Handle>> FileSystem::create(orangefs::Handle directory_handle,
                                                       std::string name, std::uint32_t permissions,
                                                       std::uint32_t datafiles,
                                                       std::vector<std::size_t> servers) {
  Result<Directory> parent = co_await directory(directory_handle);
  if (!parent) co_return std::unexpected(std::move(parent.error()));
  std::uint32_t holders = 0;
  for (const MountConfig::Server& server : config().servers) holders += server.data.empty() ? 0 : 1;
  if (datafiles == 0) datafiles = config().default_datafiles;
  if (datafiles == 0 || datafiles > holders) datafiles = holders;

  orangefs::CreateRequest body;
  body.fs_id = config().fs_id;
  body.credential = session_->credential();
  body.attributes =
      new_object(session_->options(), orangefs::ObjectType::metafile, permissions, kNewFileMask);
  body.attributes.distribution = orangefs::SimpleStripe{.strip_size = config().strip_size};
  body.num_datafiles = static_cast<std::int32_t>(servers.empty() ? datafiles : servers.size());
  body.layout.algorithm = servers.empty() ? kRoundRobin : kList;
  for (const std::size_t server : servers) {
    body.layout.servers.push_back(config().servers.at(server).address);
  }
  orangefs::Request request{.capability = parent->capability,
                            .hints = session_->hints(directory_handle),
                            .body = std::move(body)};
  Result<orangefs::Response> response =
      co_await session_->call(next_metadata_server(), std::move(request));
  if (!response) co_return std::unexpected(std::move(response.error()));
  const auto& made = std::get<orangefs::CreateResponse>(response->body);
  Result<void> entered = co_await enter(*parent, std::move(name), made.metafile_handle);
  if (!entered) {
    co_await undo(*parent, entered.error(), made.metafile_handle, made.attributes.datafiles);
    co_return std::unexpected(std::move(entered.error()));
  }
  co_return made.metafile_handle;
}

net::Task<Result<orangefs::Handle>> FileSystem::mkdir(orangefs::Handle directory_handle,
                                                      std::string name, std::uint32_t permissions) {
  Result<Directory> parent = co_await directory(directory_handle);
  if (!parent) co_return std::unexpected(std::move(parent.error()));
  const std::size_t server = next_metadata_server();
  orangefs::MkdirRequest body;
  body.fs_id = config().fs_id;
  body.credential = session_->credential();
  body.attributes = new_object(session_->options(), orangefs::ObjectType::directory, permissions,
                               orangefs::kAttrCommonAll | orangefs::kAttrDirHint);
  body.handle_extents = config().servers[server].meta;
  body.layout.algorithm = kRoundRobin;
  orangefs::Request request{.capability = parent->capability,
                            .hints = session_->hints(directory_handle),
                            .body = std::move(body)};
  Result<orangefs::Response> response = co_await session_->call(server, std::move(request));
  if (!response) co_return std::unexpected(std::move(response.error()));
  const orangefs::Handle made = std::get<orangefs::MkdirResponse>(response->body).handle;
  Result<void> entered = co_await enter(*parent, std::move(name), made);
  if (!entered) {
    std::vector<orangefs::Handle> no_datafiles;
    co_await undo(*parent, entered.error(), made, std::move(no_datafiles));
    co_return std::unexpected(std::move(entered.error()));
  }
  co_return made;
}

net::Task<Result<orangefs::Handle>> FileSystem::symlink(orangefs::Handle directory_handle,
                                                        std::string name, std::string target) {
  Result<Directory> parent = co_await directory(directory_handle);
  if (!parent) co_return std::unexpected(std::move(parent.error()));
  const std::size_t server = next_metadata_server();
  orangefs::Request request{
      .capability = parent->capability,
      .hints = session_->hints(directory_handle),
      .body = orangefs::BatchCreateRequest{.fs_id = config().fs_id,
                                           .object_type = orangefs::ObjectType::symlink,
                                           .count = 1,
                                           .handle_extents = config().servers[server].meta}};
  Result<orangefs::Response> response = co_await session_->call(server, std::move(request));
  if (!response) co_return std::unexpected(std::move(response.error()));
  const auto& handles = std::get<orangefs::BatchCreateResponse>(response->body).handles;
  if (handles.empty()) {
    co_return fail("the server gave no handle for the new link",
                   std::make_error_code(std::errc::io_error));
  }
  const orangefs::Handle made = handles.front();
  // The link has no target yet, so do not ask for one.
  Result<orangefs::Attributes> fresh =
      co_await get_attributes(*session_, made, kEverything & ~orangefs::kAttrSymlinkTarget);
  if (!fresh) co_return std::unexpected(std::move(fresh.error()));
  orangefs::SetattrRequest body;
  body.handle = made;
  body.fs_id = config().fs_id;
  body.attributes = new_object(session_->options(), orangefs::ObjectType::symlink, kLinkPermissions,
                               orangefs::kAttrCommonAll | orangefs::kAttrSymlinkTarget);
  // OrangeFS counts the NUL, and a length of zero crashes its server.
  body.attributes.symlink_target_length = static_cast<std::uint32_t>(target.size() + 1);
  body.attributes.symlink_target = std::move(target);
  body.credential = session_->credential();
  response = co_await ask(made, made, std::move(fresh->capability), std::move(body));
  if (!response) {
    (void)co_await destroy_object(*parent, made);
    co_return std::unexpected(std::move(response.error()));
  }
  Result<void> entered = co_await enter(*parent, std::move(name), made);
  if (!entered) {
    std::vector<orangefs::Handle> no_datafiles;
    co_await undo(*parent, entered.error(), made, std::move(no_datafiles));
    co_return std::unexpected(std::move(entered.error()));
  }
  co_return made;
}

net::Task<Result<std::string>> FileSystem::readlink(orangefs::Handle link) {
  Result<orangefs::Attributes> found = co_await get_attributes(*session_, link);
  if (!found) co_return std::unexpected(std::move(found.error()));
  if (found->type != orangefs::ObjectType::symlink) {
    co_return fail("not a symbolic link", std::make_error_code(std::errc::invalid_argument));
  }
  co_return std::move(found->symlink_target);
}

net::Task<Result<void>> FileSystem::remove(orangefs::Handle directory_handle, std::string name) {
  Result<Directory> parent = co_await directory(directory_handle);
  if (!parent) co_return std::unexpected(std::move(parent.error()));
  const Result<orangefs::Handle> object = co_await lookup(directory_handle, name);
  if (!object) co_return std::unexpected(object.error());
  // Every check comes before the name is removed.
  Result<orangefs::Attributes> found = co_await get_attributes(*session_, *object);
  const bool dangling = !found && found.error().code == std::errc::no_such_file_or_directory;
  if (!found && !dangling) co_return std::unexpected(std::move(found.error()));
  if (found && found->type == orangefs::ObjectType::directory) {
    const Result<std::vector<DirectoryEntry>> entries = co_await readdir(*object);
    if (!entries) co_return std::unexpected(entries.error());
    if (!entries->empty()) {
      co_return fail("remove: the directory has entries",
                     std::make_error_code(std::errc::directory_not_empty));
    }
  }
  const Result<std::optional<orangefs::Handle>> left = co_await leave(*parent, name);
  if (!left) co_return std::unexpected(left.error());
  // A retry may hide which object the name had. Keep the object then: an object without a name is
  // better than a name without an object.
  const std::optional<orangefs::Handle>& led_to = *left;
  if (!led_to) co_return Result<void>();
  const orangefs::Handle gone = *led_to;
  if (gone != *object) found = co_await get_attributes(*session_, gone);  // renamed meanwhile
  Result<void> destroyed;
  if (found) {
    destroyed = co_await destroy_all(*parent, gone, std::move(*found));
  } else if (found.error().code != std::errc::no_such_file_or_directory) {
    destroyed = std::unexpected(std::move(found.error()));
  }
  // The directory may have got an entry meanwhile, or a server is down: restore the name.
  if (!destroyed) (void)co_await enter(*parent, std::move(name), gone);
  co_return destroyed;
}

}  // namespace vpfs::client
