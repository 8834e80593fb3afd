#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "test/support/process.h"
#include "test/support/servers/wire_peer.h"

namespace vpfs::test {

// The configuration of a proxy under test. The texts are YAML flow mappings without braces.
struct ProxySettings {
  std::uint16_t upstream = 0;
  std::string protocol = "orangefs";
  std::string proxy;  // further entries: "servers: [10.0.0.1]"
  unsigned workers = 1;
  std::string policy = "sfq";
  unsigned depth = 16;
  std::string depth_bytes = "1 GiB";
  std::string scheduler;  // further entries: "schedule: [io, metadata]"
  std::string timeouts;   // "hold: 300 ms"
  std::string limits;     // "connections: 10"
  std::string restart;    // "patience: 100 ms"; its socket is added
  std::string control;    // the control port: "socket: /run/x.sock"; empty: none
  std::string virtual_pfs = "default: {weight: 1}";
  std::string rules = "[]";  // a flow sequence
  // The status file; empty: one in the scratch directory.
  std::string status_file;
  std::optional<unsigned> open_files;  // ulimit -n
  // A whole configuration that replaces all of the above except `upstream`. {listen}, {upstream}
  // and {status_file} in it are filled in.
  std::string whole;
};

// A real vpfs-proxy on a free port. Its destructor sends SIGTERM if it still runs, and fails the
// test if it does not exit with 0. So a leak that a sanitizer finds fails the test.
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

  // Requests a fresh status by SIGUSR1 and reads it.
  [[nodiscard]] nlohmann::json status();
  using Condition = std::function<bool(const nlohmann::json& status)>;
  // Polls status() until `condition` holds; false when time runs out.
  [[nodiscard]] bool wait_until(const Condition& condition);
  // Waits until no request is held or outstanding, no I/O is alive, and no client is connected.
  [[nodiscard]] bool wait_until_idle();
  [[nodiscard]] bool wait_for_queued(std::size_t requests);
  [[nodiscard]] bool wait_for_outstanding(std::size_t requests);

  // Waits for a line with `text` in the log.
  [[nodiscard]] bool logs(const std::string& text) {
    return process_->wait_for_line(text, kPatience);
  }
  [[nodiscard]] std::size_t lines_with(const std::string& text) const;
  [[nodiscard]] std::size_t open_files() const;
  // Resident memory, in bytes.
  [[nodiscard]] std::size_t memory() const;
  // Its part that no file backs, in bytes: what the proxy has allocated and changed.
  [[nodiscard]] std::size_t own_memory() const;

  // SIGKILL, and a new start with the same port and configuration.
  void kill();
  void start();
  // Starts a new process that takes over, from then on the one of process(). Returns when it has,
  // with the old one, which may still run.
  [[nodiscard]] Process hand_over();
  // The same of one that fails, which it returns when it has ended.
  [[nodiscard]] Process fail_to_hand_over(const std::string& config);
  // Where a process dials that takes over.
  [[nodiscard]] std::string restart_socket() const { return (directory_.path() / "take").string(); }
  // Another text of the configuration file, which no process reads before it takes over.
  std::string write_config(const ProxySettings& settings, const std::string& name) const;
  void use_config(const std::string& file) { config_ = file; }
  // Writes the new configuration and sends SIGHUP. Returns when the proxy has read it.
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
struct ProxiedLink {
  WirePeer client;
  WirePeer server;
};
[[nodiscard]] ProxiedLink open_link(const ProxyProcess& proxy, FakeDataServer& server,
                                    int client_receive_buffer = 0);

// A write whose data may come: the server has agreed.
[[nodiscard]] bool start_write(ProxiedLink& link, orangefs::Tag tag, std::int64_t size);

// The server sends copies of `message` to a client that does not read, until the client's socket is
// full and the proxy holds the rest in memory. Returns the number of copies. `link` must be the
// only connection that moves bytes meanwhile.
[[nodiscard]] std::size_t fill_client_side(ProxyProcess& proxy, ProxiedLink& link,
                                           const Buffer& message);

}  // namespace vpfs::test
