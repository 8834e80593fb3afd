#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "control/gate/stage_gate.h"
#include "control/wire/control.pb.h"
#include "stage/recorder/recorder.h"

namespace vpfs::control {

// Memory that programs may take without harm to others, in bytes; nothing: not known.
[[nodiscard]] std::optional<std::uint64_t> available_memory();

// The recording of a stage: one at a time, in memory that is taken when it starts. Requests never
// wait for it. Belongs to one thread.
class Recordings {
 public:
  using Available = std::function<std::optional<std::uint64_t>()>;
  // One reply has so many at most, so that no thread waits long for a lock and no frame is large.
  static constexpr std::size_t kRequestsOfAReply = 8192;
  static constexpr std::size_t kNamesOfAReply = 256;
  static constexpr std::uint64_t kLeastBytes = std::uint64_t{64} * 1024;
  // All of it is touched at the start, which holds the port up for half a second at most.
  static constexpr std::uint64_t kMostBytes = std::uint64_t{1024} * 1024 * 1024;

  // The gate outlives it.
  explicit Recordings(StageGate& gate, Available available = available_memory)
      : gate_(gate), available_(std::move(available)) {}
  ~Recordings() { end({}); }
  Recordings(const Recordings&) = delete;
  Recordings& operator=(const Recordings&) = delete;

  // An error is about the request, and nothing has changed.
  [[nodiscard]] std::expected<RecordReply, Error> answer(const Record& request, TimePoint now,
                                                         WallTime wall);
  // Ends a recording whose time is over. Called once a second.
  void tick(TimePoint now);

 private:
  [[nodiscard]] std::expected<void, Error> start(const Record& request, TimePoint now,
                                                 WallTime wall);
  [[nodiscard]] std::expected<RecordReply, Error> read(const Record& request, TimePoint now);
  [[nodiscard]] RecordReply described(TimePoint now) const;
  // Nothing is written from now on.
  void end(TimePoint now);

  StageGate& gate_;
  const Available available_;
  std::unique_ptr<stage::Recorder> recorder_;
  std::uint32_t last_number_ = 0;
  bool running_ = false;
  WallTime began_ = {};
  TimePoint ended_ = {};  // if it is not running
};

}  // namespace vpfs::control
