#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "test/support/network_namespaces.h"
#include "test/support/process.h"

namespace vpfs::test {

// A real BeeGFS management server and a storage server with two targets, in a scratch directory.
// They run on the servers' host of TwoHosts, since BeeGFS offers clients no loopback address and
// these ports are fixed.
class BeegfsServers {
 public:
  static constexpr std::uint16_t kStoragePort = 8003;

  // The folder of beegfs-mgmtd and beegfs-storage below VPFS_BEEGFS_PREFIX, if that is set.
  [[nodiscard]] static std::optional<std::string> find();

  // Returns when the storage server accepts connections. If it does not, errors() says why.
  BeegfsServers(const std::string& folder, const TwoHosts& hosts);

  [[nodiscard]] bool ready() const { return ready_; }
  [[nodiscard]] std::string errors() const;
  // Bytes in the chunk files of a target. Targets are numbered from 1.
  [[nodiscard]] std::uint64_t stored_bytes(std::size_t target) const;
  // Stops the storage server; true if it exits with 0.
  [[nodiscard]] bool stop();

 private:
  [[nodiscard]] std::string file(const std::string& name) const {
    return (directory_.path() / name).string();
  }

  TemporaryDirectory directory_;
  std::optional<Process> management_;
  std::optional<Process> storage_;
  std::string problems_;
  bool ready_ = false;
};

}  // namespace vpfs::test
