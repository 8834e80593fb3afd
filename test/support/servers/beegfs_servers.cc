#include "test/support/servers/beegfs_servers.h"

#include <cstdlib>

#include <fmt/format.h>
#include <unistd.h>

namespace vpfs::test {
namespace {

constexpr int kManagementPort = 8008;

// Without a machine id, a server takes the id of a block device. If it can read neither, it
// believes libblkid's cache.
std::vector<std::pair<std::string, std::string>> machine_id(const TemporaryDirectory& directory) {
  if (::access("/sys/class/dmi/id/product_uuid", R_OK) == 0) return {};
  const std::string cache = directory.write(
      "blkid.tab",
      "<device DEVNO=\"0xfe00\" TIME=\"1700000000.0\" "
      "UUID=\"6f0d7a52-3c1e-4b8a-9d27-0123456789ab\" TYPE=\"ext4\">/dev/vda</device>\n");
  return {{"BLKID_FILE", cache}};
}

}  // namespace

std::optional<std::string> BeegfsServers::find() {
  const char* const prefix = std::getenv("VPFS_BEEGFS_PREFIX");
  if (prefix == nullptr) return std::nullopt;
  for (const char* folder : {"/sbin", "/bin"}) {
    const std::string found = std::string(prefix) + folder;
    if (::access((found + "/beegfs-storage").c_str(), X_OK) == 0 &&
        ::access((found + "/beegfs-mgmtd").c_str(), X_OK) == 0) {
      return found;
    }
  }
  return std::nullopt;
}

BeegfsServers::BeegfsServers(const std::string& folder, const TwoHosts& hosts) {
  const std::string management = folder + "/beegfs-mgmtd";
  if (!run({management, "--init", "--log-target", "stderr", "--db-file", file("mgmtd.sqlite")},
           &problems_)
           .ok()) {
    return;
  }
  management_.emplace(hosts.at_servers(
      {management, "--db-file", file("mgmtd.sqlite"), "--beemsg-port",
       std::to_string(kManagementPort), "--grpc-port", "8010", "--tls-disable", "--auth-disable",
       "--license-disable", "--ipv6-disable", "--log-target", "stderr", "--log-level", "info"}));
  if (!management_->wait_for_line("Listening for BeeGFS connections on")) return;
  storage_.emplace(
      hosts.at_servers(
          {folder + "/beegfs-storage", "sysMgmtdHost=127.0.0.1",
           fmt::format("connMgmtdPort={}", kManagementPort),
           fmt::format("connStoragePort={}", kStoragePort), "connDisableAuthentication=true",
           "connUseRDMA=false", "connDisableIPv6=true", "logType=logfile", "logLevel=4",
           "runDaemonized=false", "storeAllowFirstRunInit=true",
           fmt::format("storeStorageDirectory={},{}", file("target1"), file("target2")),
           "tuneNumWorkers=12", "tuneFileReadSize=128k", "tuneFileWriteSize=128k"}),
      machine_id(directory_));
  ready_ = storage_->wait_for_line("Components running", 30s);
}

std::string BeegfsServers::errors() const {
  std::string all = problems_;
  if (management_) all += management_->errors();
  if (storage_) all += storage_->output() + storage_->errors();
  return all;
}

std::uint64_t BeegfsServers::stored_bytes(std::size_t target) const {
  const std::filesystem::path chunks = file(fmt::format("target{}", target)) + "/chunks";
  std::uint64_t sum = 0;
  for (const auto& each : std::filesystem::recursive_directory_iterator(chunks)) {
    if (each.is_regular_file()) sum += each.file_size();
  }
  return sum;
}

bool BeegfsServers::stop() {
  return storage_->stop(30s).ok();
}

}  // namespace vpfs::test
