#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "schedulers/request.h"

namespace vpfs::stage {

// Names a virtual PFS as long as it is there. When it is retired its number is used again, with
// another generation.
struct VirtualPfsId {
  AppId app = {};
  std::uint32_t generation = 0;

  auto operator<=>(const VirtualPfsId&) const = default;
};

// A client node whose connections carry one request at a time, as ClientLimits counts them.
enum class ClientId : std::uint32_t {};
inline constexpr ClientId kNoClient{0xffffffff};

// One I/O from its arrival at a stage to its end. Its owner keeps it in place meanwhile.
struct Held : IoRequest {
  enum class State : std::uint8_t {
    parked,       // held back by its owner: its client does not take data
    queued,       // in the scheduler
    released,     // the scheduler let it go; its owner has not taken it over yet
    outstanding,  // at the data server
    given_up,     // at the data server, but its slot has been given back already
    excess,       // its client has too many: its owner is to refuse it
  };

  State state = State::parked;
  bool size_is_estimated = false;  // from what reads like it have given
  Bytes asked = {};                // what it asks to move; `size` is what is expected of it
  std::uint32_t generation = 0;    // of its virtual PFS's number, as Stage::find() gave it
  bool is_counted = false;         // the stage's: it is among its virtual PFS's requests
  std::uint32_t scheduler = 0;     // generation of the one that let it go
  std::uint32_t device = 0;        // of the data server's: requests of each have their own lane
  std::size_t lane = 0;            // the scheduler that has it
  ClientId client = kNoClient;
  // The same for a request and its repetition, and hardly ever for two others; zero: not known.
  std::uint64_t fingerprint = 0;
  // Of a repetition, what ClientLimits knows of those before it.
  TimePoint first_seen = {};  // when it, or the one that it repeats, came
  std::uint32_t times_refused = 0;
  bool came_again_at_once = false;
  std::size_t held_at = 0;  // while queued: where ClientLimits has it

  [[nodiscard]] VirtualPfsId virtual_pfs() const { return {.app = app, .generation = generation}; }
};

}  // namespace vpfs::stage
