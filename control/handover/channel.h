#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/saved/saved_state.h"
#include "net/descriptor.h"

namespace vpfs::control {

// The messages of a hand-over (docs/decisions/0065-hot-restart.md). A kind is never given another
// meaning.
enum class HandoverKind : std::uint32_t {
  hello = 1,       // taker: versions
  refused = 2,     // giver: text
  belongings = 3,  // giver: what the taker needs to begin
  ready = 4,       // taker
  failed = 5,      // either: text; the hand-over ends
  parcel = 6,      // giver: a part of it, with descriptors: one connection of a proxy
  state = 7,       // giver: everything besides
  taken = 8,       // taker
  go = 9,          // giver: the point of no return
  load = 10,       // giver: what has changed since
  end = 11,        // giver
};

struct HandoverMessage {
  HandoverKind kind = HandoverKind::failed;
  SavedState state;
  std::vector<net::Descriptor> descriptors;
  bool lacks_descriptors = false;  // this process may have no more
};

// Both sides speak this version alone so far.
inline constexpr std::uint64_t kHandoverVersion = 1;

// Messages with descriptors on a UNIX stream socket. Each call waits for its peer up to a deadline.
class HandoverChannel {
 public:
  static constexpr std::size_t kMostDescriptors = 253;  // of one message, as the kernel has it

  explicit HandoverChannel(net::Descriptor socket) : socket_(std::move(socket)) {}

  // Connects to the path.
  [[nodiscard]] static Result<HandoverChannel> dial(const std::string& path);

  // The descriptors are copied: the caller keeps its own. REQUIRES: at most kMostDescriptors.
  [[nodiscard]] Result<void> send(HandoverKind kind, const SavedState& state,
                                  std::span<const int> descriptors, Duration patience);
  [[nodiscard]] Result<void> send(HandoverKind kind, const SavedState& state, Duration patience) {
    return send(kind, state, {}, patience);
  }
  // An error too if the peer has failed() or refused: its text; and if descriptors are lacking.
  [[nodiscard]] Result<HandoverMessage> receive(Duration patience);
  // The same, but a message may lack descriptors.
  [[nodiscard]] Result<HandoverMessage> receive_some(Duration patience);
  // Whether something can be received, or the peer has gone, within `patience`.
  [[nodiscard]] bool is_readable(Duration patience);

  // From now on nothing can be sent to this side. What was sent before can still be received.
  void refuse_more();

  // Both sides see the end, and descriptors on their way are closed. No other call follows.
  void close();

  [[nodiscard]] int native_handle() const { return socket_.get(); }

 private:
  struct Header;
  [[nodiscard]] Result<void> wait(short events, TimePoint deadline);
  [[nodiscard]] Result<void> read(void* to, std::size_t size, TimePoint deadline,
                                  HandoverMessage* with_descriptors);

  net::Descriptor socket_;
};

}  // namespace vpfs::control
