#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "test/support/process.h"

namespace vpfs::test {

// A file system "vpfs" of embedded servers (vpfs-server) on free loopback ports.
class EmbeddedServers {
 public:
  // The memory engine forgets everything when a server ends; the directory engine does not.
  enum class Engine { memory, directory };

  // `extra` is added to the configuration. `proxies` has one port of 127.0.0.1 for each server: its
  // address in the zone tcp-px.
  explicit EmbeddedServers(int count, const std::string& extra = "",
                           const std::vector<std::uint16_t>& proxies = {},
                           Engine engine = Engine::memory);

  [[nodiscard]] std::string address() const;
  [[nodiscard]] std::uint16_t port(std::size_t index) const { return ports_[index].number(); }
  [[nodiscard]] Process& server(std::size_t index) { return servers_[index]; }
  // The servers' standard error.
  [[nodiscard]] std::string errors() const;
  // Starts a server again that has ended.
  void restart(std::size_t index);

 private:
  [[nodiscard]] Process start(std::size_t index) const;

  TemporaryDirectory directory_;
  std::vector<ReservedPort> ports_;
  std::string config_;
  std::vector<Process> servers_;
};

}  // namespace vpfs::test
