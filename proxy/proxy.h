#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>

#include "net/listener.h"
#include "proxy/dispatcher.h"
#include "proxy/dispatcher_access.h"
#include "proxy/settings.h"
#include "proxy/shared_state.h"
#include "proxy/spare_memory.h"
#include "proxy/status.h"
#include "proxy/status_lock.h"
#include "proxy/worker.h"

namespace vpfs::proxy {

// The whole proxy. The calling thread runs the listener, signals and status; workers run the
// connections.
class Proxy {
 public:
  // The error names the setting that cannot be had (address, policy). `config` is the content of
  // `file`; SIGHUP reads the file again.
  [[nodiscard]] static Result<std::unique_ptr<Proxy>> make(const Config& config, std::string file,
                                                           const Clock& clock);
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  // Serves until SIGTERM or SIGINT has drained it. SIGUSR1 writes the status file, SIGUSR2 opens
  // the log file anew, SIGHUP reloads the configuration file.
  void run();
  [[nodiscard]] net::Endpoint local_endpoint() const;

 private:
  Proxy(const Config& config, std::string file, const Clock& clock,
        std::optional<net::Endpoint> upstream);

  void accepted(net::Socket socket);
  void await_signal();
  void reload();
  // Locks the status file of `config`. Returns nothing if that file is locked already.
  [[nodiscard]] Result<std::optional<StatusLock>> lock_status(const Config& config) const;
  [[nodiscard]] Result<void> use(Config config);
  void warn_of_silent_upstream();
  void begin_drain(int signal);
  void check_drained(TimePoint deadline);
  void write_status();
  void arm_status();
  void arm_memory();
  void arm_retiring();

  [[nodiscard]] const Config& config() const { return settings_->config; }

  SharedState shared_;
  const std::string file_;
  SettingsPtr settings_;
  SettingsPtr settings_before_;  // freed by this thread, so that no worker stalls
  Reloads reloads_;
  asio::io_context context_{1};
  std::unique_ptr<net::Listener> listener_;
  asio::signal_set signals_;
  asio::steady_timer status_timer_;
  asio::steady_timer drain_timer_;
  asio::steady_timer memory_timer_;
  asio::steady_timer retire_timer_;
  SpareMemory spare_memory_;
  Dispatcher dispatcher_;
  DispatcherAccess access_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::size_t next_worker_ = 0;
  control::SnapshotReader snapshot_reader_;
  bool status_failed_ = false;
  StatusLock status_lock_;
};

}  // namespace vpfs::proxy
