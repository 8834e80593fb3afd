#pragma once

#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "schedulers/hold_times.h"
#include "schedulers/request.h"
#include "stage/place.h"
#include "stage/recorder/recorded.h"

namespace vpfs::stage {

// A client node whose connections carry one request at a time, as ClientLimits counts them.
enum class ClientId : std::uint32_t {};
inline constexpr ClientId kNoClient{0xffffffff};

// Whose slow client a parked request waits for.
enum class SlowClient : std::uint8_t { none, its_own, of_its_handle };

// One I/O from its arrival at a stage to its end. Its owner keeps it in place meanwhile.
struct Held : IoRequest {
  enum class State : std::uint8_t {
    parked,       // held back by its owner because the client takes no data
    queued,       // in the scheduler
    released,     // the scheduler let it go; its owner has not taken it over yet
    outstanding,  // at the data server
    given_up,     // at the data server, but its slot has been given back already
    excess,       // its client has too many; the owner must refuse it
  };

  State state = State::parked;
  bool size_is_estimated = false;  // from the yield of earlier reads
  bool exempt = false;             // of its place
  // It takes no slot and no tokens: it is exempt, or came or waited while bypass was on. Set by the
  // stage when the request arrives, and not changed after its release.
  bool unscheduled = false;
  bool let_pass = false;  // unscheduled, but its virtual PFS owes what it costs
  Bytes asked = {};       // bytes that it asks for; `size` is the expected number
  // The stage's own: what it was charged beyond its cost and size, because it moved more.
  Cost more_cost = 0;
  Bytes more_size = {};
  std::uint32_t generation = 0;  // of its virtual PFS's number
  RuleRef rule;
  ShadowRef shadow;
  bool is_counted = false;      // by the stage, among its virtual PFS's requests
  std::uint32_t scheduler = 0;  // generation of the scheduler that let it go
  std::uint32_t noted_in = 0;   // the number of the recording that `noted` is for; 0: none
  std::uint32_t device = 0;     // of the data server; each has its own lane
  std::size_t lane = 0;         // the scheduler that has it
  ClientId client = kNoClient;
  // Equal for a request and its retry; collisions are rare. Zero: not known.
  std::uint64_t fingerprint = 0;
  // The history of a retry, for ClientLimits.
  TimePoint first_seen = {};  // the arrival of its first try
  std::uint32_t times_refused = 0;
  bool came_again_at_once = false;
  std::size_t held_at = 0;                         // while queued: its index in ClientLimits
  SlowClient waits_for_client = SlowClient::none;  // while parked
  // For a recording; set by the owner while there is one.
  struct Source {
    std::uint32_t recording = 0;  // of that number; 0: of none
    std::uint32_t origin = 0;     // Recorder::number_of() its origin
    std::uint32_t uid = Recorded::kNoUser;
    std::uint64_t file = 0;
    std::uint64_t offset = Recorded::kNoOffset;
  };
  Source source;
  // The stage's own: when it began to wait, how long its queues had been held before, and then what
  // held it.
  struct Noted {
    std::uint32_t schedulers = 0;
    HoldTimes held = {};
    RecordedReason reason = RecordedReason::nothing;
  };
  Noted noted;

  [[nodiscard]] VirtualPfsId virtual_pfs() const { return {.app = app, .generation = generation}; }
  void set_place(const Place& place) {
    app = place.id.app;
    generation = place.id.generation;
    rule = place.rule;
    shadow = place.shadow;
    exempt = place.exempt;
  }
};

}  // namespace vpfs::stage
