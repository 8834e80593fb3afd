#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

#include "base/clock.h"
#include "schedulers/request.h"

namespace vpfs::fuse {

// For how long a request may be held that keeps an object of the kernel locked meanwhile, most of
// all a directory. A process that waits for the lock cannot be seen or killed. So
//
//   - where another application was seen within kMemory, such a request is not held;
//   - elsewhere it is held for kLongestHold at most, so that one that comes can be seen;
//   - behind a hold, requests that may have waited for the lock are not held. The lock goes round,
//     so these are of threads that have not come since: at most kMostWaiting;
//   - a thread that has the lock may send several requests, such as a look-up and then the making
//     of the name. Only the first of such a visit is held.
//
// So the first request of an application that comes waits for the lock for little more than two
// holds if no more than kMostWaiting threads are before it, and later ones do not wait.
//
// A data structure: it takes no lock and reads no clock. `now` never goes back.
class LockWatch {
 public:
  static constexpr Duration kLongestHold = std::chrono::milliseconds(500);
  static constexpr Duration kMemory = std::chrono::seconds(10);
  static constexpr std::size_t kMostWaiting = 64;
  // A rename looks two names up, and the directory's attributes or ACL may be asked for.
  static constexpr unsigned kMostSteps = 4;

  struct Visitor {
    AppId app = {};
    pid_t thread = 0;   // 0: the mount's pid namespace does not know it
    bool asks = false;  // it only looks something up, so that more may follow under the same lock
  };
  // An application's request on these objects has come; 0 is none.
  void see(std::span<const std::uint64_t> objects, AppId app, TimePoint now);
  // The same of one that keeps them locked. Returns until when it may be held; `now`: not at all.
  [[nodiscard]] TimePoint may_hold_until(std::span<const std::uint64_t> objects,
                                         const Visitor& visitor, TimePoint now);

  // It remembers at most so many.
  static constexpr std::size_t kMostObjects = std::size_t{1} << 14;

 private:
  struct Visit {
    pid_t thread = 0;
    unsigned steps = 0;
    bool asks = false;
  };
  struct Object {
    AppId app = {};  // that came last
    TimePoint came = {};
    TimePoint shared_until = {};
    TimePoint held_until = {};  // the end of the last hold
    // The last visits of the thread that was held first, and of those that came since the end.
    std::vector<Visit> visits;
  };

  Object& see(std::uint64_t object, AppId app, TimePoint now);
  [[nodiscard]] TimePoint may_hold_until(std::uint64_t object, const Visitor& visitor,
                                         TimePoint now);
  void forget_some(TimePoint now);

  std::unordered_map<std::uint64_t, Object> all_;
};

}  // namespace vpfs::fuse
