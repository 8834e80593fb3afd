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
    // Something has come, or there is room again. It is told once: the member reads all that is
    // there, and where the peer `has_ended` until the end, or has it told again. It may be removed
    // from inside, and so may others.
    virtual void ready(bool readable, bool writable, bool has_ended) = 0;
  };

  // The error says what the system lacks.
  [[nodiscard]] static Result<std::unique_ptr<ReadySet>> make(asio::io_context& context);
  ~ReadySet() { close(); }
  ReadySet(const ReadySet&) = delete;
  ReadySet& operator=(const ReadySet&) = delete;

  // A member is told when something comes (edge-triggered). It outlives its removal.
  [[nodiscard]] Result<void> add(int descriptor, Member& member);
  // Whether to be told of room as well.
  void want_room(int descriptor, Member& member, bool wants);
  // Tells in a later turn what is there still, for a member that has not read all of it.
  void tell_again(int descriptor, Member& member, bool wants_room) {
    want_room(descriptor, member, wants_room);
  }
  // Nothing is told after it. Comes before the descriptor is closed.
  void remove(int descriptor, Member& member);
  // Whether more is sure to come at once. Then the set waits for it itself, for a moment each time,
  // which saves the event loop's detour for each message.
  void expect(bool more) { expects_more_ = more; }
  // Serves what is there already, for a caller with much to do before the event loop has its turn.
  // Does nothing inside of a member.
  void serve_now();
  // Ends the wait: nothing is told after it, also from inside.
  void close();

 private:
  ReadySet(asio::io_context& context, int epoll) : epoll_(context, epoll) {}
  void wait();
  void serve();
  // Whether there was anything.
  [[nodiscard]] bool serve_batch(int patience_ms);

  asio::posix::stream_descriptor epoll_;
  std::array<epoll_event, 256> events_ = {};
  std::size_t next_ = 0;  // of events_
  std::size_t count_ = 0;
  bool expects_more_ = false;
  bool is_serving_ = false;
};

}  // namespace vpfs::net
