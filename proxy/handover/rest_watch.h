#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/saved/saved_state.h"
#include "proxy/handover/connection_keeper.h"

namespace vpfs::proxy {

// Finds when a session has moved nothing for a while, so that it is worth keeping over a crash, and
// has it kept. A session that moves bytes again has nothing to tell: its record holds no longer.
// Belongs to the session's thread. Without a keeper it does nothing.
class RestWatch {
 public:
  explicit RestWatch(ConnectionKeeper* keeper) : keeper_(keeper) {}
  ~RestWatch() { forget({}); }
  RestWatch(const RestWatch&) = delete;
  RestWatch& operator=(const RestWatch&) = delete;

  // Whether record() should be called if the session is at rest. `moved`: its bytes so far. Cheap;
  // a few times a second.
  [[nodiscard]] bool is_due(std::uint64_t moved, TimePoint now);
  // The session is at rest. `sockets`: of client and server.
  void record(std::array<int, 2> sockets, SavedState state, TimePoint now);
  // Likewise, and the manager has the sockets already.
  void record_kept(std::array<int, 2> sockets, SavedState state, TimePoint now);

  // The connections have ended, or another process has them.
  void forget(TimePoint now);

 private:
  ConnectionKeeper* keeper_;
  std::optional<std::size_t> place_;
  std::uint64_t moved_ = 0;
  TimePoint since_ = {};
  bool is_recorded_ = false;
};

}  // namespace vpfs::proxy
