#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "stage/recorder/recorded.h"

namespace vpfs::recording {

// Where requests came from, as a control port tells it.
struct Origin {
  std::uint64_t connection = 0;  // of a mount: the process
  std::string client;            // its address; of a mount: ""
  std::string jobid;             // "": none

  auto operator<=>(const Origin&) const = default;
};

// What a stage has recorded.
struct Recording {
  std::string stage;  // its name
  WallTime began = {};
  Duration length = {};
  std::uint64_t overwritten = 0;   // requests before those that are here
  std::vector<std::string> names;  // of virtual PFSes; "": one of too many
  // The first is that of requests which came before the recording began, or which show nothing.
  std::vector<Origin> origins;
  bool names_are_full = false;  // the stage had no numbers for more names, origins or jobs
  // By their ends. All names and origins are there.
  std::vector<stage::Recorded> requests;

  [[nodiscard]] const std::string& name_of(const stage::Recorded& request) const {
    return names[request.virtual_pfs];
  }
  [[nodiscard]] const Origin& origin_of(const stage::Recorded& request) const {
    return origins[request.origin];
  }
  // Its origin is one of those for which the stage had no number.
  [[nodiscard]] bool is_one_of_many(const stage::Recorded& request) const {
    return request.origin != 0 && origin_of(request) == Origin();
  }
};

[[nodiscard]] constexpr TimePoint arrival(const stage::Recorded& request) {
  return TimePoint(std::chrono::nanoseconds(request.arrival_ns));
}
[[nodiscard]] constexpr TimePoint sent(const stage::Recorded& request) {
  return arrival(request) + request.wait * stage::Recorded::kTick;
}
[[nodiscard]] constexpr TimePoint end(const stage::Recorded& request) {
  return sent(request) + request.service * stage::Recorded::kTick;
}

// The longest recording that a stage makes: a year and a day.
inline constexpr std::uint64_t kLongestUs = std::uint64_t{366} * 24 * 3600 * 1'000'000;
// Whether its times and sizes are such as a stage writes, so that sums of them do not overflow.
[[nodiscard]] bool is_sane(const stage::Recorded& request);

// Drops the time before the oldest request that is here, if others were overwritten.
void drop_overwritten(Recording& recording);

// Only what ended in the last part of a recording, as if it had begun then. It is the same if it is
// not longer.
void keep_last(Recording& recording, Duration part);

[[nodiscard]] std::string_view word_of(IoKind kind);
[[nodiscard]] std::string_view word_of(stage::RecordedReason reason);
[[nodiscard]] std::string_view word_of(stage::RecordedEnd end);

// Takes the text of a file, part by part.
using Sink = std::function<void(std::string_view part)>;

}  // namespace vpfs::recording
