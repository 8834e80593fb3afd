#include "net/listener.h"

#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include "net/accept_loop.h"
#include "net/connecting.h"
#include "net/endpoint.h"
#include "net/socket_options.h"

namespace vpfs::net {

struct Listener::State {
  explicit State(asio::io_context& context)
      : loop(std::make_shared<AcceptLoop<asio::ip::tcp>>(context)) {}
  std::shared_ptr<AcceptLoop<asio::ip::tcp>> loop;  // shared with the wait in flight
};

namespace {

// Whether the socket listens at an endpoint that was asked for like this.
bool listens_at(int socket, const Endpoint& endpoint) {
  int listens = 0;
  socklen_t size = sizeof listens;
  if (::getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0) {
    return false;
  }
  const Result<Endpoint> at = net::local_endpoint(socket);
  const Endpoint wanted = unmapped(endpoint);
  return at && at->address() == wanted.address() &&
         (wanted.port() == 0 || at->port() == wanted.port());
}

}  // namespace

Result<Listener> Listener::open(asio::io_context& context, const Endpoint& endpoint,
                                Descriptor inherited) {
  auto state = std::make_unique<State>(context);
  asio::ip::tcp::acceptor& acceptor = state->loop->acceptor();
  if (inherited && listens_at(inherited.get(), endpoint)) {
    std::error_code refused;
    acceptor.assign(endpoint.protocol(), inherited.get(), refused);
    if (!refused) {
      (void)inherited.release();
      return Listener(std::move(state));
    }
  }
  inherited.close();
  const auto problem = [&](const char* what, const std::error_code& error) {
    return fail(fmt::format("{} {}: {}", what, to_string(endpoint), error.message()), error);
  };
  std::error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (error) return problem("cannot open a socket for", error);
  acceptor.set_option(asio::ip::tcp::acceptor::reuse_address(true), error);
  if (error) return problem("cannot reuse the address", error);
  if (endpoint.address().is_v6()) {
    // [::] also serves IPv4, regardless of net.ipv6.bindv6only.
    acceptor.set_option(asio::ip::v6_only(false), error);
    if (error) return problem("cannot serve IPv4 too at", error);
  }
  acceptor.bind(endpoint, error);
  if (error) return problem("cannot listen on", error);
  acceptor.listen(4096, error);
  if (error) return problem("cannot listen on", error);
  return Listener(std::move(state));
}

Listener::Listener(std::unique_ptr<State> state) : state_(std::move(state)) {}
Listener::Listener(Listener&&) noexcept = default;
// asio's cancel(), which close() calls, throws by its signature only.
// NOLINTNEXTLINE(bugprone-exception-escape)
Listener& Listener::operator=(Listener&& other) noexcept {
  if (this != &other) {
    close();
    state_ = std::move(other.state_);
  }
  return *this;
}
// NOLINTNEXTLINE(bugprone-exception-escape): as above
Listener::~Listener() {
  close();
}

void Listener::start(Handler handler) {
  auto prepare = [handler = std::move(handler)](Socket socket) {
    if (const std::error_code problem = prepare_stream(socket.native_handle())) {
      spdlog::debug("a new connection was gone at once: {}", problem.message());
    } else {
      handler(std::move(socket));
    }
  };
  state_->loop->start(to_string(local_endpoint()), std::move(prepare));
}

void Listener::close() {
  if (state_) state_->loop->close();
}

Endpoint Listener::local_endpoint() const {
  return state_->loop->acceptor().local_endpoint();
}

int Listener::native_handle() const {
  return state_->loop->acceptor().native_handle();
}

}  // namespace vpfs::net
