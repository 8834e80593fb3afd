#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/saved/saved_state.h"
#include "net/descriptor.h"

namespace vpfs::control {

// What the taker needs before it is ready: descriptors by name, borrowed, and what it must know.
struct Belongings {
  SavedState state;
  std::vector<std::pair<std::string, int>> descriptors;
};

// A part of the program that another process may go on with, such as a connection: its state, and
// descriptors, borrowed.
struct PackedParcel {
  SavedState state;
  std::vector<int> descriptors = {};
  // Called once it has arrived, or cannot; only for those of wait_for_more().
  std::function<void(bool arrived)> sent = nullptr;
  std::shared_ptr<const void> keeps = nullptr;  // what owns the descriptors, if they could close
};

// What became of a hand-over.
struct HandedOver {
  std::size_t parcels = 0;
  Duration paused = {};  // nothing was dispatched
  int pid = 0;           // of the taker
};

// The program that hands itself over, as the thread of the hand-over sees it. Every method may wait
// for other threads of the program.
class GivingProgram {
 public:
  // Until withdraw() or leave(), nothing changes that belongings tell.
  [[nodiscard]] virtual Belongings offer() = 0;
  virtual void withdraw() = 0;
  // What the taker may have before it is ready, while this program serves; after offer().
  [[nodiscard]] virtual std::vector<PackedParcel> early() { return {}; }

  // Nothing is dispatched any more. thaw() undoes it, and pack().
  virtual void freeze() = 0;
  [[nodiscard]] virtual std::size_t outstanding() = 0;
  // An error ends the hand-over.
  [[nodiscard]] virtual Result<std::vector<PackedParcel>> pack() = 0;
  // What is known besides, after pack(). An error ends the hand-over: it cannot be known by `end`.
  [[nodiscard]] virtual Result<SavedState> state(TimePoint end) = 0;
  virtual void thaw() = 0;
  // "": the hand-over may go on. Otherwise why it must end.
  [[nodiscard]] virtual std::string why_not() = 0;

  // The point of no return is passed: what was packed belongs to the other process.
  virtual void leave(const HandedOver& done) = 0;
  // Parts that have become ready to go since; waits for some for `patience` at most.
  [[nodiscard]] virtual std::vector<PackedParcel> wait_for_more(Duration patience) = 0;
  // What has changed since the last call; nothing: nothing.
  [[nodiscard]] virtual std::optional<SavedState> changes() = 0;
  // Parts that are still here, and what they are in a line of the log: "connections".
  [[nodiscard]] virtual std::size_t left() = 0;
  [[nodiscard]] virtual std::string_view kind_of_parts() const = 0;
  // Whether what is left after restart.drain may be closed.
  [[nodiscard]] virtual bool may_close_parts() const { return true; }

 protected:
  ~GivingProgram() = default;
};

struct HandoverTimes {
  Duration hello = std::chrono::seconds(2);
  // For the taker to open what it needs.
  Duration ready = std::chrono::seconds(10);
  Duration patience = std::chrono::milliseconds(30);  // restart.patience
  // For the taker to take on what it is sent, from the end of the patience on; and for each message
  // that follows later.
  Duration taken = std::chrono::seconds(3);
  Duration drain = std::chrono::minutes(5);  // restart.drain; for parts that may be closed
};

// Hands the program over to the peer of the socket, and returns when nothing is left of it. An
// error leaves the program as it was.
[[nodiscard]] Result<HandedOver> hand_over(GivingProgram& program, net::Descriptor socket,
                                           const HandoverTimes& times);

}  // namespace vpfs::control
