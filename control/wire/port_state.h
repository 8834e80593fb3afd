#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "base/clock.h"
#include "control/wire/audit.h"
#include "control/wire/dialler.h"
#include "control/wire/mailbox.h"
#include "control/wire/port_connection.h"
#include "control/wire/port_limits.h"
#include "net/inherited.h"
#include "net/listener.h"
#include "net/tls.h"
#include "net/unix_socket.h"

namespace vpfs::control {

// What the thread of a port works on: the listeners and connections. All of it belongs to that
// thread, but open() and what says otherwise.
class PortState {
 public:
  // What a reload changes.
  struct Settings {
    Access access;
    std::shared_ptr<net::TlsContext> tls;  // null without TCP
    std::optional<Dialler::Target> coordinator;
  };
  [[nodiscard]] static Result<Settings> load(const PortConfig& config, const Accounts& accounts);

  PortState(Owner& owner, const Clock& clock, const PortLimits& limits, Versions versions);
  ~PortState();
  PortState(const PortState&) = delete;
  PortState& operator=(const PortState&) = delete;

  // Before run().
  [[nodiscard]] Result<void> open(const PortConfig& config, Settings settings,
                                  net::Inherited* inherited);
  [[nodiscard]] std::optional<net::Endpoint> tcp_endpoint() const;

  // Serves until stop().
  void run();
  // Sends what is ready, closes everything.
  void stop();
  // The listeners are another process's, and requests are refused: that one answers them.
  // stop() follows soon.
  void leave();
  // See Port.
  [[nodiscard]] std::vector<std::pair<std::string, int>> descriptors() const;
  void apply(Settings settings);
  // Any thread.
  [[nodiscard]] std::optional<DialledCoordinator> coordinator() const { return dialler_.status(); }

  // --- For connections.
  [[nodiscard]] asio::io_context& context() { return context_; }
  [[nodiscard]] Owner& owner() { return owner_; }
  [[nodiscard]] TimePoint now() const { return clock_.now(); }
  [[nodiscard]] const PortLimits& limits() const { return limits_; }
  [[nodiscard]] Versions versions() const { return versions_; }
  [[nodiscard]] const Access& access() const { return settings_.access; }
  [[nodiscard]] PortCounters& counters() { return counters_; }
  [[nodiscard]] Audit& audit() { return *audit_; }  // any thread
  void ask(const PortConnection& connection, std::uint64_t ticket, Envelope request,
           const Caller& caller);
  [[nodiscard]] bool admits_another(const std::string& peer, TimePoint now);
  void record(const Envelope& request, const Caller& caller, std::string_view result, bool refused);
  void remove(std::uint64_t connection);
  [[nodiscard]] std::uint64_t next_number() { return ++last_connection_; }
  // Replaces `before` bytes of unread answers by `after`; false if all connections have too many.
  [[nodiscard]] bool count_answers(std::size_t before, std::size_t after);
  // The user's name; looked up on another thread, since a name service may take its time. Nothing
  // if it takes too long: a later connection finds the name.
  [[nodiscard]] net::Task<std::optional<std::string>> name_of(std::uint32_t uid);
  // Logs what peers do wrong: of each kind the first, then at most one in ten seconds with the
  // number of those in between.
  enum class Complaint : std::uint8_t { handshake, broken, slow, refused, kinds };
  void complain(Complaint kind, const std::string& text);

 private:
  struct Peer {
    std::size_t connections = 0;
    std::size_t unanswered = 0;
    double tokens = 0;  // requests that it may send
    TimePoint filled_at;
  };
  struct Complaints {
    std::uint64_t unlogged = 0;
    std::optional<TimePoint> logged_at;
  };
  // Shared with threads that look names up and may hang for long.
  struct NameService {
    std::mutex mutex;           // guards what follows
    PortState* port = nullptr;  // null: the owner has gone
  };
  using Waiter = std::shared_ptr<asio::steady_timer>;
  struct UserName {
    std::optional<std::string> name;
    TimePoint found_at;
  };

  void accept_unix(net::UnixSocket socket);
  void accept_tcp(net::Socket socket);
  void add(std::string peer, Identity identity, std::unique_ptr<net::Channel> channel);
  [[nodiscard]] bool make_room(const std::string& peer, bool is_any_user);
  [[nodiscard]] bool evict_silent(const std::function<bool(const PortConnection&)>& may_go);
  void deliver();
  void sweep();
  [[nodiscard]] bool all_closed() const;
  [[nodiscard]] std::shared_ptr<PortConnection> connection(std::uint64_t number) const;
  [[nodiscard]] Peer& peer(const std::string& name);
  [[nodiscard]] bool look_up(std::uint32_t uid);
  void name_found(std::uint32_t uid, std::optional<std::string> name);

  Owner& owner_;
  const Clock& clock_;
  const PortLimits limits_;
  const Versions versions_;
  PortCounters counters_;
  const std::shared_ptr<Audit> audit_;  // shared with answers under way
  Settings settings_;

  asio::io_context context_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  asio::steady_timer sweep_timer_;
  asio::steady_timer stop_timer_;
  const std::shared_ptr<Mailbox> mailbox_;  // likewise
  std::optional<net::UnixListener> unix_listener_;
  std::optional<net::Listener> tcp_listener_;
  std::map<std::uint64_t, std::shared_ptr<PortConnection>> connections_;  // shared with their tasks
  std::unordered_map<std::string, Peer> peers_;
  std::unordered_map<std::uint32_t, UserName> users_;
  std::array<Complaints, static_cast<std::size_t>(Complaint::kinds)> complaints_;
  Dialler dialler_;
  std::uint64_t last_connection_ = 0;
  std::size_t unread_answers_ = 0;
  bool has_left_ = false;
  bool stopping_ = false;
  const std::shared_ptr<NameService> names_;
  std::unordered_map<std::uint32_t, std::vector<Waiter>> lookups_;  // under way, by uid
};

}  // namespace vpfs::control
