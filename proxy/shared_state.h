#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/saved/saved_state.h"
#include "net/async.h"
#include "protocols/protocol.h"
#include "proxy/client_pace.h"
#include "proxy/dispatcher.h"
#include "proxy/handover/connection_keeper.h"
#include "proxy/open_file_users.h"
#include "proxy/recent_map.h"
#include "proxy/slow_handles.h"
#include "proxy/upstream_health.h"

namespace vpfs::proxy {

// Events of the whole proxy since its start, for status and tests.
struct Counters {
  std::atomic<std::uint64_t> connections_open = 0;
  std::atomic<std::uint64_t> connections_total = 0;
  std::atomic<std::uint64_t> connections_refused = 0;  // beyond the limit
  std::atomic<std::uint64_t> upstream_failures = 0;    // the data server could not be reached
  std::atomic<std::uint64_t> framing_errors = 0;
  std::atomic<std::uint64_t> requests_refused = 0;  // held up to the deadline
  std::atomic<std::uint64_t> excess_requests = 0;   // sent back: max_held_per_client
  std::atomic<std::uint64_t> slots_given_up = 0;
  std::atomic<std::uint64_t> write_back_by_file = 0;  // writes of uid 0 with a known user
  std::atomic<std::uint64_t> write_back_unknown = 0;  // writes of uid 0 without one
  std::atomic<std::uint64_t> late_bytes = 0;  // moved by I/Os after they gave up their slots
  // Requests that count as `default`: they name a virtual PFS with an invalid name, or a job id
  // that is not registered and so hidden from the rules.
  std::atomic<std::uint64_t> names_refused = 0;
  std::atomic<std::uint64_t> jobs_not_registered = 0;
  std::atomic<std::uint64_t> read_by_file = 0;  // reads of uid 0, likewise
  std::atomic<std::uint64_t> read_unknown = 0;
  std::atomic<std::uint64_t> connections_unknown_node =
      0;  // of nodes that have not introduced themselves
  std::atomic<std::uint64_t> client_stalls = 0;
  std::atomic<std::uint64_t> server_stalls = 0;
  std::atomic<std::uint64_t> bytes_to_server = 0;
  std::atomic<std::uint64_t> bytes_to_client = 0;
  std::atomic<std::uint64_t> ios_alive = 0;  // PendingIos in use by sessions
  // How often a worker polled before it slept, and what came of it. Not for a successor.
  std::atomic<std::uint64_t> polls_found = 0;
  std::atomic<std::uint64_t> polls_in_vain = 0;
};

// The state that all workers and sessions share. It outlives them.
struct SharedState {
  SharedState(const Clock& time, std::optional<net::Endpoint> server)
      : clock(time), upstream(std::move(server)) {}

  // Takes account of the time-out that the data server told a client. The first one also names the
  // file systems that are ours; later ones for other file systems are ignored.
  void learn_client_timeout(const ClientTimeout& told);
  // For a successor. What was learnt may be a little older than the counters.
  [[nodiscard]] SavedState save_learnt();
  void restore_learnt(const SavedState& from);
  [[nodiscard]] SavedState save_counters();
  // What was counted since the last call of either; nothing: nothing was.
  [[nodiscard]] std::optional<SavedState> save_counter_changes();
  void restore_counters(const SavedState& from);

  // Sets the configured hold; nothing means automatic. A learnt time-out never makes the hold
  // shorter than `least`.
  void set_configured_hold(std::optional<Duration> configured, Duration least);

  const Clock& clock;
  // Nothing: each connection goes to its client's original destination, on this host.
  const std::optional<net::Endpoint> upstream;
  // How long workers poll whose configuration does not say it. Set before there are any.
  Duration automatic_busy_poll = {};
  Counters counters;
  std::atomic<std::uint64_t> connections_numbered = 0;
  OpenFileUsers open_files;
  RecentMap<std::uint64_t> file_sizes;  // by IoDescription::file; the last known size
  StallBudgets stalls;
  SlowHandles slow_handles;
  StallBudgets queue_stalls;  // of applications whose requests wait in the queues of slow handles
  UpstreamHealth upstream_health;
  std::atomic<std::uint64_t> misdirected = 0;  // clients that were not redirected to the proxy
  std::atomic<bool> draining = false;
  // Null: connections end with a crash.
  std::unique_ptr<ConnectionKeeper> keeper;
  // Another process has taken over: sessions go there when they come to a boundary.
  std::atomic<bool> leaving = false;
  // The process before still has connections, which come here.
  std::atomic<bool> has_predecessor = false;
  // How long a request may be held, and how long a connection may keep a released request while the
  // data server takes nothing. Their sum stays below the client's time-out.
  std::atomic<Duration> hold = Duration(std::chrono::seconds(240));
  std::atomic<Duration> server_stall = Duration(std::chrono::seconds(30));

 private:
  void set_hold();

  std::mutex mutex_;  // guards what follows
  std::optional<Duration> configured_hold_;
  Duration least_hold_ = Duration::zero();
  std::vector<std::int64_t> file_systems_;
  std::optional<Duration> client_timeout_;

  std::vector<std::uint64_t> told_counters_;  // of the thread of the hand-over
};

}  // namespace vpfs::proxy
