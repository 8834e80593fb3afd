#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "protocols/protocol.h"
#include "stage/held.h"

namespace vpfs::proxy {

class Session;

// One I/O from its arrival at the proxy to its end. A worker's pool owns it, the session uses it.
// What is stage::Held's is guarded by the dispatcher's lock once it was given to the dispatcher.
struct PendingIo : stage::Held {
  Session* session = nullptr;
  std::size_t worker = 0;  // whose thread the session belongs to
  IoKey key = 0;
  // Of the session's thread: not forwarded yet (then in its worker's list of held requests), and
  // given to the dispatcher.
  bool held = false;
  bool submitted = false;
  // Of the session's thread: its slot has been given back before its end.
  bool gave_slot_up = false;
  bool behind_message = false;      // it was let go while a message of its client was half through
  bool on_probation = false;        // it is let go without a slot: its client has stalled lately
  std::uint64_t moved_in_time = 0;  // before that
  std::vector<std::byte> message;   // the request as it came
  // While outstanding, as last looked at.
  std::uint64_t moved = 0;
  TimePoint last_progress = {};

  std::uint64_t number = 0;      // in order of arrival; requests of one event arrive at one time
  std::uint64_t arrived_in = 0;  // Worker::event()
  std::size_t pool_index = 0;    // the worker's own
  // The worker's list of held requests, in order of arrival.
  PendingIo* next_held = nullptr;
  PendingIo* previous_held = nullptr;
};

}  // namespace vpfs::proxy
