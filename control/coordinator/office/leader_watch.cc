#include "control/coordinator/office/leader_watch.h"

#include <cerrno>
#include <chrono>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <asio/error.hpp>
#include <asio/local/stream_protocol.hpp>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include "control/wire/protocol.h"
#include "net/endpoint.h"

namespace vpfs::coordinator {
namespace {

using namespace std::chrono_literals;
using control::ClientOptions;
using control::ClientSession;
using control::PortAddress;

constexpr Duration kConnectWithin = 1s;
constexpr Duration kFirstPause = 50ms;  // a new leader is about to listen
constexpr Duration kPause = 100ms;      // before one that has answered is tried again
constexpr Duration kLongestPause = 2s;
constexpr Duration kLookAgain = 24h;  // a connection that lasts tells nothing
constexpr const char* kProgram = "vpfs-coordinator";

bool is_unix_gone(const std::string& path) {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (socket < 0) return false;
  const asio::local::stream_protocol::endpoint endpoint(path);
  const int result = ::connect(socket, endpoint.data(), static_cast<socklen_t>(endpoint.size()));
  const bool is_gone = result != 0 && (errno == ECONNREFUSED || errno == ENOENT);
  ::close(socket);
  return is_gone;
}

// Whether each of them refuses connections.
net::Task<bool> is_tcp_gone(std::vector<net::Endpoint> endpoints) {
  for (const net::Endpoint& endpoint : endpoints) {
    const auto socket = co_await net::connect(endpoint, kConnectWithin);
    if (socket || socket.error().code != asio::error::connection_refused) co_return false;
  }
  co_return !endpoints.empty();
}

}  // namespace

LeaderWatch::LeaderWatch(asio::io_context& context, std::shared_ptr<net::TlsContext> tls, Tell tell)
    : context_(context),
      tls_(std::move(tls)),
      tell_(std::move(tell)),
      lookups_(context),
      wake_(context) {}

void LeaderWatch::watch(const control::Leadership* leader) {
  std::optional<Watched> next;
  if (leader != nullptr && !leader->addresses.empty()) {
    const auto address = control::parse_port_address(leader->addresses.front());
    if (address && (address->is_unix() || tls_ != nullptr)) {
      next = {.term = leader->term, .incarnation = leader->incarnation, .address = *address};
    }
  }
  const bool is_same =
      leader_.has_value() == next.has_value() &&
      (!next || (leader_->term == next->term && leader_->address == next->address));
  if (is_same) return;
  leader_ = std::move(next);
  if (session_ != nullptr) session_->close();
  wake_.expires_at(asio::steady_timer::time_point::min());
  if (!leader_ || is_running_ || is_stopped_) return;
  is_running_ = true;
  asio::co_spawn(context_, run(), [this](const std::exception_ptr& problem) {
    is_running_ = false;
    if (problem) spdlog::error("the leader's port is watched no more: out of memory");
  });
}

void LeaderWatch::stop() {
  is_stopped_ = true;
  leader_.reset();
  if (session_ != nullptr) session_->close();
  wake_.expires_at(asio::steady_timer::time_point::min());
}

net::Task<> LeaderWatch::run() {
  while (leader_) {
    const Watched leader = *leader_;
    if (std::exchange(tried_, leader.term) != leader.term) pause_ = kFirstPause;
    wake_.expires_at(asio::steady_timer::time_point::max());
    const bool is_gone = co_await hold(leader);
    if (!still_watches(leader)) continue;
    if (is_gone) tell_(leader.term, true);
    if (!still_watches(leader)) continue;
    wake_.expires_after(pause_);
    pause_ = std::min<Duration>(2 * pause_, kLongestPause);
    (void)co_await wake_.async_wait(net::kUseTask);
  }
}

// The name of a host is looked up by a thread that may be left behind: a name service that hangs
// must not keep a standby from taking over.
net::Task<bool> LeaderWatch::hold(Watched leader) {
  std::vector<net::Endpoint> endpoints;
  if (!leader.address.is_unix()) {
    auto found = co_await lookups_.find(leader.address, kConnectWithin);
    if (!found) co_return false;
    endpoints = std::move(*found);
  }
  co_return co_await hold(leader, std::move(endpoints));
}

net::Task<bool> LeaderWatch::hold(Watched leader, std::vector<net::Endpoint> endpoints) {
  ClientOptions options;
  options.program = kProgram;
  options.tls = tls_;
  options.connect_within = kConnectWithin;
  options.peer = "coordinator";
  options.names_users = false;
  auto opened = co_await ClientSession::open(leader.address, options, endpoints);
  if (!opened) tell_why_not(leader, opened.error());
  if (opened && still_watches(leader)) {
    session_ = std::move(*opened);
    const bool is_other = session_->hello().incarnation() != leader.incarnation;
    if (is_other || control::is_standby(session_->hello())) {
      session_.reset();
      // Else it has claimed the office, and is about to begin.
      co_return is_other&& leader.address.is_unix();
    }
    pause_ = kPause;
    tell_(leader.term, false);
    // It asks nothing, so the first answer is that the connection has ended.
    if (session_ != nullptr) (void)co_await session_->next(0, kLookAgain);
    session_.reset();
  }
  if (!still_watches(leader)) co_return false;
  if (leader.address.is_unix()) co_return is_unix_gone(leader.address.path);
  co_return co_await is_tcp_gone(std::move(endpoints));
}

void LeaderWatch::tell_why_not(const Watched& leader, const control::Failure& why) {
  // A port that is not there yet, or is no more, is as it should be.
  if (!still_watches(leader) || pause_ < kLongestPause) return;
  if (std::exchange(told_, leader.term) == leader.term) return;
  spdlog::warn("the leader at {} is not watched, so only the end of its lease would be noticed: {}",
               control::to_string(leader.address), control::describe(why.error));
}

}  // namespace vpfs::coordinator
