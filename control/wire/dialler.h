#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>

#include <asio/steady_timer.hpp>

#include "base/clock.h"
#include "control/wire/client_connect.h"
#include "control/wire/dialled_coordinator.h"
#include "control/wire/host_lookup.h"
#include "control/wire/port_address.h"
#include "control/wire/port_connection.h"
#include "net/tls.h"

namespace vpfs::control {

class PortState;

// Keeps a connection from a port to its coordinator: connects, says Hello, has it served as a peer
// that may change everything, and connects again when it has ended, at first soon, then slowly.
//
// A problem is logged when it is another one than before. Belongs to the port's thread, except
// status().
class Dialler {
 public:
  struct Target {
    PortAddress address;
    std::shared_ptr<net::TlsContext> tls;  // null for a UNIX socket
  };

  explicit Dialler(PortState& port);
  Dialler(const Dialler&) = delete;
  Dialler& operator=(const Dialler&) = delete;

  // From now on this one, or none. With the same address a connection stays as it is.
  void use(const std::optional<Target>& target);
  // Closes the connection once what is there was sent. No other is made.
  void stop();
  void check(TimePoint now);
  // What is served now; null: nothing.
  [[nodiscard]] const std::shared_ptr<PortConnection>& connection() const { return connection_; }

  // Any thread. Nothing without a coordinator.
  [[nodiscard]] std::optional<DialledCoordinator> status() const;

 private:
  void start();
  [[nodiscard]] net::Task<> run();
  // Connects and serves; why it ended.
  [[nodiscard]] net::Task<std::string> attempt(Target target);
  [[nodiscard]] net::Task<std::string> serve(Target target);
  [[nodiscard]] net::Task<Connected> connect(Target target);
  [[nodiscard]] net::Task<> pause();
  void wake_up();
  void note_dial();
  void note_connected();
  void note_problem(const std::string& problem);
  void log_problem(const std::string& problem);

  PortState& port_;
  std::optional<Target> target_;
  std::uint64_t round_ = 0;  // counts targets
  bool running_ = false;
  bool stopped_ = false;
  asio::steady_timer wake_;  // what run() waits for, when it is not serving
  std::unique_ptr<HostLookup> lookup_;
  std::shared_ptr<PortConnection> connection_;  // shared with its task
  std::optional<TimePoint> connected_at_;       // the present connection has said Hello
  Duration pause_;
  std::minstd_rand random_;
  std::string logged_;  // the last problem that has a line in the log
  std::optional<TimePoint> logged_at_;
  bool tells_success_ = true;  // the next connection has a line

  mutable std::mutex mutex_;  // guards what follows
  std::optional<DialledCoordinator> status_;
};

}  // namespace vpfs::control
