#pragma once

#include <optional>
#include <string>
#include <vector>

#include "test/support/process.h"

namespace vpfs::test {

// Two real OrangeFS servers with a file system "orangefs" in a scratch directory.
class OrangefsServers {
 public:
  // Where the installation is: VPFS_ORANGEFS_PREFIX, or pvfs2-server on PATH; nothing when neither.
  // Gives the path of pvfs2-server.
  [[nodiscard]] static std::optional<std::string> find();

  explicit OrangefsServers(const std::string& program);

  [[nodiscard]] std::string address() const;
  // Why it does not work, if it does not.
  [[nodiscard]] std::string errors() const;

 private:
  [[nodiscard]] std::string config_text() const;

  TemporaryDirectory directory_;
  std::vector<ReservedPort> ports_;
  std::vector<Process> servers_;
  std::string problems_;
};

}  // namespace vpfs::test
