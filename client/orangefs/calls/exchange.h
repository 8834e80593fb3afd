#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>

#include "base/clock.h"
#include "protocols/orangefs/types.h"

namespace vpfs::client {

class ServerConnection;

// One request on a connection and everything that comes back with its tag.
//
// Owned by the coroutine that waits for it. A ServerConnection borrows it from begin() until it
// calls on_failure() or the exchange calls forget(). All calls happen on the strand of the
// connection.
class Exchange {
 public:
  // What to do with the bytes of a flow message: copy them to `into`, or drop them.
  struct Room {
    std::span<std::byte> into;
    std::uint64_t drop = 0;
  };

  Exchange() = default;
  virtual ~Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

 protected:
  [[nodiscard]] orangefs::Tag tag() const { return tag_; }

 private:
  friend class ServerConnection;

  // Whether large data will arrive that bypass the connection's buffer.
  [[nodiscard]] virtual bool reads_in_bulk() const { return false; }
  // Whether the next message with this tag is raw flow data, not a response.
  [[nodiscard]] virtual bool expects_data() const { return false; }
  // A whole response. False when it is malformed, which closes the connection.
  [[nodiscard]] virtual bool on_response(std::span<const std::byte> payload) = 0;
  // A flow message of `size` bytes begins. False when the flow has fewer bytes left.
  [[nodiscard]] virtual bool on_data(std::uint64_t /*size*/) { return false; }
  // The destination of the next bytes of that message, at most `most`.
  [[nodiscard]] virtual Room next_room(std::uint64_t most) { return {.into = {}, .drop = most}; }
  // The flow message is complete.
  virtual void on_data_end() {}
  // The exchange timed out or the connection is lost. Not called after forget().
  virtual void on_failure(std::error_code error) = 0;

  orangefs::Tag tag_ = 0;
  bool in_bulk_ = false;  // reads_in_bulk() at its begin
  TimePoint deadline_ = {};
  Duration patience_ = {};
};

}  // namespace vpfs::client
