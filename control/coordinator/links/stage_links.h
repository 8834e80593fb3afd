#pragma once

#include <cstdint>
#include <deque>
#include <expected>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "base/clock.h"
#include "base/result.h"
#include "control/allocation/cycle_types.h"
#include "control/coordinator/config/config.h"
#include "control/coordinator/links/coming_back.h"
#include "control/coordinator/links/frame_link.h"
#include "control/coordinator/links/stage_requests.h"
#include "control/wire/framing.h"
#include "control/wire/protocol.h"
#include "control/wire/rights.h"
#include "net/listener.h"
#include "net/tls.h"
#include "net/unix_socket.h"

namespace vpfs::coordinator {

// The connections to stages: those that are dialled, and those that dial. It greets them, and
// rejects peers that are not stages. Belongs to one thread; it outlives the run of its io_context.
class StageLinks final : public StageRequests {
 public:
  // It decides about stages and hears of them. A stage has a number while it is
  // connected.
  class StageHandler {
   public:
    virtual ~StageHandler() = default;
    // A stage that may take part, or why it may not.
    [[nodiscard]] virtual std::expected<allocation::StageId, control::Error> admit(
        const StageHello& hello) = 0;
    // It can be sent to from now on.
    virtual void joined(allocation::StageId stage) = 0;
    virtual void left(allocation::StageId stage) = 0;
    virtual void announced(allocation::StageId stage, const control::Flows& flows) = 0;
    virtual void reported(allocation::StageId stage, const control::Report& report) = 0;
    // The stage does not take that cycle from this coordinator.
    virtual void refused_cycle(allocation::StageId stage, std::uint64_t sequence,
                               const control::Error& why) = 0;
  };

  struct Limits {
    std::size_t connections = 16'384;  // one more takes the place of the oldest without a Hello
    std::size_t frame = std::size_t{64} * 1024;  // before Hello
    std::size_t frame_of_stages = std::size_t{4} * 1024 * 1024;
    // While the answer to a question is due, or comes late.
    std::size_t frame_of_answers = control::kMostAnswer;
    Duration late_answer = std::chrono::minutes(1);  // after it was given up
    std::size_t unasked = 100;  // messages of a stage from one cycle to the next
    Duration hello = std::chrono::seconds(10);
    Duration connect = std::chrono::seconds(5);
    Duration least_pause = std::chrono::milliseconds(100);  // before a stage is dialled again
    Duration most_pause = std::chrono::seconds(2);
    bool plain_tcp = false;  // without TLS: for measurements
  };
  struct Counters {
    std::uint64_t accepted = 0;
    std::uint64_t refused = 0;  // no stage, no right, too many, ...
    std::uint64_t sent_bytes = 0;
    std::uint64_t received_bytes = 0;
  };

  // All outlive it. The error names the key of the configuration.
  [[nodiscard]] static Result<std::unique_ptr<StageLinks>> open(asio::io_context& context,
                                                                const Clock& clock,
                                                                const Config& config,
                                                                StageHandler& handler,
                                                                const Limits& limits);
  ~StageLinks() override;
  StageLinks(const StageLinks&) = delete;
  StageLinks& operator=(const StageLinks&) = delete;

  // From now on only stages that `why_not` has nothing against, by their names; those without one
  // in the configuration by their addresses. Others are not dialled, and are sent away with the
  // error. Null: all are served.
  enum class Comes : std::uint8_t { dialled, by_itself };
  using WhyNot = std::function<std::optional<control::Error>(const std::string& stage, Comes)>;
  void serve(WhyNot why_not);
  // Dials and accepts from now on.
  void start();
  // Closes everything. The handler hears nothing any more.
  void stop();

  // Sends a cycle, whose number is set here, unless the stage has left, or has joined as one of
  // `joins` or later (see joins()). Returns whether it did.
  bool send_cycle(allocation::StageId stage, control::Envelope& cycle, std::uint64_t joins);
  // It is to be sent a cycle soon: fetches what that takes.
  void prepare(allocation::StageId stage) const;
  // How many stages have joined so far.
  [[nodiscard]] std::uint64_t joins() const { return joins_; }
  // Asks something else. `done` is called once, in a later turn. REQUIRES (this and the following):
  // the handler was told that the stage has joined, and not that it has left.
  void ask(allocation::StageId stage, control::Envelope& request, Duration patience,
           Done done) override;
  // Whether answers to cycles are on their way.
  void expect_answers(bool expects) { set_->expect(expects); }
  // Hands over what has come meanwhile.
  void serve_now() { set_->serve_now(); }
  // Ends the connection if send_cycle() would send; the handler hears of it in a later turn.
  void disconnect(allocation::StageId stage, std::uint64_t joins, const char* why);
  // The same for all that are meant.
  void disconnect_if(const std::function<bool(const StageHello&)>& is_meant,
                     const std::string& why);
  [[nodiscard]] const StageHello& hello(allocation::StageId stage) const override;
  // On this connection.
  [[nodiscard]] bool was_sent_cycle(allocation::StageId stage);

  // For other links of the same thread.
  [[nodiscard]] LinkRoom& room() { return *room_; }
  [[nodiscard]] const Counters& counters() const { return counters_; }
  [[nodiscard]] std::vector<AbsentStage> absent() const override;
  [[nodiscard]] std::vector<std::string> just_left() const override { return coming_back_.names(); }
  void wait_for(const std::string& name, Back back) override;
  [[nodiscard]] std::optional<net::Endpoint> tcp_endpoint() const;

 private:
  struct Dialled;
  struct Peer;
  struct Asked {
    std::uint64_t number = 0;
    TimePoint due;
    Done done;                 // null: it was given up
    bool may_be_long = false;  // the answer
  };

  StageLinks(asio::io_context& context, const Clock& clock, const Config& config,
             StageHandler& handler, const Limits& limits);
  [[nodiscard]] Result<void> listen(const control::PortConfig& config);

  void accept_unix(net::UnixSocket socket);
  void accept_tcp(net::Socket socket);
  // Whether there is a place for one more connection.
  [[nodiscard]] bool make_place();
  Peer& add(std::unique_ptr<net::ReadyStream> stream);
  void dial(Dialled& stage);
  void serve(Dialled& stage, bool is_served);
  [[nodiscard]] net::Task<> connect(Dialled& stage);
  void dial_later(Dialled& stage, const std::string& problem);

  void opened(Peer& peer);
  void received(Peer& peer, std::span<const std::byte> frame);
  void ended(Peer& peer, const std::string& why);
  // The same, by the other side or a fault: it may come back.
  void lost(Peer& peer, const std::string& why);
  void end_waits(std::vector<Back> waiting);

  void greet(Peer& peer, const control::Envelope& envelope);
  void admit(Peer& peer, const control::Hello& hello, std::uint64_t number);
  void handle(Peer& peer, const control::Envelope& envelope);
  // Leaves a stage alone that has taken cycles of a later term.
  void look_who_leads(Peer& peer, const control::Error& refused);
  // Tells an accepted peer why, and ends the connection.
  void refuse(Peer& peer, std::uint64_t number, const control::Error& why);
  // The same for a stage of another coordinator. It leaves no line in the log.
  void send_away(Peer& peer, std::uint64_t number, const control::Error& why);
  void tell(Peer& peer, std::uint64_t number, const control::Error& why);
  void drop(Peer& peer, const std::string& why);
  void drop_later(const Peer& peer, std::string why);
  // Null: it has left, or it has joined as one of `joins` or later.
  [[nodiscard]] Peer* of_before(allocation::StageId stage, std::uint64_t joins) const;
  void send(Peer& peer, const control::Envelope& envelope);
  void fail_asked(std::vector<Asked> asked, const std::string& why);
  void complain(const std::string& text);
  void sweep();
  void give_up_due(Peer& peer, TimePoint now);
  // Sets how long the frames of a stage that has joined may be.
  void bound_frames(Peer& peer, TimePoint now);
  [[nodiscard]] Peer& peer(allocation::StageId stage);

  asio::io_context& context_;
  const Clock& clock_;
  const Config& config_;
  StageHandler& handler_;
  const Limits limits_;
  Counters counters_;
  std::unique_ptr<LinkRoom> room_;
  std::unique_ptr<net::ReadySet> set_;
  control::Access access_;
  std::shared_ptr<net::TlsContext> accepting_;
  std::shared_ptr<net::TlsContext> dialling_;
  std::optional<net::UnixListener> unix_listener_;
  std::optional<net::Listener> tcp_listener_;
  std::deque<Dialled> dialled_;
  std::unordered_map<const Peer*, std::unique_ptr<Peer>> peers_;
  std::list<Peer*> unjoined_;        // the oldest first
  std::unordered_set<Peer*> asked_;  // peers that owe an answer
  std::vector<Peer*> by_stage_;
  std::vector<std::unique_ptr<Peer>> gone_;  // freed in a later turn
  ComingBack coming_back_;
  control::MessageMemory memory_;
  std::string out_;
  std::uint64_t joins_ = 0;
  WhyNot why_not_;
  bool is_started_ = false;
  asio::steady_timer sweep_timer_;
  std::optional<TimePoint> complained_at_;
  std::uint64_t not_complained_ = 0;
  bool is_stopped_ = false;
};

}  // namespace vpfs::coordinator
