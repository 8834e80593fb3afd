#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

#include "base/clock.h"
#include "fuse/posix/io_request.h"

namespace vpfs::fuse {

// Held reads into the page cache, by the open file that they came through. The kernel keeps the
// pages of such a read locked until its answer, and all processes that use these wait: readers
// until they are killed, writers even then.
//
// Most are read-ahead, which may fail: the kernel reads a page again when a process wants it. A
// read that a process waits for may not, since the process would see the error. The kernel does
// not say which is which. A process waits for one page at a time, so a larger read is read-ahead.
// It waits for one read at a time, so an earlier read of a thread is read-ahead too.
//
// Borrows requests. Not thread-safe.
class HeldReads {
 public:
  // How long pages of a file may be locked that another user has open too, or that a thread has
  // closed since.
  static constexpr Duration kLongestLock = std::chrono::seconds(1);
  // The same of a read that passes the page cache. It may not fail, and mostly locks nothing.
  static constexpr Duration kLongestDirect = std::chrono::seconds(10);
  // Threads of the mount take requests in order, but may bring them here in another one.
  static constexpr Duration kOnItsWay = std::chrono::milliseconds(100);
  // Reads of one user that go at once in a round.
  static constexpr std::size_t kMostAtOnce = 256;

  // REQUIRES: `file` and `arrival` are set. Does nothing with other requests than reads.
  void add(IoRequest& request);
  // Does nothing if it is not there.
  void remove(IoRequest& request);

  // One look at all files, in parts.
  struct Round {
    std::vector<IoRequest*> ahead;   // held for too long, and may fail
    std::vector<IoRequest*> waited;  // likewise, but a process may wait for its data
    std::unordered_map<uid_t, std::size_t> waited_of;  // each user; also in earlier parts
  };
  // Looks at the next `files` in turn, all if there are not more.
  void look(std::size_t files, TimePoint now, Round& round);

  // Files that have such reads.
  [[nodiscard]] std::size_t files() const { return files_.size(); }

 private:
  struct File {
    const OpenFile* open = nullptr;  // its requests own it
    std::vector<IoRequest*> reads;   // not empty; in no order
  };

  [[nodiscard]] bool may_fail(const IoRequest& request) const;

  std::vector<File> files_;
  std::unordered_map<const OpenFile*, std::size_t> places_;  // in files_
  // What each thread with such reads has: how many, and when the last came.
  struct Thread {
    std::size_t reads = 0;
    TimePoint last = {};
  };
  std::unordered_map<pid_t, Thread> threads_;
  std::size_t next_ = 0;  // file to look at
};

}  // namespace vpfs::fuse
