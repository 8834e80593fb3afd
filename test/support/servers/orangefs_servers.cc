#include "test/support/servers/orangefs_servers.h"

#include <cstdlib>
#include <filesystem>
#include <random>
#include <sstream>
#include <thread>

#include <fmt/format.h>
#include <unistd.h>

namespace vpfs::test {

std::optional<std::string> OrangefsServers::find() {
  std::vector<std::string> candidates;
  if (const char* prefix = std::getenv("VPFS_ORANGEFS_PREFIX")) {
    candidates.push_back(std::string(prefix) + "/sbin/pvfs2-server");
  }
  if (const char* path = std::getenv("PATH")) {
    std::istringstream folders(path);
    for (std::string folder; std::getline(folders, folder, ':');) {
      candidates.push_back(folder + "/pvfs2-server");
    }
  }
  for (const std::string& candidate : candidates) {
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return std::nullopt;
}

std::optional<std::string> OrangefsServers::find_tools() {
  const auto program = find();
  if (!program) return std::nullopt;
  const std::filesystem::path server = *program;
  for (const auto& place : {server.parent_path(), server.parent_path().parent_path() / "bin"}) {
    if (std::filesystem::exists(place / "pvfs2-cp")) return place.string();
  }
  return std::nullopt;
}

OrangefsServers::OrangefsServers(const std::string& program, const ProxyFor& proxy_for,
                                 const Settings& settings)
    : program_(program), ports_(2), settings_(settings) {
  for (const ReservedPort& port : ports_) {
    if (proxy_for) proxies_.push_back(proxy_for(port.number()));
  }
  const std::string config = directory_.write("fs.conf", config_text());
  for (int i = 0; i < 2; ++i) {
    const std::string alias = fmt::format("s{}", i);
    for (const char* part : {"data", "meta"}) {
      std::filesystem::create_directories(directory_.path() / alias / part);
    }
    Process format({program, "-f", config, "-a", alias});
    const auto exit = format.wait(60s);
    if (!exit || !exit->ok()) problems_ += format.output() + format.errors();
  }
  for (std::size_t i = 0; i < 2; ++i) servers_.push_back(new_server(i));
}

Process OrangefsServers::new_server(std::size_t index) const {
  return Process({program_, "-d", directory_.path() / "fs.conf", "-a", fmt::format("s{}", index)});
}

void OrangefsServers::kill(std::size_t index) {
  (void)servers_[index].kill();
}

void OrangefsServers::start(std::size_t index) {
  servers_[index] = new_server(index);
}

std::string OrangefsServers::address() const {
  return fmt::format("tcp://{}/orangefs", ports_[0].address());
}

std::string OrangefsServers::proxied_address() const {
  return fmt::format("tcp-px://127.0.0.1:{}/orangefs", proxies_[0]);
}

bool OrangefsServers::wait_until_ready() const {
  for (const ReservedPort& port : ports_) {
    for (int i = 0; i < 1000 && !port.answers(); ++i) std::this_thread::sleep_for(10ms);
    if (!port.answers()) return false;
  }
  return true;
}

std::string OrangefsServers::errors() const {
  std::string text = problems_;
  for (const Process& server : servers_) text += server.output() + server.errors();
  return text;
}

std::string OrangefsServers::config_text() const {
  const std::string root = directory_.path().string();
  std::vector<std::string> addresses;
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    addresses.push_back("tcp://" + ports_[i].address());
    if (!proxies_.empty()) addresses[i] += fmt::format(",tcp-px://127.0.0.1:{}", proxies_[i]);
  }
  std::string text = fmt::format(R"(<Defaults>
	UnexpectedRequests 50
	EventLogging none
	LogStamp datetime
	BMIModules bmi_tcp
	FlowModules flowproto_multiqueue
	PerfUpdateInterval 10000000
	ServerJobBMITimeoutSecs 30
	ServerJobFlowTimeoutSecs 30
	ClientJobBMITimeoutSecs 30
	ClientJobFlowTimeoutSecs 30
	ClientRetryLimit 5
	ClientRetryDelayMilliSecs 1000
	PrecreateBatchSize 0,32,32,32,8,32,0
	PrecreateLowThreshold 0,8,8,8,4,8,0
	TCPBindSpecific yes
	DataStorageSpace {0}/s0/data
	MetadataStorageSpace {0}/s0/meta
	LogFile {0}/s0/log
</Defaults>
<Aliases>
	Alias s0 {1}
	Alias s1 {2}
</Aliases>
<FileSystem>
	Name orangefs
	ID 453119355
	RootHandle 1048576
	FileStuffing yes
	DistrDirServersInitial 1
	DistrDirServersMax 1
	DistrDirSplitSize 100
	FlowBufferSizeBytes {3}
	FlowBuffersPerFlow {5}
	<MetaHandleRanges>
		Range s0 3-2305843009213693953
		Range s1 2305843009213693954-4611686018427387904
	</MetaHandleRanges>
	<DataHandleRanges>
		Range s0 4611686018427387905-6917529027641081855
		Range s1 6917529027641081856-9223372036854775806
	</DataHandleRanges>
	<StorageHints>
		TroveSyncMeta yes
		TroveSyncData no
		TroveMethod {4}
		DBMaxSize 268435456
	</StorageHints>
</FileSystem>
)",
                                 root, addresses[0], addresses[1], settings_.flow_buffer_size,
                                 settings_.trove_method, settings_.flow_buffers);
  for (int i = 0; i < 2; ++i) {
    text += fmt::format(
        "<ServerOptions>\n\tServer s{0}\n\tDataStorageSpace {1}/s{0}/data\n"
        "\tMetadataStorageSpace {1}/s{0}/meta\n\tLogFile {1}/s{0}/log\n</ServerOptions>\n",
        i, root);
  }
  return text;
}

std::string run_orangefs_tool(const std::string& program, std::vector<std::string> arguments,
                              const std::string& mount_table) {
  arguments.insert(arguments.begin(), program);
  Process process(arguments, {{"PVFS2TAB_FILE", mount_table}});
  const auto exit = process.wait(60s);
  const std::string text = process.output() + process.errors();
  return exit && exit->ok() ? text : "FAILED: " + text;
}

std::string random_bytes(std::size_t size) {
  std::mt19937_64 random(size);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

}  // namespace vpfs::test
