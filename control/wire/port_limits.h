#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"

namespace vpfs::control {

// Bounds on what peers can make a port hold or do.
struct PortLimits {
  std::size_t connections = 1024;
  std::size_t connections_of_a_peer = 128;  // of one uid or address
  // All users together who see only own jobs have so many. The other places are for administrators
  // and coordinators.
  std::size_t connections_of_others = 512;

  // The longest message before Hello and of peers that may not change anything, and of those that
  // may. A message in memory may take 32 times what it takes in a frame.
  std::size_t frame = std::size_t{64} * 1024;
  std::size_t frame_of_writers = std::size_t{4} * 1024 * 1024;

  std::size_t requests_in_flight = 8;  // of one connection; then nothing is read from it
  // Requests of one uid or address that may not change anything, including those of connections
  // that it has closed.
  std::size_t unanswered_of_a_reader = 64;
  std::size_t watches = 4;  // of one connection
  Duration least_watch_period = std::chrono::milliseconds(50);
  // For peers that see only own jobs. Any user may be one: they must not keep the owner busy.
  Duration least_watch_period_of_others = std::chrono::seconds(1);
  std::uint32_t requests_of_others_at_once = 50;
  std::uint32_t requests_of_others_each_second = 20;  // of one uid

  // Bytes of answers that a peer has not taken: above the first, nothing is read from it; above the
  // second, or without progress for `stall`, it is closed.
  std::size_t answers_before_pause = std::size_t{256} * 1024;
  std::size_t answers = std::size_t{16} * 1024 * 1024;
  Duration stall = std::chrono::seconds(30);
  std::size_t answers_of_all = std::size_t{256} * 1024 * 1024;

  Duration hello = std::chrono::seconds(10);    // from the connection to Hello
  Duration idle = std::chrono::minutes(10);     // without a message, in either direction
  Duration farewell = std::chrono::seconds(2);  // for a refused peer to read why

  // For the coordinator that this side connects to: the time without a message from it, and the
  // first and the longest pause before it is dialled again. The pause doubles and varies by half.
  Duration coordinator_silence = std::chrono::seconds(10);
  // How long connecting to its only address may take, and to each of several. Each of several must
  // have said Hello in the latter time, too. That time doubles up to the former while one accepts
  // connections and is silent: it may be busy with the Hellos of many.
  Duration dial = std::chrono::seconds(5);
  Duration dial_each = std::chrono::seconds(1);
  Duration first_redial = std::chrono::milliseconds(100);
  Duration slowest_redial = std::chrono::seconds(2);

  // What one connection may do before others have their turn.
  std::size_t frames_in_a_turn = 16;
  std::size_t bytes_in_a_turn = std::size_t{64} * 1024;
};

// What a port has seen since its start. Written by its thread, read by any.
struct PortCounters {
  using Count = std::atomic<std::uint64_t>;
  Count connections = 0;  // now
  Count accepted = 0;
  Count refused = 0;        // beyond a bound, or without any right
  Count evicted = 0;        // silent ones, closed for new ones
  Count silent = 0;         // closed for want of a Hello
  Count idle = 0;           // closed for want of messages
  Count slow = 0;           // closed because they did not take their answers
  Count broken = 0;         // closed for broken framing
  Count handshakes = 0;     // of TLS, failed
  Count versions = 0;       // no common version
  Count unknown = 0;        // messages that this version does not know
  Count not_permitted = 0;  // refused requests
  Count too_many = 0;       // refused requests of peers that see only own jobs
  Count requests = 0;
  Count cycles = 0;
  Count dropped_answers = 0;  // whose connection was gone
};

}  // namespace vpfs::control
