#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/clock.h"
#include "net/async.h"
#include "proxy/classifier.h"
#include "proxy/config.h"
#include "proxy/dispatcher.h"

namespace vpfs::proxy {

// Events of the whole proxy since its start, for status and tests.
struct Counters {
  std::atomic<std::uint64_t> connections_open = 0;
  std::atomic<std::uint64_t> connections_total = 0;
  std::atomic<std::uint64_t> connections_refused = 0;  // over the limit
  std::atomic<std::uint64_t> upstream_failures = 0;    // the data server could not be reached
  std::atomic<std::uint64_t> framing_errors = 0;
  std::atomic<std::uint64_t> requests_refused = 0;  // held up to the deadline
  std::atomic<std::uint64_t> slots_given_up = 0;
  std::atomic<std::uint64_t> client_stalls = 0;
  std::atomic<std::uint64_t> server_stalls = 0;
  std::atomic<std::uint64_t> bytes_to_server = 0;
  std::atomic<std::uint64_t> bytes_to_client = 0;
  std::atomic<std::uint64_t> ios_alive = 0;  // PendingIos in use by sessions
};

// What all workers and sessions share. Outlives them all.
struct SharedState {
  SharedState(const Config& configuration, const Clock& time, net::Endpoint server)
      : config(configuration), clock(time), upstream(std::move(server)), classifier(config.rules) {
    if (config.timeouts.hold) hold.store(*config.timeouts.hold);
  }

  // Takes the time-out that a GETCONFIG showed into account, unless the configuration fixes `hold`.
  void learn_client_timeout(Duration timeout);

  const Config config;
  const Clock& clock;
  const net::Endpoint upstream;
  const Classifier classifier;
  Counters counters;
  std::atomic<bool> draining = false;
  // How long a request may be held, and how long a connection may keep a request from a data server
  // that takes nothing: together they stay below the client's time-out.
  std::atomic<Duration> hold = Duration(std::chrono::seconds(240));
  std::atomic<Duration> server_stall = Duration(std::chrono::seconds(30));
};

}  // namespace vpfs::proxy
