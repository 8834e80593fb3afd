#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

namespace vpfs::fuse {

// Requests whose process had a signal that was not obeyed. The kernel tells of the first signal of
// a request only, and a later one may end the process. So each is looked at again and again: those
// of each user in the order in which they were looked at, and users take turns. Not thread-safe.
class InterruptedRequests {
 public:
  struct Entry {
    std::uint64_t unique = 0;    // the kernel's number of the request
    unsigned times_missing = 0;  // one after the other
  };
  // What looking at one found.
  struct Finding {
    enum class State {
      over,     // it has its answer
      waits,    // its process is still not to be obeyed
      missing,  // it has its answer, or is on its way from one place to another
    };
    State state = State::over;
    uid_t uid = 0;  // of one that waits
  };

  // Those that are missing at most; then the oldest of them is forgotten. As many as the kernel
  // gives a mount at once without a process that waits.
  static constexpr std::size_t kMostMissing = 65'535;

  // It was looked at.
  void put(const Entry& entry, const Finding& finding);
  // Takes the next one out, to be looked at and put in again. Nothing: there is none.
  [[nodiscard]] std::optional<Entry> take();

  [[nodiscard]] std::size_t size() const { return size_; }
  // The kernel's numbers of all.
  [[nodiscard]] std::vector<std::uint64_t> numbers() const;

 private:
  // Those whose user is not known are like a user's.
  static constexpr std::uint64_t kUnknown = UINT64_MAX;

  void put(std::uint64_t user, const Entry& entry);

  std::unordered_map<std::uint64_t, std::deque<Entry>> queues_;  // of users; none is empty
  std::deque<std::uint64_t> turns_;                              // of the users of queues_
  std::size_t size_ = 0;
};

}  // namespace vpfs::fuse
