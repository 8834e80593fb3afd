#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "test/support/network_namespaces.h"
#include "test/support/process.h"

namespace vpfs::test {

// A real BeeGFS management server and storage server with two targets in a scratch directory, on
// the host of servers: they use no loopback interface, and need ports that nobody else has.
class BeegfsServers {
 public:
  static constexpr std::uint16_t kStoragePort = 8003;

  // The folder of beegfs-mgmtd and beegfs-storage below VPFS_BEEGFS_PREFIX; nothing without it.
  [[nodiscard]] static std::optional<std::string> find();

  // Returns when the storage server takes connections; else errors() says why not.
  BeegfsServers(const std::string& folder, const TwoHosts& hosts);

  [[nodiscard]] bool ready() const { return ready_; }
  [[nodiscard]] std::string errors() const;
  // Bytes in the chunk files of a target, which are numbered from 1.
  [[nodiscard]] std::uint64_t stored_bytes(std::size_t target) const;
  // Whether the storage server ends well when it is told to.
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
