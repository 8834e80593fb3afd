#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <sys/epoll.h>

#include "base/clock.h"
#include "base/result.h"
#include "net/descriptor.h"

namespace vpfs::net {

// Waits for thousands of descriptors with one system call. A descriptor is registered once, and its
// member is told when something changes (edge-triggered). Belongs to one thread.
class EpollSet {
 public:
  class Member {
   public:
    virtual ~Member() = default;
    // Something has come, or there is room again. It is told once: the member remembers what it
    // leaves, or has it told again. Where the peer `has_ended`, the member reads until the end. It
    // may be removed from inside, and so may others.
    virtual void ready(bool readable, bool writable, bool has_ended) = 0;
  };

  // Throws std::system_error if the system has no descriptor left, as asio's contexts do.
  EpollSet();
  EpollSet(const EpollSet&) = delete;
  EpollSet& operator=(const EpollSet&) = delete;

  // The member outlives its removal.
  [[nodiscard]] Result<void> add(int descriptor, Member& member, bool wants_room = false);
  // Whether to tell of room as well. Tells again what is there already.
  void want_room(int descriptor, Member& member, bool wants);
  // Nothing is told after it. Comes before the descriptor is closed.
  void remove(int descriptor, Member& member);

  // Tells the members of what has happened, and waits up to `patience` for something to happen.
  // Returns whether anything had.
  bool serve(Duration patience);
  // Nothing is told after it, also from inside, and no member can be added.
  void close() {
    count_ = 0;
    epoll_.close();
  }

  // Readable when serve() would find something.
  [[nodiscard]] int descriptor() const { return epoll_.get(); }

 private:
  [[nodiscard]] int wait(Duration patience);

  Descriptor epoll_;
  std::array<epoll_event, 256> events_ = {};
  std::size_t next_ = 0;  // of events_
  std::size_t count_ = 0;
  bool counts_milliseconds_ = false;  // the kernel is older than epoll_pwait2()
};

}  // namespace vpfs::net
