#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "net/async.h"

namespace vpfs::net {

// Writes whole messages to a socket in the order of send(). Messages sent in one turn of the event
// loop go out at its end, in as few system calls as possible.
//
// Borrows the socket, whose owner calls close() before destroying it. Belongs to the socket's
// strand.
class OutputQueue {
 public:
  // A part of an open file, which the kernel sends without a copy through user space. The file must
  // hold those bytes and stay open until the queue has released the message's owner.
  struct FilePart {
    int descriptor = -1;
    std::int64_t offset = 0;
    std::size_t size = 0;
  };
  // `head`, then `payload`, then `file`. `owner` keeps alive what payload and file borrow: it is
  // released once all is written, or at close().
  struct Message {
    std::vector<std::byte> head;
    std::span<const std::byte> payload = {};
    FilePart file = {};
    std::shared_ptr<const void> owner = nullptr;
  };

  explicit OutputQueue(Socket& socket);
  ~OutputQueue();
  OutputQueue(const OutputQueue&) = delete;
  OutputQueue& operator=(const OutputQueue&) = delete;

  // Drops the message when the queue is closed or the socket has failed.
  void send(Message message);
  void send(std::vector<std::byte> bytes);

  // Bytes that the socket has not taken yet.
  [[nodiscard]] std::uint64_t pending() const;
  // Waits until at most `limit` bytes are pending; false once the queue is closed or failed.
  [[nodiscard]] Task<bool> wait_until_pending_at_most(std::uint64_t limit);

  // Drops everything, wakes all waiters. Idempotent.
  void close();
  [[nodiscard]] bool open() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with the write in flight
};

}  // namespace vpfs::net
