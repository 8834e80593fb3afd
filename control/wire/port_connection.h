#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <asio/steady_timer.hpp>

#include "control/wire/conversation.h"
#include "net/channel.h"
#include "net/signal.h"

namespace vpfs::control {

class PortState;

// One connection of a port: reads, writes and ends. Belongs to the port's thread.
class PortConnection final : public ConversationHost,
                             public std::enable_shared_from_this<PortConnection> {
 public:
  // `peer` is the uid or the address that bounds are counted for.
  PortConnection(PortState& port, std::uint64_t number, std::string peer, Identity identity,
                 std::unique_ptr<net::Channel> channel);
  ~PortConnection() override;

  // A connection that this side has made to a coordinator, which may change everything. `greeted`
  // is called once they have said Hello.
  PortConnection(PortState& port, std::uint64_t number, Caller coordinator,
                 std::shared_ptr<net::Channel> channel, std::function<void()> greeted);

  // From the handshake until the connection is closed and nothing of it is under way.
  [[nodiscard]] static net::Task<> serve(std::shared_ptr<PortConnection> self);

  // Ends serve() soon. Idempotent.
  void close();
  // The same after what is to be sent was sent.
  void close_when_sent();
  // The same, if its peer sends cycles: they are for another process from now on.
  void close_if_coordinator();
  // Closes it, and says why if nothing else has.
  void close_because(std::string why);
  // Why a connection to a coordinator has ended.
  [[nodiscard]] const std::string& why_ended() const { return why_ended_; }
  // Addresses of the coordinator that serves this stage, if the one that was dialled named it.
  [[nodiscard]] std::vector<std::string> instead() const {
    return conversation_ ? conversation_->instead() : std::vector<std::string>();
  }
  // What the coordinator said of itself. REQUIRES: greeted().
  [[nodiscard]] const Hello& coordinator() const { return conversation_->coordinator(); }

  void answered(std::uint64_t ticket, Envelope answer);
  // Closes what has been silent, idle or stuck for too long.
  void check(TimePoint now);
  // The rights of its peer may be other ones.
  void access_changed();

  [[nodiscard]] Rights rights() const { return conversation_->caller().rights; }
  [[nodiscard]] bool closed() const { return closed_; }
  [[nodiscard]] bool greeted() const { return conversation_ && conversation_->greeted(); }
  [[nodiscard]] const std::string& peer() const { return peer_; }
  // See vpfs::control::is_any_user().
  [[nodiscard]] bool is_any_user() const { return is_any_user_; }
  [[nodiscard]] std::uint64_t number() const { return number_; }

  [[nodiscard]] Owner& owner() override;
  void ask(std::uint64_t ticket, Envelope request, const Caller& caller) override;
  [[nodiscard]] bool admits_another(TimePoint now) override;
  void record(const Envelope& request, const Caller& caller, std::string_view result,
              bool refused) override;

 private:
  [[nodiscard]] net::Task<> run();
  [[nodiscard]] net::Task<bool> begin();
  [[nodiscard]] net::Task<> converse();
  [[nodiscard]] net::Task<> part();
  [[nodiscard]] static net::Task<> write_rest(std::shared_ptr<PortConnection> self);
  void flush();
  void set_watch_timer();
  void close_slow();
  void account();
  void check_coordinator(TimePoint now);
  [[nodiscard]] bool is_to_coordinator() const { return coordinator_.has_value(); }
  [[nodiscard]] Caller make_caller() const;

  PortState& port_;
  const std::uint64_t number_;
  const std::string peer_;
  Identity identity_;
  bool is_any_user_ = false;
  std::optional<std::string> user_;          // name of the identity's uid
  const std::optional<Caller> coordinator_;  // that this side has connected to
  const std::shared_ptr<net::Channel> channel_;
  std::optional<Conversation> conversation_;  // after the handshake

  net::Signal changed_;  // closed, written, or answered
  asio::steady_timer watch_timer_;
  std::string sending_;
  std::size_t sent_ = 0;
  std::size_t accounted_ = 0;  // of the bound for the answers of all connections
  bool writing_ = false;
  bool closed_ = false;
  bool closes_when_sent_ = false;
  TimePoint made_at_;
  TimePoint heard_at_;     // when a message last came or went
  TimePoint read_at_;      // when something last came
  TimePoint progress_at_;  // when the peer last took something
  std::optional<TimePoint> parts_by_;
  std::string why_ended_;
  std::function<void()> tell_greeted_;  // null: told, or not wanted
};

}  // namespace vpfs::control
