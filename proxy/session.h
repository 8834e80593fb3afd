#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "base/flat_table.h"
#include "net/descriptor.h"
#include "proxy/client_identity.h"
#include "proxy/client_stall_watch.h"
#include "proxy/handover/rest_watch.h"
#include "proxy/pump/pump.h"
#include "proxy/pump/pump_owner.h"
#include "proxy/pump/pump_socket.h"
#include "proxy/recorded_source.h"
#include "proxy/watchdogs.h"
#include "proxy/worker.h"
#include "stage/held.h"

namespace vpfs::proxy {

// One client connection, the upstream connection that belongs to it, and the I/Os between them.
//
//   client ──to_server_──> parse ──hold()──> Worker ──> Dispatcher ──> release() ──> server
//   server ──to_client_──> parse ──finished()──> Worker ──> Dispatcher
//
// Belongs to its worker's thread, and ends with the event in which it is closed.
class Session final : public PumpOwner, public std::enable_shared_from_this<Session> {
 public:
  Session(Worker& worker, net::Descriptor client, net::Descriptor server,
          const net::Endpoint& client_endpoint);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void start();

  // A hand-over. pack(): the session stops moving anything, and says what a successor needs to go
  // on with its two connections; nothing: it is not at a boundary. unpack(): it goes on itself.
  [[nodiscard]] std::optional<SavedState> pack();
  void unpack();
  [[nodiscard]] bool packed() const { return packed_; }
  [[nodiscard]] std::size_t held_requests() const { return held_requests_; }
  [[nodiscard]] std::size_t held_bytes() const { return held_bytes_; }
  // Takes the place of start() and restore(): the session is as another one was that was at rest
  // when its process ended. It moves nothing until unpack().
  [[nodiscard]] Result<void> restore_kept(const SavedState& from);
  // The descriptors of client and server, borrowed.
  [[nodiscard]] std::array<int, 2> descriptors() const {
    return {client_.native_handle(), server_.native_handle()};
  }
  // Another process has the connections: it ends here without a word to either peer.
  void depart();
  // Takes the place of start(): the session is as another one was that was packed. It moves nothing
  // until unpack().
  [[nodiscard]] Result<void> restore(const SavedState& from);

  // Ends the session together with the current event. Idempotent; the first reason counts.
  void close(const std::string& reason);

  // From the pumps.
  [[nodiscard]] Step next(Sender from, std::span<const std::byte> bytes) override;
  void hold(std::span<const std::byte> message) override;
  void finished(const FinishedIo& io) override;
  void stepped(Sender from) override;
  void sink_moved(Sender from) override;
  void lost_framing(Sender from) override;
  void source_ended(Sender from, std::error_code error) override;
  void sink_failed(Sender from, std::error_code error) override;

  [[nodiscard]] const ClientIdentity& identity() const { return identity_; }

  // From the worker.
  void release(PendingIo& io);
  void refuse(PendingIo& io);
  void flush();
  void check_time(TimePoint now);
  // Returns all requests and closes the sockets. The last call after close().
  void give_everything_back();

 private:
  void take_on_settings();
  [[nodiscard]] bool at_boundary();
  [[nodiscard]] SavedState saved();
  void check_rest(TimePoint now);
  [[nodiscard]] Result<void> restore_held(const SavedState& from);
  // `since`: when it arrived; `again`: at a predecessor, which has counted it.
  void hold(std::span<const std::byte> message, TimePoint since, bool again);
  void refuse_excess(PendingIo& io);
  void join_client();
  void estimate(PendingIo& io, const IoDescription& description);
  void submit(PendingIo& io);
  void park(PendingIo& io, stage::SlowClient whose);
  void leave_turns(PendingIo& io);
  [[nodiscard]] bool may_submit(PendingIo& io);
  // Whether the request takes no slot, so that stalls of its client do not affect others.
  [[nodiscard]] bool needs_no_slot(const PendingIo& io) const;
  [[nodiscard]] PendingIo* parked_io(IoKey key);
  void submit_parked();
  void submit_all_parked();
  void note_wait(PendingIo& io, bool waits, TimePoint now);
  void no_longer_stuck(PendingIo& io);
  void leave_handle(PendingIo& io);
  [[nodiscard]] Duration stuck_after() const;
  [[nodiscard]] bool waits_for_handle(const PendingIo& io);
  [[nodiscard]] bool may_wait_in_queue(const PendingIo& io);
  void check_handles(TimePoint now);
  void check_behind_handles(TimePoint now);
  void submit_behind_handles(std::size_t most);
  void find_stuck(TimePoint now);
  void charge_for_queue(PendingIo& io, Duration patience, TimePoint now);
  void hold_back(TimePoint now);
  void spare_queued(std::vector<PendingIo*>& overdue, TimePoint now);
  void check_hang_up(TimePoint now);
  void check_answers(TimePoint now);
  void check_message(TimePoint now);
  void check_client_stall(TimePoint now);
  // Outstanding requests that wait for the client.
  struct Waiting {
    std::vector<PendingIo*> with_slots;
    std::vector<PendingIo*> late;  // without slots; they keep a thread of the server
    bool for_data = false;         // some wait for file data
    bool for_late_data = false;    // so does one that gave its slot up
  };
  [[nodiscard]] std::uint64_t data_arrived() const;
  [[nodiscard]] Waiting find_waiting(bool client_takes_nothing, TimePoint now);
  [[nodiscard]] bool others_wait(const Waiting& waiting, TimePoint now);
  // As Dispatcher::others_wait(). A process that has given its place away sees none of those that
  // wait at its successor, so there it is always so.
  [[nodiscard]] bool others_want_slots_of(const std::vector<PendingIo*>& ios, bool any_client,
                                          TimePoint now);
  void stall(const std::vector<PendingIo*>& waiting, TimePoint now);
  void park_all(TimePoint now);
  [[nodiscard]] std::vector<PendingIo*> take_back(std::vector<PendingIo*> ios, TimePoint now);
  void give_slots_up(const std::vector<PendingIo*>& waiting);
  void lose_slots_for_client(const std::vector<PendingIo*>& waiting);
  [[nodiscard]] ClientStallWatch::Limits stall_limits() const;
  void learn_size(const FinishedIo& finished);
  void check_server_stall(TimePoint now);
  [[nodiscard]] Duration silence_limit(IoKey key);
  void check_service_time(TimePoint now);
  [[nodiscard]] bool spare_slow_client(std::vector<PendingIo*>& overdue, TimePoint now);
  void give_up(const std::vector<PendingIo*>& overdue, Duration silence);
  void tell_silence(std::size_t requests, Duration silence) const;
  void check_drain();
  void learn_client_timeout();
  [[nodiscard]] bool client_went_unseen(const PendingIo& io);
  void forget(PendingIo& io);
  void no_longer_held(PendingIo& io);
  [[nodiscard]] bool holds_more_than(std::size_t times, std::size_t divisor) const;
  [[nodiscard]] bool holds_far_too_much();
  void send_refusal(IoKey key);
  void update_byte_counters();

  Worker& worker_;
  SharedState& shared_;
  PumpSocket client_;
  PumpSocket server_;
  ClientIdentity identity_;
  std::unique_ptr<Conversation> conversation_;
  Pump to_server_;
  Pump to_client_;

  FlatTable<PendingIo*> ios_;  // by key: held, outstanding, or given up
  std::size_t held_requests_ = 0;
  std::size_t held_bytes_ = 0;
  std::size_t outstanding_ = 0;
  std::uint64_t settings_number_ = 0;  // of the settings that the conversation knows
  bool timeout_known_ = false;
  HangUpWatch hang_up_;
  AnswerWatch answers_;
  MessageWatch message_;
  ClientStallWatch client_stall_;
  RecordedSource recorded_source_;
  RestWatch rest_;
  std::size_t on_their_way_ = 0;  // requests that were submitted on probation
  // Held requests, not submitted: parked_ go in that order, and behind_handles_ wait for slow
  // clients of their handles.
  std::vector<IoKey> parked_;
  std::vector<IoKey> behind_handles_;
  std::size_t stuck_ = 0;    // requests that SlowHandles counts
  std::uint64_t freed_ = 0;  // SlowHandles::freed() and held_back() at the last look
  std::uint64_t held_back_ = 0;
  TimePoint looked_at_ = {};     // the last look
  TimePoint looked_again_ = {};  // at behind_handles_
  // When the server's stream was last seen not to be read, and to be read.
  TimePoint unread_at_ = {};
  TimePoint read_at_ = {};
  std::size_t refused_ = 0;  // since the last check_time()
  bool refusing_ = false;    // no reading until the next check_time()
  bool overrun_told_ = false;
  bool flush_pending_ = false;
  bool closing_ = false;
  bool packed_ = false;
  bool departed_ = false;
  std::uint64_t client_moved_ = 0;  // bytes that it sent and took
  TimePoint client_moved_at_ = {};  // when that was last seen to grow
  std::uint64_t counted_to_server_ = 0;
  std::uint64_t counted_to_client_ = 0;
};

}  // namespace vpfs::proxy
