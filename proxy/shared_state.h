#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "net/async.h"
#include "protocols/protocol.h"
#include "proxy/client_pace.h"
#include "proxy/dispatcher.h"
#include "proxy/open_file_users.h"
#include "proxy/recent_map.h"
#include "proxy/upstream_health.h"

namespace vpfs::proxy {

// Events of the whole proxy since its start, for status and tests.
struct Counters {
  std::atomic<std::uint64_t> connections_open = 0;
  std::atomic<std::uint64_t> connections_total = 0;
  std::atomic<std::uint64_t> connections_refused = 0;  // over the limit
  std::atomic<std::uint64_t> upstream_failures = 0;    // the data server could not be reached
  std::atomic<std::uint64_t> framing_errors = 0;
  std::atomic<std::uint64_t> requests_refused = 0;  // held up to the deadline
  std::atomic<std::uint64_t> excess_requests = 0;   // sent back: max_held_per_client
  std::atomic<std::uint64_t> slots_given_up = 0;
  std::atomic<std::uint64_t> write_back_by_file = 0;  // writes of uid 0 known by their file's user
  std::atomic<std::uint64_t> write_back_unknown = 0;  // those of uid 0 that stayed so
  std::atomic<std::uint64_t> late_bytes = 0;  // of I/O that had given its slot up before its end
  // Requests that count as `default` because of what they say: a name of a virtual PFS that is no
  // good one; and a job id that is not registered, which rules then do not see.
  std::atomic<std::uint64_t> names_refused = 0;
  std::atomic<std::uint64_t> jobs_not_registered = 0;
  std::atomic<std::uint64_t> read_by_file = 0;  // the same of reads
  std::atomic<std::uint64_t> read_unknown = 0;
  std::atomic<std::uint64_t> connections_unknown_node = 0;  // their I/O is an unknown node's
  std::atomic<std::uint64_t> client_stalls = 0;
  std::atomic<std::uint64_t> server_stalls = 0;
  std::atomic<std::uint64_t> bytes_to_server = 0;
  std::atomic<std::uint64_t> bytes_to_client = 0;
  std::atomic<std::uint64_t> ios_alive = 0;  // PendingIos in use by sessions
};

// What all workers and sessions share. Outlives them all.
struct SharedState {
  SharedState(const Clock& time, std::optional<net::Endpoint> server)
      : clock(time), upstream(std::move(server)) {}

  // Takes the time-out that the data server told a client into account. The first one also tells
  // which file systems there are: one that is for others is not ours.
  void learn_client_timeout(const ClientTimeout& told);
  // What the configuration says of it: nothing stands for automatic, and no time-out that is
  // learned makes a hold shorter than `least`.
  void set_configured_hold(std::optional<Duration> configured, Duration least);

  const Clock& clock;
  // Nothing: each connection goes where its client meant it to go, on this host.
  const std::optional<net::Endpoint> upstream;
  Counters counters;
  OpenFileUsers open_files;
  RecentMap<std::uint64_t> file_sizes;  // by IoDescription::file, as the data server told last
  StallBudgets stalls;
  UpstreamHealth upstream_health;
  std::atomic<std::uint64_t> misdirected = 0;  // clients that nobody redirected to the proxy
  std::atomic<bool> draining = false;
  // How long a request may be held, and how long a connection may keep a request from a data server
  // that takes nothing: together they stay below the client's time-out.
  std::atomic<Duration> hold = Duration(std::chrono::seconds(240));
  std::atomic<Duration> server_stall = Duration(std::chrono::seconds(30));

 private:
  void set_hold();

  std::mutex mutex_;  // guards what follows
  std::optional<Duration> configured_hold_;
  Duration least_hold_ = Duration::zero();
  std::vector<std::int64_t> file_systems_;
  std::optional<Duration> client_timeout_;
};

}  // namespace vpfs::proxy
