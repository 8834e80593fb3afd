#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "protocols/protocol.h"
#include "stage/held.h"
#include "stage/rules/address.h"

namespace vpfs::proxy {

class Session;

// One I/O from its arrival at the proxy to its end. The worker's pool owns it and the session uses
// it. Once the dispatcher has it, the gate's lock guards its stage::Held part.
struct PendingIo : stage::Held {
  Session* session = nullptr;
  std::size_t worker = 0;  // that owns the session
  IoKey key = 0;
  std::uint64_t handle = 0;  // IoDescription::handle
  stage::Address client_address = {};
  // The session's thread alone uses what follows.
  bool held = false;            // not forwarded yet; in its worker's list of held requests
  bool submitted = false;       // the dispatcher has it
  bool gave_slot_up = false;    // before its end
  bool behind_message = false;  // it was released in the middle of a message of its client
  bool on_probation = false;    // it goes without a slot, because its client stalled lately
  bool parked = false;          // the dispatcher knows that the session keeps it back
  bool waits_for_turn = false;  // in the ClientTurns of its slow client
  bool has_turn = false;        // likewise
  bool client_is_slow = false;  // so it gave its slot up
  bool slows_handle = false;    // SlowHandles counts it as a slow transfer
  bool stuck = false;           // likewise, as a request behind one
  stage::SlowClient parked_for = stage::SlowClient::none;  // as the dispatcher knows it
  std::uint64_t moved_in_time = 0;                         // bytes before it gave its slot up
  std::vector<std::byte> message;                          // the request as received
  // The progress at the last look.
  std::uint64_t moved = 0;
  std::uint64_t told_moved = 0;  // what the dispatcher counts
  TimePoint last_progress = {};
  // For how long it waited for its client while it was without a slot, and what had moved before.
  Duration waited = {};
  std::uint64_t moved_before_wait = 0;

  std::uint64_t number = 0;      // order of arrival: requests of one event have the same time
  std::uint64_t arrived_in = 0;  // Worker::event()
  std::size_t pool_index = 0;    // used by the worker
  // The worker's list of held requests, in order of arrival.
  PendingIo* next_held = nullptr;
  PendingIo* previous_held = nullptr;
};

}  // namespace vpfs::proxy
