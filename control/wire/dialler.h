#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <asio/steady_timer.hpp>

#include "base/clock.h"
#include "control/wire/client_connect.h"
#include "control/wire/dialled_coordinator.h"
#include "control/wire/host_lookup.h"
#include "control/wire/leader/address_round.h"
#include "control/wire/port_address.h"
#include "control/wire/port_connection.h"
#include "net/tls.h"

namespace vpfs::control {

class PortState;

// Keeps a connection from a port to its coordinator: connects, says Hello, has it served as a peer
// that may change everything, and connects again when it has ended.
//
// One of several addresses leads. After a failure the next one is tried at once. When all have
// failed it pauses, at first for a short time, then longer.
//
// A problem is logged when it is another one than before. Belongs to the port's thread, except
// status().
class Dialler {
 public:
  struct Target {
    std::vector<PortAddress> addresses;    // at least one
    std::shared_ptr<net::TlsContext> tls;  // null if all are UNIX sockets
  };

  explicit Dialler(PortState& port);
  Dialler(const Dialler&) = delete;
  Dialler& operator=(const Dialler&) = delete;

  // From now on these, or none. A connection to one of them stays as it is.
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
  [[nodiscard]] bool keeps_connection(const std::optional<Target>& target) const;
  [[nodiscard]] net::Task<> run();
  // Connects and serves; why it ended.
  [[nodiscard]] net::Task<std::string> attempt(PortAddress address);
  [[nodiscard]] net::Task<std::string> serve(PortAddress address);
  [[nodiscard]] net::Task<Connected> connect(PortAddress address,
                                             std::shared_ptr<net::TlsContext> tls);
  [[nodiscard]] Duration patience() const;
  void expect_hello();
  [[nodiscard]] net::Task<> pause();
  void wake_up();
  void note_dial(const PortAddress& address);
  void note_connected();
  // Goes on to the next address. Whether a pause is due.
  [[nodiscard]] bool note_end(const std::string& problem);
  void log_problem(const std::string& problem);

  PortState& port_;
  std::optional<Target> target_;
  AddressRound round_;         // of its addresses
  std::uint64_t changes_ = 0;  // of the target, that ended a connection or an attempt
  bool running_ = false;
  bool stopped_ = false;
  asio::steady_timer wake_;  // what run() waits for, when it is not serving
  asio::steady_timer hello_timer_;
  Duration hello_within_;
  HostLookups lookups_;
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
