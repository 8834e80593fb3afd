#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "control/wire/framing.h"
#include "control/wire/owner.h"
#include "control/wire/port_limits.h"
#include "control/wire/protocol.h"

namespace vpfs::control {

// What a conversation needs of its port.
class ConversationHost {
 public:
  virtual ~ConversationHost() = default;
  [[nodiscard]] virtual Owner& owner() = 0;
  // Gives the request to the owner; its answer comes back through Conversation::answered() with the
  // same ticket, in a later turn.
  virtual void ask(std::uint64_t ticket, Envelope request, const Caller& caller) = 0;
  // Whether a peer that sees only own jobs may ask something more now.
  [[nodiscard]] virtual bool admits_another(TimePoint now) = 0;
  // For the audit log: a request that does not get as far as ask().
  virtual void record(const Envelope& request, const Caller& caller, std::string_view result,
                      bool refused) = 0;
};

// What one peer and the port say to each other: all of a connection but its I/O and time-outs.
class Conversation {
 public:
  Conversation(ConversationHost& host, Caller caller, Versions versions, const PortLimits& limits,
               PortCounters& counters);

  [[nodiscard]] const Caller& caller() const { return caller_; }
  // After a reload. Ends nothing that is under way, except watches for other users that it may not
  // have any more.
  void set_caller(Caller caller);

  // Begins a conversation with a coordinator that this side has connected to: says Hello. Once the
  // coordinator has answered with its own, it is served as any peer.
  void greet_coordinator();
  // What the coordinator said of itself. REQUIRES: greet_coordinator(), and greeted().
  [[nodiscard]] const Hello& coordinator() const { return coordinator_; }
  // Why it is over although the framing is not broken: a refusal of the coordinator, or what is not
  // a coordinator.
  [[nodiscard]] const std::string& why_refused() const { return refusal_; }
  // Addresses of the coordinator that serves this stage, as the one that refuses it says.
  [[nodiscard]] const std::vector<std::string>& instead() const { return instead_; }

  // Where to read to, and that so much was read.
  [[nodiscard]] std::span<std::byte> room() { return reader_.room(); }
  void received(std::size_t size) { reader_.received(size); }
  // Handles some of the frames that have arrived. Whether there are more that it may handle: other
  // connections go first.
  [[nodiscard]] bool handle(TimePoint now);
  // Whether it takes more bytes: it has room for requests and for answers.
  [[nodiscard]] bool wants_input() const;

  void answered(std::uint64_t ticket, Envelope answer);
  // Asks for what watches are due.
  void run_watches(TimePoint now);
  [[nodiscard]] std::optional<TimePoint> next_watch() const;
  void end_watches() { watches_.clear(); }

  // What is to be sent. The connection takes it, and says how much the peer has not read yet.
  [[nodiscard]] std::string& output() { return output_; }
  void set_unsent(std::size_t bytes) { unsent_ = bytes; }
  // Whether there was an answer although the peer had left more unread than it may.
  [[nodiscard]] bool too_slow() const { return too_slow_; }

  [[nodiscard]] bool greeted() const { return greeted_; }
  // The last of the output is a refusal; send it and close.
  [[nodiscard]] bool ended() const { return ended_; }
  // Says why, unless it has ended already.
  void end(std::uint64_t id, Error why);
  // Why it ended, if the peer broke the framing: for the log.
  [[nodiscard]] const std::string& broken() const { return broken_; }
  // Requests that the owner has not answered, or watches.
  [[nodiscard]] bool busy() const { return !pending_.empty() || !watches_.empty(); }
  // Bytes for the next request.
  [[nodiscard]] std::size_t memory_kept() const { return memory_.kept(); }
  // The peer is a coordinator that has sent cycles.
  [[nodiscard]] bool has_cycles() const { return link_ != nullptr; }
  [[nodiscard]] std::size_t requests_in_flight() const { return pending_.size(); }

 private:
  struct Pending {
    std::uint64_t ticket = 0;
    std::uint64_t id = 0;     // of the request
    std::uint64_t watch = 0;  // 0: none
  };
  struct Watching {
    std::uint64_t number = 0;
    std::uint64_t id = 0;
    bool rules = false;
    std::optional<std::uint32_t> as_uid;
    Duration period = {};
    TimePoint due;
    bool asked = false;
  };

  void handle_frame(std::span<const std::byte> frame, TimePoint now);
  void handle_hello();
  // Takes the answer of a coordinator that this side has connected to. Returns whether the frame is
  // done with.
  [[nodiscard]] bool handle_answer();
  void take_greeting();
  void part(std::string refusal, Error::Code code, std::string text);
  void handle_request(TimePoint now);
  void handle_cycle();
  void start_watch(TimePoint now);
  void end_watches_of_others();
  [[nodiscard]] Error not_for_others() const;
  // The caller in whose name a request is answered.
  [[nodiscard]] Caller caller_of(const std::optional<std::uint32_t>& as_uid) const;
  // Why not.
  [[nodiscard]] std::optional<Error> may_ask(const Envelope& request, const Caller& caller);
  void ask(Envelope request, const Caller& caller, std::uint64_t id, std::uint64_t watch);
  void send(Envelope& answer, std::uint64_t id);
  void send_error(std::uint64_t id, Error error);
  void break_off(std::string why);
  [[nodiscard]] bool may_handle() const;

  ConversationHost& host_;
  Caller caller_;
  const Versions versions_;
  const PortLimits& limits_;
  PortCounters& counters_;

  FrameReader reader_;
  MessageMemory memory_;
  Envelope* request_ = nullptr;  // of the frame that is handled, in memory_
  std::string output_;
  std::size_t unsent_ = 0;
  std::vector<Pending> pending_;
  std::vector<Watching> watches_;
  std::uint64_t last_ticket_ = 0;
  std::uint64_t last_watch_ = 0;
  std::unique_ptr<Link> link_;  // made by the first cycle
  CycleAnswer cycle_answer_;
  Envelope flows_;  // likewise kept
  Envelope report_;
  bool greeted_ = false;
  bool to_coordinator_ = false;
  bool ended_ = false;
  bool too_slow_ = false;
  std::string broken_;
  std::string refusal_;
  std::vector<std::string> instead_;
  Hello coordinator_;
};

}  // namespace vpfs::control
