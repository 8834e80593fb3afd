#include "control/metrics/http_port.h"

#include <algorithm>
#include <array>
#include <exception>
#include <list>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <spdlog/spdlog.h>

#include "base/result.h"
#include "control/metrics/http_request.h"
#include "net/async.h"
#include "net/channel.h"
#include "net/listener.h"
#include "net/socket_options.h"
#include "net/start_thread.h"
#include "net/tls.h"

namespace vpfs::control {
namespace {

constexpr std::uint32_t kPiece = 64 * 1024;  // of an answer
constexpr const char* kNoReader =
    "the names in your certificate are in neither control.readers nor control.writers\n";

Result<net::Endpoint> loopback_endpoint(const std::string& address) {
  VPFS_TRY(check_loopback(address));
  Result<net::Endpoint> endpoint = net::resolve_endpoint(address);
  VPFS_TRY(endpoint);
  // A name server could give localhost another address.
  if (!endpoint->address().is_loopback()) {
    return fail(address + " is not a loopback address on this host");
  }
  return endpoint;
}

struct HttpConnection : std::enable_shared_from_this<HttpConnection> {
  HttpConnection(std::unique_ptr<net::Channel> from, std::string of, asio::io_context& context)
      : channel(std::move(from)), peer(std::move(of)), deadline(context) {}

  void close() {
    is_open = false;
    channel->close();
  }
  // It is closed after so long.
  void give(Duration patience) {
    deadline.expires_after(patience);
    deadline.async_wait([connection = shared_from_this()](std::error_code error) {
      if (!error) connection->close();
    });
  }

  const std::unique_ptr<net::Channel> channel;
  const std::string peer;  // its address
  asio::steady_timer deadline;
  bool is_open = true;
  bool asked = false;  // its request is complete
};
using HttpConnectionPtr = std::shared_ptr<HttpConnection>;  // its coroutine and its timer share it

}  // namespace

class HttpPort::State {
 public:
  State(HttpSource source, MetricsOptions options, const Clock& clock, const HttpLimits& limits,
        std::optional<HttpTls> tls)
      : tls_(std::move(tls)),
        clock_(clock),
        limits_(limits),
        answers_(context_, std::move(source), std::move(options), clock, limits) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Result<net::Endpoint> listen(const net::Endpoint& endpoint, net::Descriptor inherited) {
    Result<net::Listener> listener = net::Listener::open(context_, endpoint, std::move(inherited));
    VPFS_TRY(listener);
    listener_.emplace(std::move(*listener));
    return listener_->local_endpoint();
  }
  void accept() {
    listener_->start([this](net::Socket socket) { accepted(std::move(socket)); });
  }
  [[nodiscard]] int native_handle() const { return listener_->native_handle(); }
  void run() {
    for (;;) {
      try {
        context_.run();
        return;
      } catch (const std::exception& problem) {
        // An exception of a library, such as for want of memory, must not end the stage.
        spdlog::error("control.http: {}", problem.what());
      }
    }
  }
  void use(HttpTls tls) {
    asio::post(context_, [this, tls = std::move(tls)]() mutable { tls_ = std::move(tls); });
  }
  // Ends run().
  void stop() { context_.stop(); }
  // After run(): ends all that uses a channel, before the channels are destroyed.
  void close() {
    try {
      listener_.reset();
      for (const HttpConnectionPtr& each : connections_) {
        each->deadline.cancel();
        each->close();
      }
      context_.restart();
      context_.poll();
    } catch (const std::exception& problem) {
      spdlog::error("control.http: {}", problem.what());
    }
  }

 private:
  void accepted(net::Socket socket);
  [[nodiscard]] std::unique_ptr<net::Channel> channel_of(net::Socket socket) const;
  void make_room();
  net::Task<> serve(HttpConnectionPtr connection);
  net::Task<std::string> head_of(HttpConnection& connection, int& problem);
  net::Task<> answer(HttpConnection& connection);
  net::Task<> send(HttpConnection& connection, const HttpPage& page, bool head_only);

  asio::io_context context_{1};
  std::optional<HttpTls> tls_;  // of new connections
  const Clock& clock_;
  const HttpLimits limits_;
  HttpAnswers answers_;
  std::optional<net::Listener> listener_;
  std::list<HttpConnectionPtr> connections_;  // the oldest first
};

void HttpPort::State::accepted(net::Socket socket) {
  if (connections_.size() >= limits_.connections) make_room();
  std::error_code gone;
  const auto peer = socket.remote_endpoint(gone);
  if (gone) return;
  net::bound_unsent(socket.native_handle(), kPiece);
  auto connection = std::make_shared<HttpConnection>(channel_of(std::move(socket)),
                                                     peer.address().to_string(), context_);
  connections_.push_back(connection);
  connection->give(limits_.patience);
  asio::co_spawn(context_, serve(connection), asio::detached);
}

// The address with the most connections loses its oldest one that has asked for nothing yet, or its
// oldest one at all.
void HttpPort::State::make_room() {
  std::map<std::string_view, std::size_t> of_peer;
  for (const HttpConnectionPtr& each : connections_) ++of_peer[each->peer];
  const auto goes_before = [&](const HttpConnectionPtr& one, const HttpConnectionPtr& other) {
    if (of_peer[one->peer] != of_peer[other->peer]) {
      return of_peer[one->peer] > of_peer[other->peer];
    }
    return !one->asked && other->asked;
  };
  const auto last = std::ranges::min_element(connections_, goes_before);
  (*last)->deadline.cancel();
  (*last)->close();
  connections_.erase(last);
}

std::unique_ptr<net::Channel> HttpPort::State::channel_of(net::Socket socket) const {
  net::StreamSocket stream(std::move(socket));
  return tls_ ? net::accept_tls(std::move(stream), tls_->context)
              : net::make_plain_channel(std::move(stream));
}

net::Task<> HttpPort::State::serve(HttpConnectionPtr connection) {
  try {
    const Result<void> shaken = co_await connection->channel->handshake();
    if (shaken) co_await answer(*connection);
  } catch (const std::exception& problem) {
    spdlog::error("control.http: {}", problem.what());
  }
  connection->deadline.cancel();
  connection->close();
  connections_.remove(connection);
}

net::Task<> HttpPort::State::answer(HttpConnection& connection) {
  int problem = 0;
  const std::string head = co_await head_of(connection, problem);
  connection.asked = true;
  if (!connection.is_open || (problem == 0 && head.empty())) co_return;
  connection.give(limits_.sending);  // how long the answer may take to be made is bounded elsewhere
  const auto request = problem == 0 ? parse_request(head) : std::unexpected(problem);
  if (!request) {
    const HttpPage refusal =
        http_page(request.error(), "this port serves GET and HEAD of HTTP/1.1\n");
    co_await send(connection, refusal, false);
  } else if (tls_ && !tls_->may_read(connection.channel->peer_names())) {
    const HttpPage refusal = http_page(403, kNoReader);
    co_await send(connection, refusal, request->head_only);
  } else {
    // With TLS, a foreign page cannot have its name lead here: the certificate has other names.
    const HttpPage found = co_await answers_.page_of(*request, tls_.has_value());
    co_await send(connection, found, request->head_only);
  }
}

// "": the client ended first.
net::Task<std::string> HttpPort::State::head_of(HttpConnection& connection, int& problem) {
  std::string head;
  std::array<std::byte, 2048> part = {};
  while (head_size(head) == 0 && problem == 0) {
    const net::Transfer got = co_await connection.channel->read_some(part);
    if (got.error) {
      head.clear();
      break;
    }
    head.append(reinterpret_cast<const char*>(part.data()), got.size);
    if (!may_be_request(head)) problem = 400;
    if (head_size(head) == 0 && head.size() >= limits_.head) problem = 431;
  }
  co_return head;
}

net::Task<> HttpPort::State::send(HttpConnection& connection, const HttpPage& page,
                                  bool head_only) {
  const std::string head = answer_head(
      {.status = page.status, .type = page.type, .size = page.body->size(), .more = page.more});
  std::string_view body = head_only ? std::string_view() : std::string_view(*page.body);
  // A slow link may take long for all of it, but each piece must get on.
  const TimePoint end = clock_.now() + limits_.sending;
  connection.give(std::min(limits_.patience, limits_.sending));
  std::error_code gone = co_await connection.channel->write(std::as_bytes(std::span(head)));
  while (!gone && !body.empty() && connection.is_open) {
    const std::string_view piece = body.substr(0, kPiece);
    body.remove_prefix(piece.size());
    connection.give(std::min(limits_.patience, end - clock_.now()));
    gone = co_await connection.channel->write(std::as_bytes(std::span(piece)));
  }
  if (!gone) connection.channel->end_output();
  // A connection that is closed with unread bytes takes back what was sent.
  std::array<std::byte, 2048> rest = {};
  for (std::size_t left = limits_.head; !gone && left > 0;) {
    const net::Transfer got = co_await connection.channel->read_some(rest);
    gone = got.error;
    left -= std::min(left, got.size);
  }
}

HttpPort::HttpPort(std::unique_ptr<State> state) : state_(std::move(state)) {}

HttpPort::~HttpPort() {
  state_->stop();
  if (thread_.joinable()) thread_.join();
  state_->close();
}

void HttpPort::use(HttpTls tls) {
  state_->use(std::move(tls));
}

Result<std::unique_ptr<HttpPort>> HttpPort::open(const HttpConfig& config, HttpSource source,
                                                 std::string version, const Clock& clock,
                                                 HttpLimits limits, std::optional<HttpTls> tls,
                                                 Start start) {
  const bool has_tls = tls.has_value();
  const std::string& address = has_tls ? config.tls_address : config.address;
  const auto refused = [has_tls](const vpfs::Error& error) {
    return fail((has_tls ? "control.https: " : "control.http: ") + error.message, error.code);
  };
  const Result<net::Endpoint> endpoint =
      has_tls ? net::resolve_endpoint(address) : loopback_endpoint(address);
  if (!endpoint) return refused(endpoint.error());
  auto state = std::make_unique<State>(
      std::move(source),
      MetricsOptions{.version = std::move(version), .most_virtual_pfs = config.most_virtual_pfs},
      clock, limits, std::move(tls));
  const Result<net::Endpoint> local = state->listen(*endpoint, std::move(start.inherited));
  if (!local) return refused(local.error());
  std::unique_ptr<HttpPort> port(new HttpPort(std::move(state)));
  port->endpoint_ = *local;
  if (!start.at_once) return port;
  if (const Result<void> started = port->start(); !started) return refused(started.error());
  return port;
}

Result<void> HttpPort::start() {
  state_->accept();
  Result<std::thread> thread = net::start_thread([&state = *state_] { state.run(); });
  VPFS_TRY(thread);
  thread_ = std::move(*thread);
  return {};
}

int HttpPort::native_handle() const {
  return state_->native_handle();
}

}  // namespace vpfs::control
