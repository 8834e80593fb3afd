#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "test/support/process.h"
#include "test/support/wire_peer.h"

namespace vpfs::test {

// What a test sets of a proxy's configuration; the texts are YAML flow mappings without braces.
struct ProxySettings {
  std::uint16_t upstream = 0;
  std::string protocol = "orangefs";
  std::string proxy;  // "servers: [10.0.0.1]", further entries
  unsigned workers = 1;
  std::string policy = "sfq";
  unsigned depth = 16;
  std::string depth_bytes = "1 GiB";
  std::string scheduler;  // "schedule: [io, metadata]", further entries
  std::string timeouts;   // "hold: 300 ms"
  std::string limits;     // "connections: 10"
  std::string virtual_pfs = "default: {weight: 1}";
  std::string rules = "[]";  // a flow sequence
  // The status file, if not one in the scratch directory.
  std::string status_file;
  std::optional<unsigned> open_files;  // ulimit -n
  // Instead of all of the above but `upstream`: a whole configuration with {listen}, {upstream} and
  // {status_file} where these belong.
  std::string whole;
};

// A real vpfs-proxy on a free port. When it goes out of scope it must have ended well or
// be ended by a SIGTERM with exit code 0: so leaks that a sanitizer finds fail the test.
class ProxyProcess {
 public:
  explicit ProxyProcess(const ProxySettings& settings);
  ~ProxyProcess();
  ProxyProcess(const ProxyProcess&) = delete;
  ProxyProcess& operator=(const ProxyProcess&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_.number(); }
  [[nodiscard]] WirePeer connect(int receive_buffer = 0) const {
    return WirePeer::connect(port(), receive_buffer);
  }
  [[nodiscard]] Process& process() { return *process_; }

  // Asks for a fresh status by SIGUSR1.
  [[nodiscard]] nlohmann::json status();
  using Condition = std::function<bool(const nlohmann::json& status)>;
  // Polls status() until it holds; false when it does not in time.
  [[nodiscard]] bool wait_until(const Condition& condition);
  // Nothing is held, outstanding, alive or connected.
  [[nodiscard]] bool wait_until_idle();
  [[nodiscard]] bool wait_for_queued(std::size_t requests);
  [[nodiscard]] bool wait_for_outstanding(std::size_t requests);

  // A line with `text` in the log, now or soon.
  [[nodiscard]] bool logs(const std::string& text) {
    return process_->wait_for_line(text, kPatience);
  }
  [[nodiscard]] std::size_t lines_with(const std::string& text) const;
  [[nodiscard]] std::size_t open_files() const;
  // Resident memory, in bytes.
  [[nodiscard]] std::size_t memory() const;

  // kill -9 and a new start at the same port with the same configuration.
  void kill();
  void start();
  // Writes the configuration anew and sends SIGHUP; returns when the proxy has looked at it.
  void reload(const ProxySettings& settings);
  [[nodiscard]] const std::string& config() const { return config_; }

 private:
  [[nodiscard]] std::string text_of(const ProxySettings& settings) const;

  ReservedPort port_;
  TemporaryDirectory directory_;
  std::string status_file_;
  std::string config_;
  std::optional<unsigned> open_files_;
  std::optional<Process> process_;
  bool killed_ = false;
};

// One client connection and the upstream connection that the proxy made for it.
struct Link {
  WirePeer client;
  WirePeer server;
};
[[nodiscard]] Link open_link(const ProxyProcess& proxy, FakeDataServer& server,
                             int client_receive_buffer = 0);

// Has the server send copies of `message` to a client that does not read, until its socket takes no
// more and the rest is in the proxy's memory, not in the server's socket. Returns how many. `link`
// is the only connection that moves bytes meanwhile.
[[nodiscard]] std::size_t fill_client_side(ProxyProcess& proxy, Link& link, const Buffer& message);

}  // namespace vpfs::test
