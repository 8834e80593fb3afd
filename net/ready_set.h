#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <sys/epoll.h>

#include "base/result.h"

namespace vpfs::net {

// Waits for thousands of descriptors with one wait of the event loop: an epoll set of its own.
//
// A wait for each of them would cost the event loop a system call for each message. Belongs to the
// strand of its io_context.
class ReadySet {
 public:
  class Member {
   public:
    virtual ~Member() = default;
    // Something is there to be read or has room; a broken descriptor is both. The member may be
    // removed from inside, and so may others.
    virtual void ready(bool readable, bool writable) = 0;
  };

  // The error says what the system lacks.
  [[nodiscard]] static Result<std::unique_ptr<ReadySet>> make(asio::io_context& context);
  ~ReadySet() { close(); }
  ReadySet(const ReadySet&) = delete;
  ReadySet& operator=(const ReadySet&) = delete;

  // A member is told for as long as something is there (level-triggered). It outlives its removal.
  [[nodiscard]] Result<void> add(int descriptor, Member& member);
  // Whether to be told of room as well.
  void want_room(int descriptor, Member& member, bool wants);
  // Nothing is told after it. Comes before the descriptor is closed.
  void remove(int descriptor, Member& member);
  // Ends the wait: nothing is told after it, also from inside.
  void close();

 private:
  ReadySet(asio::io_context& context, int epoll) : epoll_(context, epoll) {}
  void wait();
  void serve();

  asio::posix::stream_descriptor epoll_;
  std::array<epoll_event, 256> events_ = {};
  std::size_t next_ = 0;  // of events_
  std::size_t count_ = 0;
};

}  // namespace vpfs::net
