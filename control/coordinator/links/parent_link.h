#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "base/clock.h"
#include "base/result.h"
#include "control/allocation/cycle_state.h"
#include "control/allocation/uplink.h"
#include "control/coordinator/config/config.h"
#include "control/coordinator/links/cycle_runner.h"
#include "control/coordinator/links/dial_stream.h"
#include "control/coordinator/links/frame_link.h"
#include "control/wire/framing.h"
#include "control/wire/host_lookup.h"
#include "control/wire/leader/address_round.h"
#include "net/tls.h"

namespace vpfs::coordinator {

struct ParentLimits {
  Duration connect = std::chrono::seconds(5);  // to its only address
  // To each of several, and until it has said Hello. The latter time doubles up to that above while
  // one accepts connections and is silent: it may be busy with the Hellos of many.
  Duration connect_each = std::chrono::seconds(1);
  // Before it is dialled again when all addresses have failed.
  Duration least_pause = std::chrono::milliseconds(100);
  Duration most_pause = std::chrono::seconds(2);
  // A parent that is told has so long until its absence is a problem.
  Duration settle = std::chrono::seconds(1);
  // A parent without a lease says something at least as often.
  Duration silence = std::chrono::seconds(10);
};

// An aggregator's connection to its parent: the messages and the dialling of allocation::Uplink,
// which has their sense. While the parent leads, its cycles are the only ones. Belongs to one
// thread; it outlives the run of its io_context.
//
// One of several addresses leads. After a failure the next one is dialled at once. A member is told
// the address of its parent, again and again.
class ParentLink final : private FrameLink::FrameHandler {
 public:
  using Done = std::function<void(control::Envelope answer)>;
  class ParentHandler {
   public:
    virtual ~ParentHandler() = default;
    // What the aggregator says of itself; nothing: it cannot yet.
    [[nodiscard]] virtual std::optional<control::Hello> hello() const = 0;
    // The parent leads from now on, or does so no more.
    virtual void led(bool is_led) = 0;
    // What its stages call their costs, if the parent has to know.
    [[nodiscard]] virtual std::string cost_model_to_tell() const { return ""; }
    // What else the parent asks, such as Site or Forward.
    virtual void ask(const control::Envelope& request, Done done) = 0;
  };
  struct Status {
    bool is_connected = false;
    bool is_led = false;
    std::string address;  // that is connected, or was dialled last
    std::vector<std::string> addresses = {};
    std::string problem;  // why it is not connected
    std::uint64_t term = 0;
    std::uint64_t sequence = 0;
  };

  // All outlive it. The error names the key of the configuration.
  [[nodiscard]] static Result<std::unique_ptr<ParentLink>> make(
      asio::io_context& context, const Clock& clock, const Config& config, LinkRoom& room,
      allocation::Uplink& uplink, CycleRunner& runner, ParentHandler& handler,
      const ParentLimits& limits = ParentLimits());
  ~ParentLink() override;

  // Dials once the handler can say Hello.
  void start();
  // The parent is at these addresses from now on. Another one is dialled at once.
  void follow(std::vector<control::PortAddress> addresses);
  void stop();
  // A round that the uplink did not begin is over.
  void round_is_over() { run_waiting(); }
  [[nodiscard]] bool is_led() const { return is_led_; }
  [[nodiscard]] bool is_connected() const { return connection_state_ == State::connected; }
  [[nodiscard]] Status status() const;
  // The term of the last cycle that was applied; zero: there was none.
  [[nodiscard]] std::uint64_t term() const { return term_; }

 private:
  enum class State : std::uint8_t { away, greeting, connected };

  ParentLink(asio::io_context& context, const Clock& clock, const Config& config, LinkRoom& room,
             allocation::Uplink& uplink, CycleRunner& runner, ParentHandler& handler,
             const ParentLimits& limits);

  void dial();
  [[nodiscard]] net::Task<> connect(control::Hello hello);
  void drop_link();
  [[nodiscard]] net::Task<DialledStream> open_stream(control::PortAddress address);
  // Dials the next address, after a pause if all have failed.
  void go_on(const std::string& why);
  void note_problem(const std::string& problem);
  void dial_after_pause();
  void dial_after(Duration pause);
  void opened(FrameLink& link) override;
  void received(FrameLink& link, std::span<const std::byte> frame) override;
  void ended(FrameLink& link, const std::string& why) override;
  void lose(const std::string& why);

  void greeted(const control::Envelope& envelope);
  void handle(const control::Envelope& envelope);
  // A cycle of the parent, without what it grants.
  struct Taken {
    std::uint64_t number = 0;  // of the message
    std::uint64_t connection = 0;
    std::uint64_t term = 0;
    std::uint64_t sequence = 0;
    Duration lease = {};
    bool complete = false;
    bool want_report = false;
  };
  void take_cycle(const control::Cycle& cycle, std::uint64_t number);
  void run_waiting();
  void answer(const Taken& cycle);
  void refuse(const Taken& cycle, control::Error why);
  [[nodiscard]] control::Report& begin_report(const Taken& cycle);
  void send(control::Envelope& envelope, std::uint64_t number);
  void look_whether_led();
  void watch_silence();

  asio::io_context& context_;
  const Clock& clock_;
  const Config& config_;
  LinkRoom& room_;
  allocation::Uplink& uplink_;
  CycleRunner& runner_;
  ParentHandler& handler_;
  const ParentLimits limits_;
  control::AddressRound round_;
  std::uint64_t follows_ = 0;  // so often another parent was to be followed
  std::optional<TimePoint> followed_at_;
  control::HostLookups lookups_;
  std::shared_ptr<net::TlsContext> tls_;
  State connection_state_ = State::away;
  std::unique_ptr<FrameLink> link_;
  std::vector<std::unique_ptr<FrameLink>> gone_;  // freed in a later turn
  control::Hello hello_;
  asio::steady_timer dial_timer_;
  asio::steady_timer lease_timer_;
  asio::steady_timer silence_timer_;
  Duration pause_;
  Duration hello_within_;
  std::string address_;  // that was dialled last
  std::string problem_ = "was not dialled yet";
  control::MessageMemory memory_;
  control::Envelope out_;
  control::Envelope flows_;
  std::string frames_;
  std::uint64_t connections_ = 0;              // so far
  std::optional<Taken> waiting_;               // the parent's cycle, while another one runs
  std::vector<allocation::FlowGrant> grants_;  // of that
  std::uint64_t term_ = 0;                     // of the last cycle
  std::uint64_t sequence_ = 0;
  TimePoint heard_at_;      // something of the parent
  TimePoint connected_at_;  // the last connection
  bool is_led_ = false;
  bool is_stopped_ = false;
};

}  // namespace vpfs::coordinator
