#pragma once

#include <cstddef>
#include <span>

#include <sys/types.h>

#include "net/descriptor.h"
#include "net/epoll_set.h"
#include "proxy/pump/pump_thread.h"

namespace vpfs::proxy {

class Pump;

// A connection of a session: the source of one pump and the sink of the other. It is registered for
// readiness once, and remembers what it was told until the pump has read it all. The kernel says
// with each read what is left, so a pump makes no call only to find nothing.
//
// Belongs to one thread.
class PumpSocket final : private net::EpollSet::Member {
 public:
  PumpSocket(PumpThread& thread, net::Descriptor socket);
  ~PumpSocket() override { close(); }
  PumpSocket(const PumpSocket&) = delete;
  PumpSocket& operator=(const PumpSocket&) = delete;

  // Both pumps live until close().
  void set_reader(Pump& reader) { reader_ = &reader; }
  void set_writer(Pump& writer) { writer_ = &writer; }

  // From now on the pumps are told, first of all of what is there already.
  [[nodiscard]] Result<void> watch();
  // The pumps are told nothing until the next watch().
  void unwatch();
  // Has the writer told when there is room. Each wait is a system call; a sink seldom blocks.
  void want_room();
  // The pumps are told nothing more.
  void close();

  [[nodiscard]] int native_handle() const { return socket_.get(); }

  // Whether a read may bring something: bytes, the end, or an error.
  [[nodiscard]] bool may_have_more() const { return peer_has_ended_ || !is_known_ || unread_ > 0; }
  // Whether the peer sends nothing more. There may be bytes before the end.
  [[nodiscard]] bool peer_has_ended() const { return peer_has_ended_; }

  // These return what recv(2) does.
  [[nodiscard]] ssize_t receive(std::span<std::byte> into);
  [[nodiscard]] ssize_t peek(std::span<std::byte> into);
  [[nodiscard]] ssize_t drop(std::size_t size);
  // What splice(2) has taken out of the socket, or -1 with errno.
  void note_spliced(ssize_t moved);

 private:
  void ready(bool readable, bool writable, bool has_ended) override;
  [[nodiscard]] ssize_t read(void* to, std::size_t size, int flags);
  void note_empty();

  PumpThread& thread_;
  net::Descriptor socket_;
  Pump* reader_ = nullptr;
  Pump* writer_ = nullptr;
  bool is_watched_ = false;
  bool wants_room_ = false;
  // What is in the socket, apart from what epoll will still tell of: if known, unread_ bytes.
  bool is_known_ = true;
  bool peer_has_ended_ = false;
  std::size_t unread_ = 0;
};

}  // namespace vpfs::proxy
