#include "net/listener.h"

#include <cerrno>
#include <chrono>
#include <utility>

#include <asio/steady_timer.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "net/endpoint.h"
#include "net/socket_options.h"

namespace vpfs::net {

using namespace std::chrono_literals;

struct Listener::State : std::enable_shared_from_this<Listener::State> {
  explicit State(asio::io_context& context) : acceptor(context), pause(context) { open_spare(); }
  ~State() { close_spare(); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void accept_next();
  void accepted(std::error_code error, Socket socket);
  void refuse_one();
  void wait_then_accept(Duration delay);

  void open_spare() { spare_descriptor = ::open("/dev/null", O_RDONLY | O_CLOEXEC); }
  void close_spare() {
    if (spare_descriptor >= 0) ::close(spare_descriptor);
    spare_descriptor = -1;
  }

  asio::ip::tcp::acceptor acceptor;
  asio::steady_timer pause;
  Handler handler;
  // Closed for a moment, when no descriptor is left, to accept and close a connection.
  int spare_descriptor = -1;
  std::uint64_t refused = 0;
  std::chrono::steady_clock::time_point last_complaint = {};
  bool closed = false;
};

void Listener::State::accept_next() {
  acceptor.async_accept([self = shared_from_this()](std::error_code error, Socket socket) {
    self->accepted(error, std::move(socket));
  });
}

void Listener::State::accepted(std::error_code error, Socket socket) {
  if (closed || error == asio::error::operation_aborted) return;
  if (!error) {
    if (const std::error_code problem = prepare_stream(socket.native_handle())) {
      spdlog::debug("a new connection was gone at once: {}", problem.message());
    } else {
      handler(std::move(socket));
    }
    if (!closed) accept_next();
    return;
  }
  const bool exhausted = error.value() == EMFILE || error.value() == ENFILE;
  if (exhausted) {
    refuse_one();
  } else {
    spdlog::warn("accept on {}: {}", to_string(acceptor.local_endpoint()), error.message());
  }
  // A retry would fail at once too; the pause keeps the loop from spinning.
  wait_then_accept(10ms);
}

void Listener::State::refuse_one() {
  close_spare();
  const int fd =
      ::accept4(acceptor.native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd >= 0) {
    ::close(fd);
    ++refused;
  }
  open_spare();
  const auto now = pause.expiry() > last_complaint ? pause.expiry() : last_complaint;
  if (refused == 1 || now - last_complaint >= 1s) {
    spdlog::error("out of file descriptors: {} connections refused so far", refused);
    last_complaint = now;
  }
}

void Listener::State::wait_then_accept(Duration delay) {
  pause.expires_after(delay);
  pause.async_wait([self = shared_from_this()](std::error_code error) {
    if (!error && !self->closed) self->accept_next();
  });
}

Result<Listener> Listener::open(asio::io_context& context, const Endpoint& endpoint) {
  auto state = std::make_shared<State>(context);
  const auto problem = [&](const char* what, const std::error_code& error) {
    return fail(fmt::format("{} {}: {}", what, to_string(endpoint), error.message()), error);
  };
  std::error_code error;
  state->acceptor.open(endpoint.protocol(), error);
  if (error) return problem("cannot open a socket for", error);
  state->acceptor.set_option(asio::ip::tcp::acceptor::reuse_address(true), error);
  if (error) return problem("cannot reuse the address", error);
  if (endpoint.address().is_v6()) {
    // [::] also serves IPv4, regardless of net.ipv6.bindv6only.
    state->acceptor.set_option(asio::ip::v6_only(false), error);
    if (error) return problem("cannot serve IPv4 too at", error);
  }
  state->acceptor.bind(endpoint, error);
  if (error) return problem("cannot listen on", error);
  state->acceptor.listen(4096, error);
  if (error) return problem("cannot listen on", error);
  return Listener(std::move(state));
}

Listener::Listener(std::shared_ptr<State> state) : state_(std::move(state)) {}
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
  state_->handler = std::move(handler);
  state_->accept_next();
}

void Listener::close() {
  if (!state_ || state_->closed) return;
  state_->closed = true;
  std::error_code ignored;
  state_->acceptor.close(ignored);
  state_->pause.cancel();
}

Endpoint Listener::local_endpoint() const {
  return state_->acceptor.local_endpoint();
}

}  // namespace vpfs::net
