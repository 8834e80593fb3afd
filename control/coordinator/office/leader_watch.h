#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "control/store/leadership.h"
#include "control/wire/client_session.h"
#include "control/wire/host_lookup.h"
#include "control/wire/port_address.h"
#include "net/async.h"
#include "net/tls.h"

namespace vpfs::coordinator {

// A standby's connection to the leader's control port. When it ends, the port is tried again: if
// the leader's host says that no process listens there, or if another process has its UNIX socket,
// the leader is gone. A host that does not answer proves nothing, and neither does another process
// at a TCP address, which may be one of several hosts. Belongs to one thread; it outlives the run
// of its io_context.
class LeaderWatch {
 public:
  // That the leader of a term is gone, or has answered.
  using Tell = std::function<void(std::uint64_t term, bool is_gone)>;

  // `tls`: for leaders on TCP; null: those are not watched.
  LeaderWatch(asio::io_context& context, std::shared_ptr<net::TlsContext> tls, Tell tell);
  LeaderWatch(const LeaderWatch&) = delete;
  LeaderWatch& operator=(const LeaderWatch&) = delete;

  // From now on this one; null, or one without an address: none.
  void watch(const control::Leadership* leader);
  // Tells nothing more.
  void stop();

 private:
  struct Watched {
    std::uint64_t term = 0;
    std::uint64_t incarnation = 0;
    control::PortAddress address;
  };

  [[nodiscard]] net::Task<> run();
  // Until the connection ends, if there is one. Returns whether the leader is gone.
  [[nodiscard]] net::Task<bool> hold(Watched leader);
  [[nodiscard]] net::Task<bool> hold(Watched leader, std::vector<net::Endpoint> endpoints);
  void tell_why_not(const Watched& leader, const control::Failure& why);
  [[nodiscard]] bool still_watches(const Watched& leader) const {
    return leader_ && leader_->term == leader.term;
  }

  asio::io_context& context_;
  const std::shared_ptr<net::TlsContext> tls_;
  const Tell tell_;
  std::optional<Watched> leader_;
  std::uint64_t tried_ = 0;  // the term of the last leader that was
  Duration pause_ = {};      // before it is tried again
  std::uint64_t told_ = 0;   // the term of the last one whose absence is in the log
  control::HostLookups lookups_;
  std::unique_ptr<control::ClientSession> session_;
  asio::steady_timer wake_;
  bool is_running_ = false;
  bool is_stopped_ = false;
};

}  // namespace vpfs::coordinator
