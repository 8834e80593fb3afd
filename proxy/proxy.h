#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <asio/steady_timer.hpp>

#include "control/admin/host_names.h"
#include "control/handover/taker.h"
#include "control/host/host.h"
#include "control/host/processors.h"
#include "net/listener.h"
#include "proxy/dispatcher.h"
#include "proxy/handover/giving_proxy.h"
#include "proxy/pump/spare_memory.h"
#include "proxy/shared_state.h"
#include "proxy/worker.h"
#include "proxy/worker_settings.h"

namespace vpfs::proxy {

// The whole proxy. The calling thread runs the listener, signals, status and what administrators
// ask; workers run the connections.
class Proxy final : private control::Program {
 public:
  // The error names the setting that cannot be had (address, policy, journal). `config` is the
  // content of `file`; SIGHUP reads the file again. Live rules of the journal are in force, and
  // what was due is ended, before any client can connect. `names` and `clock` outlive the proxy.
  [[nodiscard]] static Result<std::unique_ptr<Proxy>> make(const Config& config, std::string file,
                                                           control::HostNames& names,
                                                           const Clock& clock) {
    return make(config, std::move(file), names, clock, nullptr, nullptr);
  }
  // The same in the place of another process, if any, which outlives the proxy. After that come
  // take_over() and run(). Otherwise with listeners that are open already, if any.
  [[nodiscard]] static Result<std::unique_ptr<Proxy>> make(const Config& config, std::string file,
                                                           control::HostNames& names,
                                                           const Clock& clock,
                                                           control::Predecessor* predecessor,
                                                           net::Inherited* open);
  // Takes on all that the other process had. An error, which that process is told, leaves it as it
  // was; then this one must end at once, without closing anything in its own way.
  [[nodiscard]] Result<void> take_over();
  ~Proxy() override;
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  // Serves until SIGTERM or SIGINT has drained it. See control::Host::run() for signals.
  void run();
  [[nodiscard]] net::Endpoint local_endpoint() const;
  // All listeners, by the names that make() looks for.
  [[nodiscard]] std::vector<std::pair<std::string, int>> listeners() const;

 private:
  Proxy(control::Live live, std::string file, control::HostNames& names, const Clock& clock,
        const control::Processors& processors, std::optional<net::Endpoint> upstream,
        const control::Handed* handed, net::Inherited* inherited);

  // control::Program
  [[nodiscard]] std::shared_ptr<const control::HostConfig> read(ConfigErrors& errors,
                                                                const control::HostConfig& running,
                                                                const stage::Names& names) override;
  [[nodiscard]] std::vector<std::string> use(const control::HostConfig& file,
                                             const stage::Config& stage) override;
  [[nodiscard]] std::string status(const control::HostStatus& host) override;
  void describe(control::StatsReply& reply) override;
  void list_clients(std::function<void(std::vector<control::Client>)> done) override;
  void drain(std::string_view why) override;
  void upgrade(const std::string& binary, UpgradeDone done) override;
  [[nodiscard]] bool has_turned() override;
  [[nodiscard]] bool serves_by_itself() const override { return true; }
  [[nodiscard]] bool draining() const override { return shared_.draining.load(); }

  // Takes on the connections that outlived the process before, and closes its others.
  void take_kept(net::Inherited& open);
  [[nodiscard]] Result<void> take_on(control::Predecessor::Everything all);
  void take_late(control::Predecessor::Parcel connection);
  void accepted(net::Socket socket);
  void warn_of_silent_upstream();
  void check_drained(TimePoint deadline);
  void arm_memory();
  void arm_keeper();

  [[nodiscard]] const Config& config() const { return dispatcher_.settings()->config; }

  const std::string file_;
  SharedState shared_;
  Dispatcher dispatcher_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::size_t next_worker_ = 0;
  std::vector<std::uint64_t> seen_turns_;  // of each worker
  control::Host host_;
  std::unique_ptr<net::Listener> listener_;
  asio::steady_timer drain_timer_;
  asio::steady_timer memory_timer_;
  asio::steady_timer keeper_timer_;
  SpareMemory spare_memory_;
  std::unique_ptr<GivingProxy> giving_;
  control::Predecessor* predecessor_ = nullptr;
  std::atomic<std::size_t> next_late_ = 0;  // worker
};

}  // namespace vpfs::proxy
