#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "protocols/protocol.h"
#include "schedulers/request.h"

namespace vpfs::proxy {

class Session;

// A client node whose connections carry one request at a time, as ClientLimits counts them.
enum class ClientId : std::uint32_t {};
inline constexpr ClientId kNoClient{0xffffffff};

// One I/O from its arrival at the proxy to its end. A worker's pool owns it, the session uses it.
struct PendingIo : IoRequest {
  enum class State : std::uint8_t {
    parked,       // held by the session alone: its client does not take data
    queued,       // in the scheduler
    released,     // the scheduler let it go; it waits for its worker to come round
    outstanding,  // at the data server
    given_up,     // at the data server, but its slot has been given back already
    excess,       // its client has too many: it waits for its worker to come round and refuse it
  };

  Session* session = nullptr;
  std::size_t worker = 0;  // whose thread the session belongs to
  IoKey key = 0;
  State state = State::parked;  // guarded by the dispatcher's lock
  // Of the session's thread: not forwarded yet (then in its worker's list of held requests), and
  // given to the dispatcher.
  bool held = false;
  bool submitted = false;
  // Of the session's thread: its slot has been given back before its end.
  bool gave_slot_up = false;
  bool behind_message = false;      // it was let go while a message of its client was half through
  bool on_probation = false;        // it is let go without a slot: its client has stalled lately
  std::uint64_t moved_in_time = 0;  // before that
  bool size_is_estimated = false;   // from what reads like it have given
  Bytes asked = {};                 // what it asks to move; `size` is what is expected of it
  std::vector<std::byte> message;   // the request as it came
  std::uint32_t generation = 0;     // of the scheduler that let it go
  std::uint32_t device = 0;         // of the data server's, as IoDescription has it
  std::size_t lane = 0;             // the dispatcher's scheduler that has it
  ClientId client = kNoClient;
  std::uint64_t fingerprint = 0;  // as IoDescription has it
  // Of a repetition, what ClientLimits knows of those before it.
  TimePoint first_seen = {};  // when it, or the one that it repeats, came
  std::uint32_t times_refused = 0;
  bool came_again_at_once = false;
  std::size_t held_at = 0;  // while queued: where ClientLimits has it
  // While outstanding, as last looked at.
  std::uint64_t moved = 0;
  TimePoint last_progress = {};

  std::uint64_t arrived_in = 0;  // Worker::event()
  std::size_t pool_index = 0;    // the worker's own
  // The worker's list of held requests, in order of arrival.
  PendingIo* next_held = nullptr;
  PendingIo* previous_held = nullptr;
};

}  // namespace vpfs::proxy
