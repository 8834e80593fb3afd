#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "net/async.h"
#include "net/splice_pipe.h"
#include "protocols/protocol.h"

namespace vpfs::proxy {

class Session;
class Worker;

// One direction of a session: moves messages from the source socket to the sink socket as the
// conversation decides, and puts other messages (released requests, refusals) between them.
//
// Small messages are received many at a time into the worker's scratch buffer and sent from there.
// Where messages are large, the head of the stream is only peeked at, and whole messages go from
// socket to socket by splice(2). Memory that outlives an event is what the sink did not take: then
// reading stops until it is gone, so it is at most one scratch buffer.
//
// A stream whose next message is not to be looked at yet waits until go_on(): what has been
// received of it stays here, the rest in the socket.
//
// Belongs to the session's worker thread; the session keeps it alive while a wait is in flight.
class Pump {
 public:
  Pump(Session& session, Worker& worker, Sender from, net::Socket& source, net::Socket& sink);

  // Moves what can be moved now and waits for more. Called once the sockets are connected.
  void start() { run(); }

  // Sends `message` to the sink before the next message of the source. Nothing is written before
  // flush(), so several go out together. A stream that waits asks again at flush() for its turn.
  void inject(std::span<const std::byte> message);
  // As inject(), for a message that stays where it is until flush().
  void inject_borrowed(std::span<const std::byte> message) { borrowed_.push_back(message); }
  void flush();

  // While paused no new message is read; the one that is half through goes on.
  void pause() { paused_ = true; }
  void resume();
  [[nodiscard]] bool paused() const { return paused_; }
  // Whether the source's next message waits for its turn. Nothing is read meanwhile, so the end of
  // the stream does not show.
  [[nodiscard]] bool waits() const { return waits_; }

  // From the worker, at the end of the event: the wait for the source that was asked for.
  void watch();

  // Whether a message has gone on in part, and how much of it has not come yet.
  [[nodiscard]] bool in_mid_message() const { return !at_boundary(); }
  [[nodiscard]] std::uint64_t left_of_message() const { return forward_left_; }
  // Whether the sink would take more: then it is the source's turn. That nothing is read, because
  // the source has asked for too much, is its own doing.
  [[nodiscard]] bool waits_for_source() const { return !writing_ && !has_output(); }

  // Since when the sink has taken nothing although something is there for it.
  [[nodiscard]] std::optional<TimePoint> blocked_since() const { return blocked_since_; }
  // Since when an injected message has been waiting for the end of the source's message.
  [[nodiscard]] std::optional<TimePoint> waiting_since() const {
    return waiting_.empty() ? std::nullopt : std::optional(waiting_since_);
  }
  // Whether something is here that the sink has not taken.
  [[nodiscard]] bool has_output() const;
  // Bytes of it in the process's memory.
  [[nodiscard]] std::size_t unsent() const;
  [[nodiscard]] std::uint64_t bytes_moved() const { return bytes_moved_; }

 private:
  enum class Outcome { progress, drained, ended, failed };

  void run();
  [[nodiscard]] bool write_output();
  [[nodiscard]] Outcome read_source();
  [[nodiscard]] Outcome receive();
  [[nodiscard]] Outcome receive(std::size_t wanted);
  [[nodiscard]] Outcome peek();
  [[nodiscard]] Outcome splice();
  [[nodiscard]] Outcome discard();
  void drop(std::size_t size);
  void take_carry();
  [[nodiscard]] bool begin_unseen();
  void begin_wait();
  void begin(const Step& step);

  [[nodiscard]] bool parse(std::span<const std::byte> bytes, std::size_t& consumed);
  void add_run(std::size_t offset, std::size_t size);
  void take_forwarded(std::uint64_t size);
  void send_runs(std::span<const std::byte> bytes);
  void send_borrowed();
  [[nodiscard]] bool send_parts(std::span<const std::span<const std::byte>> parts, int flags = 0);
  void append_output(std::span<const std::byte> bytes);
  void append_waiting();

  [[nodiscard]] bool at_boundary() const { return forward_left_ == 0; }
  // Whether nothing is to be read until something else changes.
  [[nodiscard]] bool stands_still() const { return (paused_ || waits_) && at_boundary(); }
  void wait_readable();
  void wait_writable();
  void note_progress(std::size_t size);
  [[nodiscard]] Outcome outcome_of_error();

  Session& session_;
  Worker& worker_;
  const Sender from_;
  net::Socket& source_;
  net::Socket& sink_;

  std::vector<std::byte> carry_;    // the incomplete head of a message, or what waits
  std::vector<std::byte> carried_;  // its other buffer
  std::uint64_t forward_left_ = 0;  // of the current message, still in the source
  bool discarding_ = false;         // that message goes nowhere
  std::optional<FinishedIo> finished_at_end_;
  std::vector<std::byte> output_;  // for the sink
  std::size_t output_done_ = 0;
  std::unique_ptr<net::SplicePipe> pipe_;  // held only while it has bytes; they follow output_
  std::vector<std::span<const std::byte>> borrowed_;  // injected in this event
  std::vector<std::byte> waiting_;                    // injected while a message was half through
  TimePoint waiting_since_ = {};                      // the first of it

  std::size_t messages_ = 0;  // looked at in this event
  std::size_t receive_size_;
  std::size_t held_size_ = 0;  // of the last message, if that was held
  // The size of the request that the stream waited behind, if it did: so large is the next one,
  // mostly. Where that much is received, its data stay in the socket without a look before.
  std::size_t expected_ = 0;
  int large_messages_ = 0;  // peek so many times more before receiving as if all were small
  bool paused_ = false;
  bool waits_ = false;
  bool reading_ = false;  // a wait is in flight, or asked of the worker
  bool readable_ = true;  // such a wait has told, and nobody has looked since
  bool writing_ = false;
  bool running_ = false;
  bool source_ended_ = false;
  int source_error_ = 0;  // errno of the outcome `failed`
  std::optional<TimePoint> blocked_since_;
  std::uint64_t bytes_moved_ = 0;
};

}  // namespace vpfs::proxy
