#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "protocols/protocol.h"
#include "proxy/pump/pump_output.h"
#include "proxy/pump/pump_owner.h"
#include "proxy/pump/pump_socket.h"
#include "proxy/pump/pump_thread.h"

namespace vpfs::proxy {

// One direction of a session. Moves messages from the source socket to the sink socket as its owner
// decides, and inserts other messages (released requests, refusals) between them.
//
// Small messages are received many at a time into the thread's scratch buffer and sent from there.
// Large messages are only peeked at and then go from socket to socket by splice(2). Only what the
// sink did not take is kept beyond an event. Then reading stops until it is gone, so the pump keeps
// at most one scratch buffer.
//
// A stream may have to wait before its next message is parsed. Received bytes then stay here until
// flush(), and the rest stays in the socket.
//
// A source tells of new bytes once, so a pump that leaves some goes on by itself: at once when it
// is resumed, flushed, or its sink has room, and after the others when it has used up its turn.
//
// Belongs to one thread.
class Pump {
 public:
  // All references outlive the pump. The sockets tell it what happens.
  Pump(PumpOwner& owner, PumpThread& thread, Sender from, PumpSocket& source, PumpSocket& sink);
  ~Pump() { stop(); }
  Pump(const Pump&) = delete;
  Pump& operator=(const Pump&) = delete;

  // Moves nothing more.
  void stop();

  // Sends `message` to the sink before the source's next message. Nothing is written before
  // flush(), so several messages go out together. flush() also gives a waiting stream its turn.
  void inject(std::span<const std::byte> message) { output_.inject(message); }
  // Like inject(), but the bytes must stay in place until flush().
  void inject_borrowed(std::span<const std::byte> message) { output_.inject_borrowed(message); }
  void flush();

  // A paused pump finishes the current message and reads no other one.
  void pause() { paused_ = true; }
  void resume();
  [[nodiscard]] bool paused() const { return paused_; }
  // Whether the source's next message waits for its turn. Nothing is read meanwhile, so the end of
  // the stream does not show.
  [[nodiscard]] bool waits() const { return waits_; }

  // For a successor that goes on with the stream: what was received and not parsed, and what the
  // sink has not taken. Only at a boundary, and without bytes in a pipe.
  struct Rest {
    std::vector<std::byte> unparsed;
    std::vector<std::byte> unsent;
  };
  [[nodiscard]] bool at_boundary() const { return !in_mid_message() && output_.in_memory(); }
  // Nothing was received that the sink has not taken.
  [[nodiscard]] bool at_rest() const {
    return at_boundary() && carry_.empty() && output_.unsent() == 0 && !paused_ && !source_ended_;
  }
  [[nodiscard]] Rest rest() const { return {.unparsed = carry_, .unsent = output_.queued()}; }
  // REQUIRES: nothing was moved yet. The next flush() goes on with it.
  void begin_with(Rest rest);
  // Puts bytes in front of those that wait. REQUIRES: begin_with(), and no flush() since.
  void put_back(std::span<const std::byte> bytes);
  // Has no further turn before the sockets tell something.
  void leave_turns();

  // From the sockets, within an event.
  void source_is_ready();
  void sink_is_ready();
  [[nodiscard]] bool waits_for_sink() const { return writing_; }
  // From the thread, as an event of its own.
  void go_on();

  // Whether a message is partly forwarded, and how many of its bytes are still to come.
  [[nodiscard]] bool in_mid_message() const { return left_ > 0; }
  [[nodiscard]] std::uint64_t left_of_message() const { return left_; }
  // Whether the sink would take more, so that it is the source's turn. A source that is not read
  // because it asked for too much has only itself to blame.
  [[nodiscard]] bool waits_for_source() const { return !writing_ && output_.empty(); }

  [[nodiscard]] const PumpOutput& output() const { return output_; }

 private:
  enum class Outcome : std::uint8_t { progress, drained, ended, failed };

  void run();
  void wait_writable();
  [[nodiscard]] bool write_output();
  [[nodiscard]] bool settle(PumpOutput::Outcome outcome);
  void end_of_source(std::error_code error);

  [[nodiscard]] Outcome read_source();
  [[nodiscard]] Outcome receive();
  [[nodiscard]] Outcome receive(std::size_t wanted);
  [[nodiscard]] Outcome peek();
  [[nodiscard]] Outcome splice();
  [[nodiscard]] Outcome discard();
  [[nodiscard]] bool drop(std::size_t size);
  [[nodiscard]] Outcome outcome_of_error();

  [[nodiscard]] bool parse(std::span<const std::byte> bytes, std::size_t& consumed);
  void take_carry();
  void begin_unseen();
  void begin_wait();
  void begin(const Step& step);
  void end_message();
  // A message begins. `held`: its size if it is held, or else 0.
  void note_follower(std::size_t held);
  void add_run(std::span<const std::byte> bytes);
  void forward_runs();
  void take_forwarded(std::uint64_t size);
  void set_left(std::uint64_t left);
  // Whether nothing may be read until something else changes.
  [[nodiscard]] bool stands_still() const { return (paused_ || waits_) && !in_mid_message(); }

  PumpOwner& owner_;
  PumpThread& thread_;
  const Sender from_;
  PumpSocket& source_;
  PumpSocket& sink_;
  PumpOutput output_;

  std::vector<std::byte> carry_;    // the incomplete head of a message, or bytes that wait
  std::vector<std::byte> carried_;  // its other buffer
  std::uint64_t left_ = 0;          // bytes of the current message still to come
  bool discarding_ = false;         // the current message is dropped
  std::optional<FinishedIo> finished_at_end_;

  std::size_t messages_ = 0;  // parsed in this event
  std::size_t receive_size_;
  std::size_t held_size_ = 0;  // of the last message, if it was held
  // The likely size of the next message if that is a request, or 0. Receiving exactly that much
  // leaves the request's data in the socket, without a peek and without bytes to drop.
  std::size_t expected_ = 0;
  // The size of the held message behind the last large message, or 0 if another one was there.
  std::size_t follower_ = 0;
  bool follower_repeats_ = false;  // it was the same behind the large message before
  bool is_large_ = false;          // the current message is
  bool behind_large_ = false;      // the next message is behind a large one
  int large_messages_ = 0;         // how many more times to peek before receiving
  bool stopped_ = false;
  bool paused_ = false;
  bool waits_ = false;
  bool goes_on_ = false;  // the thread gives it another turn
  bool writing_ = false;  // it waits for the sink
  bool running_ = false;
  bool source_ended_ = false;
  int source_error_ = 0;  // errno of the outcome `failed`
};

}  // namespace vpfs::proxy
