#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/fuse/mount_process.h"
#include "test/support/proxy_process.h"
#include "test/support/servers/embedded_servers.h"
#include "test/support/servers/orangefs_servers.h"

namespace vpfs::test {

enum class Backend { directory, embedded, real };

// What can be mounted several times at once: a directory, an OrangeFS of embedded servers, or one
// of two real servers.
class MountSite {
 public:
  // What the test will stop and start again. Servers that are not to be stopped may be in memory.
  enum class Faults { none, of_server, of_proxy };

  // Why there is no such site here; "": there is.
  [[nodiscard]] static std::string why_none(Backend backend);

  explicit MountSite(Backend backend, Faults faults = Faults::none);

  // How the site is mounted. A directory's mount always has locks.
  [[nodiscard]] MountProcess::Settings settings(std::vector<std::string> options = {
                                                    "allow_other"}) const;
  // The SOURCE of the command.
  [[nodiscard]] std::string source() const;

  // One of its servers, or the proxy in front of one. Both come back at the same port.
  void kill_server();
  void start_server();
  void kill_proxy();
  void start_proxy();

 private:
  void add_proxy(std::uint16_t server);

  TemporaryDirectory directory_;
  std::vector<ReservedPort> ports_;
  std::vector<std::unique_ptr<ProxyProcess>> proxies_;
  std::optional<EmbeddedServers> embedded_;
  std::vector<std::string> server_command_;
  std::optional<Process> proxied_;
  std::optional<OrangefsServers> real_;
  std::string address_;
};

// A test of what every kind of mount must do. It is skipped where nothing can be mounted.
class EveryMountTest : public ::testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    if (const std::string why = MountSite::why_none(GetParam()); !why.empty()) GTEST_SKIP() << why;
  }
  [[nodiscard]] bool is_orangefs() const { return GetParam() != Backend::directory; }
};

[[nodiscard]] inline std::string name_of_backend(const ::testing::TestParamInfo<Backend>& info) {
  switch (info.param) {
    case Backend::directory:
      return "Directory";
    case Backend::embedded:
      return "Embedded";
    case Backend::real:
      return "Real";
  }
  return "";
}

}  // namespace vpfs::test
