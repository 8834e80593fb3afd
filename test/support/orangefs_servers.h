#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
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

  // Where its tools are (pvfs2-cp and its like); nothing as above.
  [[nodiscard]] static std::optional<std::string> find_tools();

  // Given the port of a server: the port of 127.0.0.1 where its proxy listens.
  using ProxyFor = std::function<std::uint16_t(std::uint16_t server)>;
  // With proxies each server has a second address, its proxy's, in the zone tcp-px.
  explicit OrangefsServers(const std::string& program, const ProxyFor& proxy_for = {})
      : OrangefsServers(program, proxy_for, Settings{}) {}
  struct Settings {
    std::size_t flow_buffer_size = 262'144;  // FlowBufferSizeBytes
    unsigned flow_buffers = 8;               // FlowBuffersPerFlow
    std::string trove_method = "alt-aio";
  };
  OrangefsServers(const std::string& program, const ProxyFor& proxy_for, const Settings& settings);

  [[nodiscard]] std::string address() const;
  // Through the proxies.
  [[nodiscard]] std::string proxied_address() const;
  // Why it does not work, if it does not.
  [[nodiscard]] std::string errors() const;

 private:
  [[nodiscard]] std::string config_text() const;

  TemporaryDirectory directory_;
  std::vector<ReservedPort> ports_;
  std::vector<std::uint16_t> proxies_;
  Settings settings_;
  std::vector<Process> servers_;
  std::string problems_;
};

// Runs a tool of OrangeFS's with a mount table. What it printed, both ways; "FAILED: " before it
// when it did not succeed.
[[nodiscard]] std::string run_orangefs_tool(const std::string& program,
                                            std::vector<std::string> arguments,
                                            const std::string& mount_table);

// The same for the same size.
[[nodiscard]] std::string random_bytes(std::size_t size);

}  // namespace vpfs::test
