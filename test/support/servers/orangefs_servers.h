#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "test/support/process.h"

namespace vpfs::test {

// Two real OrangeFS servers of a file system "orangefs", in a scratch directory.
class OrangefsServers {
 public:
  // The path of pvfs2-server, below VPFS_ORANGEFS_PREFIX or on PATH; nothing if neither has it.
  [[nodiscard]] static std::optional<std::string> find();

  // The folder of its tools (pvfs2-cp and others); nothing if there is no pvfs2-server.
  [[nodiscard]] static std::optional<std::string> find_tools();

  // Maps a server's port to the port of 127.0.0.1 where its proxy listens.
  using ProxyFor = std::function<std::uint16_t(std::uint16_t server)>;
  // If there are proxies, each server's second address is its proxy's, in the zone tcp-px.
  explicit OrangefsServers(const std::string& program, const ProxyFor& proxy_for = {})
      : OrangefsServers(program, proxy_for, Settings{}) {}
  struct Settings {
    std::size_t flow_buffer_size = 262'144;  // FlowBufferSizeBytes
    unsigned flow_buffers = 8;               // FlowBuffersPerFlow
    std::string trove_method = "alt-aio";
  };
  OrangefsServers(const std::string& program, const ProxyFor& proxy_for, const Settings& settings);

  [[nodiscard]] std::string address() const;
  // The mount address through the proxies.
  [[nodiscard]] std::string proxied_address() const;
  // Whether both accept connections within ten seconds.
  [[nodiscard]] bool wait_until_ready() const;
  // Why the servers do not work; empty if they do.
  [[nodiscard]] std::string errors() const;
  // SIGKILL to one of the two, and a new start with what it has stored.
  void kill(std::size_t index);
  void start(std::size_t index);

 private:
  [[nodiscard]] std::string config_text() const;
  [[nodiscard]] Process new_server(std::size_t index) const;

  TemporaryDirectory directory_;
  std::string program_;
  std::vector<ReservedPort> ports_;
  std::vector<std::uint16_t> proxies_;
  Settings settings_;
  std::vector<Process> servers_;
  std::string problems_;
};

// Runs one of OrangeFS's tools with a mount table. Returns its output and errors, after "FAILED: "
// if it did not succeed.
[[nodiscard]] std::string run_orangefs_tool(const std::string& program,
                                            std::vector<std::string> arguments,
                                            const std::string& mount_table);

// Equal sizes give equal bytes.
[[nodiscard]] std::string random_bytes(std::size_t size);

}  // namespace vpfs::test
