#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/saved/saved_state.h"
#include "control/handover/channel.h"
#include "net/descriptor.h"
#include "net/inherited.h"

namespace vpfs::control {

// The process whose place this one takes. The calls come in this order; an error ends the hand-over
// and leaves that process as it was. Blocks.
class Predecessor {
 public:
  // Dials it, and is offered what belongs to it.
  [[nodiscard]] static Result<Predecessor> meet(const std::string& socket);

  [[nodiscard]] net::Inherited& inherited() { return inherited_; }
  [[nodiscard]] const SavedState& offered() const { return offered_; }

  // This process cannot take over.
  void tell_failure(const std::string& why);
  // A part of that process, such as a connection (PackedParcel).
  struct Parcel {
    SavedState state;
    std::vector<net::Descriptor> descriptors;
  };
  // Takes what comes while the other process still serves, each part with `take`. Before
  // tell_ready().
  [[nodiscard]] Result<void> receive_early(const std::function<Result<void>(Parcel parcel)>& take);
  // This process has all that it needs but the state.
  [[nodiscard]] Result<void> tell_ready();

  struct Everything {
    SavedState state;
    std::vector<Parcel> parcels;
  };
  [[nodiscard]] Result<Everything> receive();
  // All of it is in place. Returns when this process is in charge. After an error the other one is.
  [[nodiscard]] Result<void> tell_taken();

  // What comes later. Each is called on a thread of its own, until the other process has ended.
  struct Later {
    std::function<void(Parcel parcel)> parcel;
    std::function<void(const SavedState& changes)> changes;
    std::function<void(bool as_planned)> end;
  };
  void receive_the_rest(Later later);
  // Ends that thread.
  void stop();

 private:
  explicit Predecessor(HandoverChannel channel) : channel_(std::move(channel)) {}

  HandoverChannel channel_;
  SavedState offered_;
  net::Inherited inherited_;
  std::jthread rest_;
};

}  // namespace vpfs::control
