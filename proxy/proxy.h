#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>

#include "control/admin/administration.h"
#include "control/admin/host_names.h"
#include "control/admin/live_state.h"
#include "control/admin/name_lookups.h"
#include "control/admin/stage_owner.h"
#include "control/host/control_side.h"
#include "control/host/gate_access.h"
#include "control/host/status_file.h"
#include "control/store/file_calls.h"
#include "net/listener.h"
#include "proxy/dispatcher.h"
#include "proxy/settings.h"
#include "proxy/shared_state.h"
#include "proxy/spare_memory.h"
#include "proxy/status.h"
#include "proxy/worker.h"

namespace vpfs::proxy {

// The whole proxy. The calling thread runs the listener, signals, status and what administrators
// ask; workers run the connections.
class Proxy final : private control::StageOwner {
 public:
  // The error names the setting that cannot be had (address, policy, journal). `config` is the
  // content of `file`; SIGHUP reads the file again. Live rules of the journal are in force, and
  // what was due is ended, before anybody can connect. `names` and `clock` outlive the proxy.
  [[nodiscard]] static Result<std::unique_ptr<Proxy>> make(const Config& config, std::string file,
                                                           control::HostNames& names,
                                                           const Clock& clock);
  ~Proxy() override;
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  // Serves until SIGTERM or SIGINT has drained it. SIGUSR1 writes the status file, SIGUSR2 opens
  // the log file anew, SIGHUP reloads the configuration file.
  void run();
  [[nodiscard]] net::Endpoint local_endpoint() const;

 private:
  // The live rules of a start, and the configuration in force with them.
  struct Live {
    std::shared_ptr<const Config> file;
    std::unique_ptr<control::FileCalls> calls;
    std::unique_ptr<control::LiveState> state;

    [[nodiscard]] Config in_force() const;
  };
  [[nodiscard]] static Result<Live> load_live(const Config& config);

  Proxy(Live live, std::string file, control::HostNames& names, const Clock& clock,
        std::optional<net::Endpoint> upstream);

  // control::StageOwner
  void use(const stage::Config& config) override;
  void set_bypass(bool on) override;
  void reload(Reloaded done) override;
  void look_up(const control::WantedNames& names,
               std::function<void(std::optional<std::string> problem)> done) override {
    lookups_.fetch(names, std::move(done));
  }
  void drain() override { begin_drain("an administrator asked for it"); }
  [[nodiscard]] control::StageAccess& stage() override { return access_; }
  [[nodiscard]] std::string status() override;
  void describe(control::StatsReply& reply) override;
  void list_clients(std::function<void(std::vector<control::Client>)> done) override;

  void accepted(net::Socket socket);
  void await_signal();
  [[nodiscard]] Result<std::vector<std::string>> reload_now();
  // Those of the file as it is now, and of live rules beside it.
  [[nodiscard]] control::WantedNames names_of_file() const;
  [[nodiscard]] Result<void> take_on(const Config& config);
  // Locks the status file of `config`. Returns nothing if that file is locked already.
  [[nodiscard]] Result<std::optional<control::StatusLock>> lock_status(const Config& config) const;
  void put_into_force(Config config);
  void warn_of_silent_upstream();
  void begin_drain(std::string_view why);
  void check_drained(TimePoint deadline);
  void write_status();
  void arm_status();
  void arm_memory();
  void arm_retiring();
  void arm_ends();

  [[nodiscard]] const Config& config() const { return settings_->config; }

  SharedState shared_;
  const std::string file_;
  control::HostNames& names_;
  Live live_;
  const WallTime started_;
  SettingsPtr settings_;
  SettingsPtr settings_before_;  // freed by this thread, so that no worker stalls
  control::Reloads reloads_;
  asio::io_context context_{1};
  control::NameLookups lookups_;
  std::unique_ptr<net::Listener> listener_;
  asio::signal_set signals_;
  asio::steady_timer status_timer_;
  asio::steady_timer drain_timer_;
  asio::steady_timer memory_timer_;
  asio::steady_timer retire_timer_;
  asio::steady_timer ends_timer_;
  SpareMemory spare_memory_;
  Dispatcher dispatcher_;
  control::GateAccess access_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::size_t next_worker_ = 0;
  control::SnapshotReader snapshot_reader_;
  bool status_failed_ = false;
  control::StatusLock status_lock_;
  control::Administration administration_;
  control::ControlSide control_;
};

}  // namespace vpfs::proxy
