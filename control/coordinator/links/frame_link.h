#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/ready_set.h"
#include "net/ready_stream.h"

namespace vpfs::coordinator {

// What all links of a program share.
struct LinkRoom {
  net::ReadySet& set;
  std::vector<std::byte> buffer = std::vector<std::byte>(std::size_t{256} * 1024);
  std::uint64_t turn = 0;  // of the set, in which ...
  int handshakes = 0;      // ... so many steps of handshakes were made
};

// A connection as frames of the control protocol. An idle one keeps no buffers. Belongs to the
// strand of its ReadySet.
class FrameLink final : private net::ReadySet::Member {
 public:
  class FrameHandler {
   public:
    virtual ~FrameHandler() = default;
    // The handshake is done: frames may go and come.
    virtual void opened(FrameLink& link) = 0;
    // A frame without its length, valid during the call.
    virtual void received(FrameLink& link, std::span<const std::byte> frame) = 0;
    // The link has closed by itself. The last call; the link must not be destroyed inside.
    virtual void ended(FrameLink& link, const std::string& why) = 0;
  };

  // `room` and `handler` outlive the link. `most`: the longest frame that is taken.
  FrameLink(std::unique_ptr<net::ReadyStream> stream, LinkRoom& room, FrameHandler& handler,
            std::size_t most);
  ~FrameLink() override { close(); }
  FrameLink(const FrameLink&) = delete;
  FrameLink& operator=(const FrameLink&) = delete;

  // Begins. Where that is not possible the handler hears of the end at once.
  void open();
  // Another bound for frames to come.
  void allow(std::size_t most) { most_ = most; }
  // Whole frames. Frames wait until the peer takes them; too much ends the link, of which the
  // handler hears in a later turn. Does nothing on a closed link.
  void send(std::string_view frames);
  // The handler hears nothing any more. Idempotent; not to be followed by open().
  void close();

  [[nodiscard]] bool is_open() const { return stream_ != nullptr && is_ready_; }
  [[nodiscard]] std::vector<std::string> peer_names() const { return stream_->peer_names(); }

 private:
  void ready(bool readable, bool writable, bool has_ended) override;
  void shake_hands();
  [[nodiscard]] bool has_turn_for_handshake();
  void read(bool has_ended);
  void take(std::span<const std::byte> bytes);
  // Hands whole frames over; returns how many bytes they took.
  std::size_t hand_over(std::span<const std::byte> bytes);
  void write_unsent();
  void want_room(bool wants);
  void end(const std::string& why);

  // Members that each message needs come first: with thousands of links they are not in the caches.
  std::unique_ptr<net::ReadyStream> stream_;  // null: closed
  FrameHandler& handler_;
  LinkRoom& room_;
  std::size_t most_;
  bool is_ready_ = false;
  bool wants_room_ = false;
  std::string unsent_;
  std::vector<std::byte> rest_;  // the beginning of a frame
  std::string problem_;          // why this side is ending the connection
};

}  // namespace vpfs::coordinator
