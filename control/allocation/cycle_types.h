#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "control/allocation/pair.h"

namespace vpfs::allocation {

// What a CycleState is given by its owner.
struct CycleSettings {
  Amounts capacity;  // of all stages, each second; zero: not divided, and caps are not added up
  // The period of the first cycle; later ones are measured. With set_caps_end(): the longest time
  // between two cycles.
  Duration period = std::chrono::milliseconds(50);
  Duration deadline = std::chrono::milliseconds(25);  // a stage that answers later is late
  Duration lease = std::chrono::seconds(1);           // of a cycle, from when a stage gets it
  // For how long after the end of a connection a stage may still read what was sent on it.
  Duration transit = std::chrono::milliseconds(500);
  std::uint32_t silent_cycles = 10;  // a stage that misses as many is silent; at least one
  // From when on no cap of a coordinator before this one is in force: its death, a lease and the
  // transit later. See CycleState.
  TimePoint clear_from = TimePoint::min();
  std::uint64_t most_each_second = std::uint64_t{1} << 40;  // more of anything is a lie of a flow
  std::size_t most_flows = 16384;  // of a stage; numbers of flows are below
};

// A stage that is connected. Another stage may get it after leave().
struct StageId {
  std::uint32_t index = 0;

  bool operator==(const StageId&) const = default;
};

// The longest name of a job that counts.
constexpr std::size_t kLongestName = 1024;

// A job on a stage as the stage announces it. Its number is of the connection.
struct FlowName {
  std::uint32_t flow = 0;
  std::uint32_t generation = 0;
  std::string_view job;
  std::uint32_t weight = 1;
  std::uint32_t stages = 1;  // that it stands for; more than one below an aggregator
};

// What a stage can do.
struct Abilities {
  bool caps = true;           // else its grants go without them
  bool metadata_caps = true;  // of metadata operations; it needs `caps` too
};

// Counters of a flow since the stage has started.
struct FlowCounters {
  std::uint32_t flow = 0;
  bool ended = false;  // the number is free, and nothing else counts
  std::uint64_t arrived_bytes = 0;
  std::uint64_t arrived_requests = 0;
  std::uint64_t metadata_operations = 0;
  Cost done_cost = 0;
  // As QueueTimes has them.
  Microseconds limited = {};
  Microseconds present = {};
  Microseconds crowded = {};
  Microseconds without_queue = {};
};

// What a job did on all stages since it is live. The sums of what stages did add to them; so they
// only grow, whichever stages come, go, restart or lie.
struct JobTotals {
  Amounts arrived;
  Cost done = 0;
  // Sums up, for each cycle, the time of the stage that was limited longest. So a coordinator above
  // sees a job as limited if it is so on one stage, as it would without an aggregator in between.
  Microseconds limited = {};

  bool operator==(const JobTotals&) const = default;
};

// A job that a stage has announced, or of which a cap may be in force. The number is small and
// stays while the job is live; another job has it later with another generation, and so may the
// same one. So it serves an aggregator as the number of a flow.
struct LiveJob {
  std::uint32_t number = 0;
  std::uint32_t generation = 0;
  std::string_view name;
  std::uint32_t weight = 1;  // configured, else announced
  std::uint32_t stages = 0;  // that it is on, as of the last cycle; an aggregator counts as its own
  JobTotals totals;
};

// The head of a report.
struct StageAnswer {
  std::uint64_t term = 0;
  std::uint64_t sequence = 0;
  bool applied = false;
  std::string_view problem = {};  // why it was not applied
  // The stage is an aggregator, and caps of earlier cycles may still be in force at one of its
  // stages, beside those of this one.
  bool pending = false;
};

enum class AnswerResult : std::uint8_t {
  taken,
  other_term,  // it answers a cycle of another coordinator
  unexpected,  // it answers no cycle that is open: it was never sent, or was answered before
};

// What a flow is granted.
struct FlowGrant {
  std::uint32_t flow = 0;
  Grant grant;
};

// A message for a stage; the term is that of the CycleState.
struct Outgoing {
  StageId stage;
  std::uint64_t sequence = 0;
  Duration lease = {};
  bool complete = false;     // without it nothing is allocated: the stage is asked for its report
  bool want_report = false;  // with counters; it is answered in any case, unless `close` is set
  bool close = false;        // it takes back what was sent before; then the connection is closed
  std::span<const FlowGrant> grants;
};

// A stage for people. Counts only grow while the stage is known.
struct StageStatus {
  bool connected = false;
  bool late = false;    // it has not answered the last cycle in time
  bool silent = false;  // it is to be disconnected
  std::string_view name;
  std::uint64_t incarnation = 0;
  std::uint64_t late_cycles = 0;
  std::uint64_t lies = 0;             // counters and flows that cannot be; they count as nothing
  std::uint64_t refused_answers = 0;  // see AnswerResult
  std::uint64_t not_applied = 0;
  std::string problem;  // the last one; "": there was none
};

}  // namespace vpfs::allocation
