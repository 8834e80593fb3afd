#include "tools/load/orangefs_mount.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"
#include "client/orangefs/file.h"
#include "tools/load/owner.h"

namespace vpfs::load {
namespace {

constexpr std::uint32_t kFilePermissions = 0644;
constexpr std::uint32_t kDirectoryPermissions = 0777;
constexpr const char* kOwnerKey = "user.vpfs.load";  // the process that uses a file

class OrangefsFile final : public RemoteFile {
 public:
  OrangefsFile(client::FileSystem& file_system, orangefs::Handle directory, std::string name,
               std::unique_ptr<client::File> file)
      : file_system_(file_system),
        directory_(directory),
        name_(std::move(name)),
        file_(std::move(file)) {}

  net::Task<Result<std::uint64_t>> read(std::uint64_t offset, std::span<std::byte> into) override {
    return file_->read(offset, into);
  }
  net::Task<Result<std::uint64_t>> discard(std::uint64_t offset, std::uint64_t size) override {
    return file_->discard(offset, size);
  }
  net::Task<Result<void>> write(std::uint64_t offset, std::span<const std::byte> from) override {
    return file_->write(offset, from);
  }
  net::Task<Result<void>> write(std::uint64_t offset, net::OutputQueue::FilePart from) override {
    return file_->write(offset, from);
  }
  net::Task<Result<void>> remove() override { return file_system_.remove(directory_, name_); }

 private:
  client::FileSystem& file_system_;
  orangefs::Handle directory_;
  std::string name_;
  std::unique_ptr<client::File> file_;
};

}  // namespace

net::Task<Result<void>> OrangefsMount::connect() {
  client::SessionOptions options;
  options.connections = application_.connections;
  options.caller.jobid = application_.jobid;
  options.caller.uid = application_.uid;
  options.caller.gid = settings_.gid;
  Result<std::unique_ptr<client::FileSystem>> mounted =
      co_await client::FileSystem::mount(address_, std::move(options), clock_);
  VPFS_CO_TRY(mounted);
  file_system_ = std::move(*mounted);
  co_return Result<void>();
}

void OrangefsMount::close() {
  if (file_system_) file_system_->close();
}

net::Task<Result<orangefs::Handle>> OrangefsMount::directory() {
  orangefs::Handle handle = file_system_->root();
  const std::string& path = settings_.directory;
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    std::string name = path.substr(begin, end - begin);
    begin = end + 1;
    if (name.empty()) continue;
    Result<orangefs::Handle> next = co_await file_system_->lookup(handle, name);
    if (!next && next.error().code == std::errc::no_such_file_or_directory) {
      next = co_await file_system_->mkdir(handle, name, kDirectoryPermissions);
    }
    if (!next && next.error().code == std::errc::file_exists) {
      next = co_await file_system_->lookup(handle, name);  // another process was faster
    }
    if (!next) co_return next;
    handle = *next;
  }
  co_return handle;
}

Result<std::vector<std::size_t>> OrangefsMount::servers_of(
    std::uint64_t number, const ApplicationSettings& application) const {
  const std::vector<client::MountConfig::Server>& known = file_system_->config().servers;
  const std::vector<std::string>& named = application.servers;
  const std::size_t count = application.datafiles == 0 ? named.size() : application.datafiles;
  std::vector<std::size_t> servers;
  for (std::size_t i = 0; i < std::min(count, named.size()); ++i) {
    const std::string& alias = named[(number + i) % named.size()];
    const auto found = std::ranges::find(known, alias, &client::MountConfig::Server::alias);
    if (found == known.end()) {
      return fail(fmt::format("{}: the file system has no server '{}'", application.name, alias));
    }
    servers.push_back(static_cast<std::size_t>(found - known.begin()));
  }
  return servers;
}

net::Task<Result<void>> OrangefsMount::check_unused(orangefs::Handle parent,
                                                    const std::string& name) {
  const Result<orangefs::Handle> there = co_await file_system_->lookup(parent, name);
  if (!there || settings_.may_replace) co_return Result<void>();
  std::string key = kOwnerKey;
  const Result<std::string> mark = co_await file_system_->get_extended(*there, std::move(key));
  const std::optional<LoadProcess> owner = mark ? parse_owner(*mark) : std::nullopt;
  if (!owner || *owner == this_owner() || has_ended(*owner)) co_return Result<void>();
  co_return fail(
      fmt::format("{}/{} is of a load that runs as process {} of {}: expected another "
                  "`directory`, or no such file if that has ended",
                  settings_.directory, name, owner->pid, owner->host));
}

net::Task<Result<std::unique_ptr<RemoteFile>>> OrangefsMount::make_file(
    std::string name, std::uint64_t number, const ApplicationSettings& application) {
  Result<std::vector<std::size_t>> servers = servers_of(number, application);
  VPFS_CO_TRY(servers);
  Result<orangefs::Handle> parent = co_await directory();
  VPFS_CO_TRY(parent);
  Result<void> unused = co_await check_unused(*parent, name);
  VPFS_CO_TRY(unused);
  Result<void> removed = co_await file_system_->remove(*parent, name);
  if (!removed && removed.error().code != std::errc::no_such_file_or_directory) {
    co_return std::unexpected(std::move(removed.error()));
  }
  Result<orangefs::Handle> made = co_await file_system_->create(
      *parent, name, kFilePermissions, static_cast<std::uint32_t>(application.datafiles),
      std::move(*servers));
  VPFS_CO_TRY(made);
  // A server without extended attributes keeps no such mark.
  std::string key = kOwnerKey;
  std::string mark = owner_text(this_owner());
  (void)co_await file_system_->set_extended(*made, std::move(key), std::move(mark));
  Result<std::unique_ptr<client::File>> file = co_await file_system_->open(*made);
  VPFS_CO_TRY(file);
  co_return std::make_unique<OrangefsFile>(*file_system_, *parent, std::move(name),
                                           std::move(*file));
}

}  // namespace vpfs::load
