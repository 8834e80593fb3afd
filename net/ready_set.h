#pragma once

#include <cstdint>
#include <memory>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>

#include "base/result.h"
#include "net/epoll_set.h"

namespace vpfs::net {

// Waits for thousands of descriptors with one wait of the event loop: an epoll set of its own.
//
// A wait for each of them would cost the event loop a system call for each message. Belongs to the
// strand of its io_context.
class ReadySet {
 public:
  using Member = EpollSet::Member;

  // The error says what the system lacks.
  [[nodiscard]] static Result<std::unique_ptr<ReadySet>> make(asio::io_context& context);
  ~ReadySet() { close(); }
  ReadySet(const ReadySet&) = delete;
  ReadySet& operator=(const ReadySet&) = delete;

  [[nodiscard]] Result<void> add(int descriptor, Member& member) {
    return set_.add(descriptor, member);
  }
  // Whether to be told of room as well.
  void want_room(int descriptor, Member& member, bool wants) {
    set_.want_room(descriptor, member, wants);
  }
  // Tells in a later turn what is there still, for a member that has not read all of it.
  void tell_again(int descriptor, Member& member, bool wants_room) {
    set_.want_room(descriptor, member, wants_room);
  }
  // Nothing is told after it. Comes before the descriptor is closed.
  void remove(int descriptor, Member& member) { set_.remove(descriptor, member); }
  // Whether more is sure to come at once. Then the set waits for it itself, for a moment each time,
  // which saves the event loop's detour for each message.
  void expect(bool more) { expects_more_ = more; }
  // The number of the event loop's turn in which members were told something last.
  [[nodiscard]] std::uint64_t turn() const { return turn_; }
  // Serves what is there already, for a caller with much to do before the event loop has its turn.
  // Does nothing inside of a member.
  void serve_now();
  // Ends the wait: nothing is told after it, also from inside.
  void close();

 private:
  explicit ReadySet(asio::io_context& context);
  void wait();
  void serve();
  // Whether there was anything.
  [[nodiscard]] bool serve_batch(Duration patience);

  EpollSet set_;
  asio::posix::stream_descriptor loop_;  // waits for set_, which owns the descriptor
  std::uint64_t turn_ = 0;
  bool expects_more_ = false;
  bool is_serving_ = false;
};

}  // namespace vpfs::net
