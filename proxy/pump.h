#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "net/async.h"
#include "protocols/protocol.h"
#include "proxy/pump_output.h"
#include "proxy/pump_owner.h"
#include "proxy/pump_thread.h"

namespace vpfs::proxy {

// One direction of a session: moves messages from the source socket to the sink socket as its owner
// decides, and puts other messages (released requests, refusals) between them.
//
// Small messages are received many at a time into the thread's scratch buffer and sent from there.
// Where messages are large, the head of the stream is only peeked at, and whole messages go from
// socket to socket by splice(2). Memory that outlives an event is what the sink did not take: then
// reading stops until it is gone, so it is at most one scratch buffer.
//
// A stream whose next message is not to be looked at yet waits until flush(): what has been
// received of it stays here, the rest in the socket.
//
// Belongs to one thread. Keeps its owner alive while a wait is in flight.
class Pump {
 public:
  // All but `from` outlive the pump.
  Pump(PumpOwner& owner, PumpThread& thread, Sender from, net::Socket& source, net::Socket& sink);

  // Moves what can be moved now and waits for more. Called once the sockets are connected.
  void start() { run(); }
  // Nothing is moved after this, and no wait has an effect. Waits in flight end when the sockets
  // are closed.
  void stop() { stopped_ = true; }

  // Sends `message` to the sink before the next message of the source. Nothing is written before
  // flush(), so several go out together. A stream that waits asks again at flush() for its turn.
  void inject(std::span<const std::byte> message) { output_.inject(message); }
  // As inject(), for a message that stays where it is until flush().
  void inject_borrowed(std::span<const std::byte> message) { output_.inject_borrowed(message); }
  void flush();

  // While paused no new message is read; the one that is half through goes on.
  void pause() { paused_ = true; }
  void resume();
  [[nodiscard]] bool paused() const { return paused_; }
  // Whether the source's next message waits for its turn. Nothing is read meanwhile, so the end of
  // the stream does not show.
  [[nodiscard]] bool waits() const { return waits_; }

  // From the thread, at the end of the event: the wait for the source that was asked for.
  void watch();

  // Whether a message has gone on in part, and how much of it has not come yet.
  [[nodiscard]] bool in_mid_message() const { return left_ > 0; }
  [[nodiscard]] std::uint64_t left_of_message() const { return left_; }
  // Whether the sink would take more: then it is the source's turn. That nothing is read, because
  // the source has asked for too much, is its own doing.
  [[nodiscard]] bool waits_for_source() const { return !writing_ && output_.empty(); }

  [[nodiscard]] const PumpOutput& output() const { return output_; }

 private:
  enum class Outcome : std::uint8_t { progress, drained, ended, failed };

  void run();
  void wait_readable();
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
  [[nodiscard]] bool begin_unseen();
  void begin_wait();
  void begin(const Step& step);
  void add_run(std::span<const std::byte> bytes);
  void forward_runs();
  void take_forwarded(std::uint64_t size);
  void set_left(std::uint64_t left);
  // Whether nothing is to be read until something else changes.
  [[nodiscard]] bool stands_still() const { return (paused_ || waits_) && !in_mid_message(); }

  PumpOwner& owner_;
  PumpThread& thread_;
  const Sender from_;
  net::Socket& source_;
  net::Socket& sink_;
  PumpOutput output_;

  std::vector<std::byte> carry_;    // the incomplete head of a message, or what waits
  std::vector<std::byte> carried_;  // its other buffer
  std::uint64_t left_ = 0;          // of the current message, still in the source
  bool discarding_ = false;         // that message goes nowhere
  std::optional<FinishedIo> finished_at_end_;

  std::size_t messages_ = 0;  // looked at in this event
  std::size_t receive_size_;
  std::size_t held_size_ = 0;  // of the last message, if that was held
  // The size of the request that the stream waited behind, if it did: the next one is usually this
  // large. Where that much is received, its data stay in the socket without a look before.
  std::size_t expected_ = 0;
  int large_messages_ = 0;  // peek so many times more before receiving as if all were small
  bool stopped_ = false;
  bool paused_ = false;
  bool waits_ = false;
  bool reading_ = false;  // a wait is in flight, or asked of the thread
  bool readable_ = true;  // such a wait has told, and nobody has looked since
  bool writing_ = false;  // a wait for the sink is in flight
  bool running_ = false;
  bool source_ended_ = false;
  int source_error_ = 0;  // errno of the outcome `failed`
};

}  // namespace vpfs::proxy
